//! Diagnostics of convolutions whose channels do not fit, with suggestions of layouts or groups for which they fit.

use super::conv_rule::{Convolution, Direction};
use crate::call::{CallInfo, ParamPlace, operand};
use crate::layout::{Layout, layout_fix};
use rx_base::{Answer, Code, Diagnostic, Dim, Fix};

/// Creates the error that data and weight disagree on the number of input channels.
pub(super) fn channels_report(call: &CallInfo<'_>, conv: &Convolution) -> Diagnostic<ParamPlace> {
    let expected = conv.expected_channels(conv.kernel_in());
    let message = format_args!("`data` has {} input channels, `weight` expects {expected}", conv.in_channels());
    let report = call
        .error(Code::ConvInChannelsMismatch, ParamPlace::Param("weight"), message)
        .with_primary_label(axis_label(call, "weight", &conv.kernel_layout, 'I', conv.kernel_in()))
        .with_label(ParamPlace::Param("data"), axis_label(call, "data", &conv.data_layout, 'C', conv.in_channels()))
        .with_note(match conv.direction {
            Direction::Forward => format!(
                "C == I * groups must hold; it is {} against {} * {}",
                conv.in_channels(),
                operand(conv.kernel_in()),
                conv.groups
            ),
            Direction::Transposed => {
                format!("C == I must hold; it is {} against {}", conv.in_channels(), conv.kernel_in())
            }
        });
    // A weight with one input channel is that of a depthwise convolution.
    let is_depthwise = conv.kernel_in().as_constant() == Some(1);
    let groups = fitting_groups(conv);
    let report = with_groups(report, groups.filter(|_| is_depthwise));
    let report = match swapped_kernel(call, conv) {
        Some(swap) => swap.advise(report, "kernel_layout"),
        None => report,
    };
    let report = match other_data_layout(call, conv, &expected) {
        Some(swap) => swap.advise(report, "data_layout"),
        None => report,
    };
    with_groups(report, groups.filter(|_| !is_depthwise))
}

/// Adds the advice to set `groups`, if there is a value that fits.
fn with_groups(report: Diagnostic<ParamPlace>, groups: Option<i64>) -> Diagnostic<ParamPlace> {
    let Some(groups) = groups else { return report };
    let edits = vec![(ParamPlace::Param("groups"), groups.to_string())];
    report.with_help(format!("groups={groups} would fit these shapes")).with_fix(Fix {
        title: format!("use groups={groups}"),
        edits,
        safe: false,
    })
}

/// Creates the error that `groups` does not divide `divided`: the output channels, or the input channels of a
/// transposed convolution.
pub(super) fn groups_report(call: &CallInfo<'_>, conv: &Convolution, divided: &Dim) -> Diagnostic<ParamPlace> {
    let (letter, which) = match conv.direction {
        Direction::Forward => ('O', "output"),
        Direction::Transposed => ('I', "input"),
    };
    let message = format_args!("{divided} {which} channels are not divisible by groups={}", conv.groups);
    let rest = divided.floor_mod(&Dim::constant(conv.groups));
    call.error(Code::ConvGroupsNotDivisible, ParamPlace::Param("groups"), message)
        .with_label(ParamPlace::Param("weight"), axis_label(call, "weight", &conv.kernel_layout, letter, divided))
        .with_note(format!("{letter} % groups == 0 must hold; {} % {} is {rest}", operand(divided), conv.groups))
}

/// Labels an axis: `R.Tensor((256, 512, 1, 1)): axis 1 (I of OIHW) is 512`.
fn axis_label(call: &CallInfo<'_>, param: &str, layout: &Layout, letter: char, extent: &Dim) -> String {
    let axis = layout.axis_of(letter).map_or_else(String::new, |axis| layout.describe(axis));
    format!("{}: {axis} is {extent}", call.ty(param))
}

/// A layout for which the channels fit, with the reason as text.
struct Swap {
    layout: String,
    because: String,
}

impl Swap {
    fn advise(self, report: Diagnostic<ParamPlace>, param: &'static str) -> Diagnostic<ParamPlace> {
        let Swap { layout, because } = self;
        report.with_help(format!("{because}: use {param}=\"{layout}\"")).with_fix(layout_fix(param, &layout))
    }
}

