//! Suggests attribute values for which a call would have the type that the program declares for it.
//!
//! No operator needs a description of its attributes' effects: its struct-info rule is run again with one attribute
//! changed to nearby values, until a value fits. For example, for a convolution declared to keep its extents but called
//! with `padding=0`, the suggestion is `padding=1`.

use crate::call::{Arg, CallInfo};
use crate::schema::{AttrKind, ParamKind};
use rx_base::Answer;
use rx_base::symbolic::Bounds;
use rx_base::symbolic::prove;
use rx_ir::{Attr, Expr, Shape, StructInfo, TensorInfo};
use std::fmt;

/// The maximum number of rule runs per error.
const MOST_RUNS: usize = 160;

/// The number of values tried on each side of the given one.
const NEAREST: i64 = 6;

/// A suggested value of one attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// The attribute.
    pub param: &'static str,
    /// The value that would fit.
    pub value: Attr,
}

/// Formats the suggestion as an argument, for example `padding=[1, 1]`.
impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.param, self.value)
    }
}

/// Returns the attributes for which a change of one alone gives the call the type `wanted`, nearest values first.
pub fn suggestions(call: &CallInfo<'_>, wanted: &StructInfo) -> Vec<Suggestion> {
    let mut runs = MOST_RUNS;
    let mut found: Vec<(i64, Suggestion)> = Vec::new();
    for (at, param) in call.schema.params.iter().enumerate() {
        let ParamKind::Attr(kind) = param.kind else { continue };
        let given = match call.args.get(at) {
            Some(Arg::Attr(given)) => given,
            Some(Arg::Absent) => &Attr::None,
            _ => continue,
        };
        let values = candidates(kind, given, wanted);
        let mut args: Vec<Arg<'_>> = call.args.to_vec();
        for (distance, value) in &values {
            let Some(left) = runs.checked_sub(1) else { break };
            runs = left;
            let Some(slot) = args.get_mut(at) else { break };
            *slot = Arg::Attr(value);
            if gives(call, &args, wanted) {
                found.push((*distance, Suggestion { param: param.name, value: value.clone() }));
                break;
            }
        }
    }
    found.sort_by_key(|(distance, _)| *distance);
    found.into_iter().map(|(_, suggestion)| suggestion).collect()
}

/// Returns an operand that needs another shape for the call to have the type `wanted`: the index of its parameter, and
/// the type that it needs. Only the shape of `wanted` is tried, so these are operands whose shape the call keeps.
///
/// For example, for `nn.relu` or `add` of a bias, the operand `x` must have the shape of the result.
pub fn shaping_operand(call: &CallInfo<'_>, wanted: &StructInfo) -> Option<(usize, StructInfo)> {
    let shape = &wanted.as_tensor().filter(|tensor| tensor.shape.dims().is_some())?.shape;
    call.args.iter().enumerate().find_map(|(at, arg)| {
        let Arg::Operand(operand) = arg else { return None };
        let StructInfo::Tensor(own) = &operand.ty else { return None };
        if own.shape == *shape || own.shape.ndim() != shape.ndim() {
            return None;
        }
        let ty = StructInfo::from(TensorInfo { shape: shape.clone(), ..TensorInfo::clone(own) });
        let changed = Expr { ty: ty.clone(), ..Expr::clone(operand) };
        let mut args = call.args.to_vec();
        *args.get_mut(at)? = Arg::Operand(&changed);
        gives(call, &args, wanted).then_some((at, ty))
    })
}

/// Whether the call has the type `wanted` with the arguments `args`.
fn gives(call: &CallInfo<'_>, args: &[Arg<'_>], wanted: &StructInfo) -> bool {
    let changed = CallInfo::trial(call.schema, args, call.bounds);
    (call.schema.infer)(&changed).is_ok_and(|ty| fits(&ty, wanted, call.bounds))
}

/// Returns values near the given one, with their distances, nearest first. In a list, either all elements change
/// equally, or one element changes.
fn candidates(kind: AttrKind, given: &Attr, wanted: &StructInfo) -> Vec<(i64, Attr)> {
    match (kind, given) {
        (AttrKind::Bool, Attr::Bool(value)) => vec![(0, Attr::Bool(!value))],
        (AttrKind::DType, Attr::Str(_) | Attr::None) => {
            let dtype = wanted.as_tensor().and_then(|tensor| tensor.dtype);
            dtype.map(|dtype| (0, Attr::Str(dtype.to_string().into()))).into_iter().collect()
        }
        (AttrKind::Int | AttrKind::IntOrNone, Attr::Int(dim)) => dim.as_constant().map_or_else(Vec::new, |value| {
            near(value).map(|(distance, other)| (distance, Attr::Int(other.into()))).collect()
        }),
        (AttrKind::Ints, Attr::Int(dim)) => dim.as_constant().map_or_else(Vec::new, |value| {
            near(value).map(|(distance, other)| (distance, Attr::Int(other.into()))).collect()
        }),
        (AttrKind::Ints | AttrKind::IntList, Attr::List(items)) => lists(items),
        _ => Vec::new(),
    }
}

