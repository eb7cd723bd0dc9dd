//! Normalization of axis attributes: converts negative axes, checks ranges, rejects duplicates.

use crate::call::{CallInfo, ParamPlace, Problem};
use rustc_hash::FxHashMap;
use rx_base::{Code, counted};

/// Returns `axis` of a tensor of rank `ndim` as a non-negative axis (TVM's `NormalizeAxis`). For example, -1 of rank 4
/// is 3.
///
/// # Errors
/// Reports an axis outside `[-ndim, ndim)` at parameter `name`.
pub(crate) fn normalize_axis(
    call: &CallInfo<'_>,
    name: &'static str,
    ndim: usize,
    axis: i64,
) -> Result<usize, Problem> {
    // A rank is the length of a list in memory, so the conversion does not overflow.
    let signed = i64::try_from(ndim).unwrap_or(i64::MAX);
    let from_front = if axis < 0 { axis.checked_add(signed) } else { Some(axis) };
    match from_front.and_then(|axis| usize::try_from(axis).ok()).filter(|axis| *axis < ndim) {
        Some(axis) => Ok(axis),
        None => {
            let of = ranked(call, ndim);
            let dimensions = counted(ndim, "dimension");
            let message = match of {
                Some(tensor) => format!("{name} {axis} is out of range: `{tensor}` has {dimensions}"),
                None => format!("{name} {axis} is out of range for {dimensions}"),
            };
            let note = match ndim {
                0 => "a tensor without dimensions has no axis".to_owned(),
                _ => format!("valid axes are -{ndim} to {}", ndim - 1),
            };
            let place = ParamPlace::Param(name);
            let report = call.error(Code::AxisOutOfRange, place, format_args!("{message}")).with_note(note);
            Err(match of {
                Some(tensor) => report.with_label(ParamPlace::Param(tensor), call.ty(tensor).to_string()),
                None => report,
            }
            .into())
        }
    }
}

/// Returns the first tensor argument of this rank, to which the axis most likely refers. There is none for `stack`,
/// whose result has one dim more than its operands.
fn ranked(call: &CallInfo<'_>, ndim: usize) -> Option<&'static str> {
    let has_rank = |name: &str| {
        let tensor = call.operand(name).and_then(|operand| operand.ty.as_tensor());
        tensor.is_some_and(|tensor| tensor.shape.ndim() == Some(ndim))
    };
    call.schema.params.iter().map(|param| param.name).find(|name| has_rank(name))
}

/// Returns `axes` as non-negative axes, in the given order (TVM's `NormalizeAxes`).
///
/// # Errors
/// Fails like [`normalize_axis`]; also reports a duplicate axis.
pub(crate) fn normalize_axes(
    call: &CallInfo<'_>,
    name: &'static str,
    ndim: usize,
    axes: &[i64],
) -> Result<Vec<usize>, Problem> {
    let mut result = Vec::with_capacity(axes.len());
    let mut seen = FxHashMap::default();
    for axis in axes {
        let from_front = normalize_axis(call, name, ndim, *axis)?;
        if let Some(before) = seen.insert(from_front, *axis) {
            let message = format_args!("`{name}` names axis {from_front} twice, by {before} and {axis}");
            return Err(call.error(Code::AxisOutOfRange, ParamPlace::Param(name), message).into());
        }
        result.push(from_front);
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{call_of, code_of};

    #[test]
    fn axes_count_from_either_end_and_once() {
        call_of("sum", &[], |call| {
            let axes = |ndim, axes: &[i64]| normalize_axes(call, "axis", ndim, axes);
            assert_eq!(axes(4, &[-1, 0]).ok(), Some(vec![3, 0]));
            for bad in [&[4][..], &[-5], &[3, 3], &[-1, 3], &[i64::MIN]] {
                assert_eq!(axes(4, bad).map_err(code_of), Err(Some(Code::AxisOutOfRange)));
            }
            assert_eq!(axes(0, &[0]).map_err(code_of), Err(Some(Code::AxisOutOfRange)));
        });
    }
}