/// Returns the kernel's layout with I and O exchanged, if the channels then fit.
fn swapped_kernel(call: &CallInfo<'_>, conv: &Convolution) -> Option<Swap> {
    let swapped = conv.expected_channels(conv.kernel_out());
    if call.equal(conv.in_channels(), &swapped) != Answer::Proved {
        return None;
    }
    let axis = conv.kernel_layout.axis_of('O')?;
    let layout = conv.kernel_layout.swapped('O', 'I');
    let because = match conv.direction {
        Direction::Transposed if layout.starts_with('I') => format!(
            "axis {axis} of `weight` is {}. PyTorch stores ConvTranspose weights with the input channels first",
            conv.kernel_out()
        ),
        _ => format!("axis {axis} of `weight` is {}; are O and I exchanged?", conv.kernel_out()),
    };
    Some(Swap { layout, because })
}

/// Returns the other usual data layout (channels last or channels first), if its C axis has the expected number of
/// channels.
fn other_data_layout(call: &CallInfo<'_>, conv: &Convolution, expected: &Dim) -> Option<Swap> {
    if !conv.data_layout.is_plain() {
        return None;
    }
    let spatial: String = conv.data_layout.letters().filter(|letter| !matches!(letter, 'N' | 'C')).collect();
    let other = match conv.data_layout.axis_of('C')? {
        1 => format!("N{spatial}C"),
        _ => format!("NC{spatial}"),
    };
    let axis = Layout::parse(&other).ok()?.axis_of('C')?;
    let dim = call.ty("data").as_tensor()?.shape.dims()?.get(axis)?;
    (call.equal(dim, expected) == Answer::Proved)
        .then(|| Swap { layout: other, because: format!("axis {axis} of `data` is {dim}") })
}

/// Returns the value of `groups` for which the shapes fit, if all extents are known and it differs from the given
/// value.
fn fitting_groups(conv: &Convolution) -> Option<i64> {
    if conv.direction == Direction::Transposed {
        return None;
    }
    let (channels, kernel_in) = (conv.in_channels().as_constant()?, conv.kernel_in().as_constant()?);
    let groups = channels.checked_div(kernel_in).filter(|groups| *groups > 1 && groups * kernel_in == channels)?;
    (conv.kernel_out().as_constant()?.checked_rem(groups)? == 0).then_some(groups)
}

#[cfg(test)]
mod tests {
    use crate::call::Problem;
    use crate::tests::{call_of, number, tensor, text};
    use rx_base::Code;

    /// Returns the help texts of the error that `op` reports for these operands.
    fn helps(op: &str, data: &str, weight: &str, kernel_layout: &str) -> Vec<String> {
        let args = [
            ("data", tensor(data)),
            ("weight", tensor(weight)),
            ("kernel_layout", text(kernel_layout)),
            ("groups", number(1)),
        ];
        call_of(op, &args, |call| match (call.schema.infer)(call) {
            Err(Problem::Report(report)) => {
                assert_eq!(report.code, Code::ConvInChannelsMismatch);
                report.help
            }
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn exchanged_axes_are_recognised() {
        let pytorch = helps("nn.conv2d_transpose", "1 100 4 4:float32", "100 64 4 4:float32", "OIHW");
        assert!(pytorch[0].contains("PyTorch") && pytorch[0].ends_with("kernel_layout=\"IOHW\""), "{pytorch:?}");
        let swapped = helps("nn.conv2d", "1 768 8 8:float32", "768 256 1 1:float32", "OIHW");
        assert!(swapped[0].ends_with("kernel_layout=\"IOHW\""), "{swapped:?}");
        let channels_last = helps("nn.conv2d", "1 64 64 768:float32", "256 768 1 1:float32", "OIHW");
        assert!(channels_last[0].ends_with("data_layout=\"NHWC\""), "{channels_last:?}");
        let depthwise = helps("nn.conv2d", "1 32 8 8:float32", "32 1 3 3:float32", "OIHW");
        assert!(depthwise[0].contains("groups=32"), "{depthwise:?}");
    }

    #[test]
    fn messages_name_both_values() {
        let args = [("data", tensor("1 768 64 64:float32")), ("weight", tensor("256 512 1 1:float32"))];
        call_of("nn.conv2d", &args, |call| {
            let Err(Problem::Report(report)) = (call.schema.infer)(call) else { panic!("no report") };
            assert_eq!(report.message, "conv2d: `data` has 768 input channels, `weight` expects 512");
            assert!(report.primary_label.ends_with("axis 1 (I of OIHW) is 512"), "{}", report.primary_label);
        });
    }
}