fn lists(items: &[Attr]) -> Vec<(i64, Attr)> {
    let Some(values) = items.iter().map(Attr::as_int).collect::<Option<Vec<i64>>>() else { return Vec::new() };
    let list = |values: Vec<i64>| Attr::List(values.into_iter().map(|value| Attr::Int(value.into())).collect());
    let mut found = Vec::new();
    let alike = values.iter().all(|value| Some(value) == values.first());
    if let (true, Some(first)) = (alike, values.first()) {
        found.extend(near(*first).map(|(distance, other)| (distance, list(vec![other; values.len()]))));
    }
    // A change of one side of a padding, or of one of many equal strides, is unlikely to be intended.
    if values.len() > 1 && !(alike && values.len() > 3) {
        for (distance, step) in steps() {
            for at in 0..values.len().min(4) {
                let mut other = values.clone();
                if let Some(value) = other.get_mut(at).filter(|value| value.saturating_add(step) >= (**value).min(0)) {
                    *value = value.saturating_add(step);
                    // A change of one element is less likely than an equal change of all.
                    found.push((distance + NEAREST, list(other)));
                }
            }
        }
    }
    found
}

/// Returns `1, -1, 2, -2, …` with their distances.
fn steps() -> impl Iterator<Item = (i64, i64)> {
    (1..=NEAREST).flat_map(|distance| [(distance, distance), (distance, -distance)])
}

/// Returns values near `value`, nearest first. They are negative only if `value` is: most attributes are counts, and
/// axes are suggested as non-negative.
fn near(value: i64) -> impl Iterator<Item = (i64, i64)> {
    steps()
        .map(move |(distance, step)| (distance, value.saturating_add(step)))
        .filter(move |(_, other)| *other >= value.min(0))
}

/// Whether a value of type `ty` has every part that `wanted` states.
fn fits(ty: &StructInfo, wanted: &StructInfo, bounds: &Bounds) -> bool {
    match (ty, wanted) {
        (StructInfo::Tuple(fields), StructInfo::Tuple(wanted)) => {
            fields.len() == wanted.len()
                && fields.iter().zip(wanted.iter()).all(|(field, wanted)| fits(field, wanted, bounds))
        }
        (ty, wanted) => match (ty.as_tensor(), wanted.as_tensor()) {
            (Some(tensor), Some(wanted)) => {
                (wanted.dtype.is_none() || tensor.dtype == wanted.dtype)
                    && shape_fits(&tensor.shape, &wanted.shape, bounds)
            }
            _ => ty == wanted,
        },
    }
}

fn shape_fits(shape: &Shape, wanted: &Shape, bounds: &Bounds) -> bool {
    match (shape.dims(), wanted.dims()) {
        (Some(dims), Some(wanted)) => {
            let equal = |(a, b)| prove::equal(a, b, bounds) == Answer::Proved;
            dims.len() == wanted.len() && dims.iter().zip(wanted).all(equal) && !dims.iter().any(rx_base::Dim::is_error)
        }
        (_, None) => wanted.ndim().is_none_or(|ndim| shape.ndim() == Some(ndim)),
        (None, Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{shaping_operand, suggestions};
    use crate::tests::{Given, call_of, dims, numbers, tensor, text};
    use rx_base::DType;
    use rx_ir::StructInfo;

    fn found(operator: &str, args: &[(&str, Given)], wanted: &str) -> Vec<String> {
        let wanted = StructInfo::tensor(dims(wanted), Some(DType::FLOAT32));
        let suggestions = call_of(operator, args, |call| suggestions(call, &wanted));
        suggestions.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn operand_whose_shape_is_kept_is_found() {
        let shaping = |operator: &str, args: &[(&str, Given)], wanted: &str| {
            let wanted = StructInfo::tensor(dims(wanted), Some(DType::FLOAT32));
            call_of(operator, args, |call| shaping_operand(call, &wanted)).map(|(at, ty)| format!("{at} {ty}"))
        };
        let (bias, value) = (|| tensor("1 4 1 1:float32"), || tensor("1 4 6 6:float32"));
        let needed = "R.Tensor((1, 4, 8, 8), dtype=\"float32\")";
        assert_eq!(shaping("nn.relu", &[("data", value())], "1 4 8 8"), Some(format!("0 {needed}")));
        assert_eq!(shaping("add", &[("x1", bias()), ("x2", value())], "1 4 8 8"), Some(format!("1 {needed}")));
        assert_eq!(shaping("nn.relu", &[("data", value())], "1 4 6 6"), None);
        assert_eq!(shaping("permute_dims", &[("x", tensor("2 3:float32"))], "5 2"), None);
    }

    #[test]
    fn attribute_value_that_fits_is_found() {
        let conv = [
            ("data", tensor("1 100 4 4:float32")),
            ("weight", tensor("100 64 3 3:float32")),
            ("strides", numbers(&[2, 2])),
            ("padding", numbers(&[1, 1, 1, 1])),
            ("kernel_layout", text("IOHW")),
        ];
        assert_eq!(found("nn.conv2d_transpose", &conv, "1 64 8 8"), ["output_padding=[1, 1]"]);
        let conv = [
            ("data", tensor("1 3 224 224:float32")),
            ("weight", tensor("64 3 3 3:float32")),
            ("padding", numbers(&[0, 0, 0, 0])),
        ];
        assert_eq!(found("nn.conv2d", &conv, "1 64 224 224"), ["padding=[1, 1, 1, 1]"]);
        assert_eq!(found("nn.conv2d", &conv, "1 64 220 220"), ["dilation=[2, 2]"]);
        assert_eq!(found("sum", &[("x", tensor("4 5:float32")), ("axis", numbers(&[1]))], "4 1"), ["keepdims=True"]);
    }
}
