//! Sliding windows of convolutions and poolings: attributes with one value per spatial axis, and formulas of output
//! extents.

use crate::call::{CallInfo, ParamPlace, Problem, operand};
use rx_base::{Answer, Code, Dim, counted, one_of};

/// Returns the spatial letters of a layout with `rank` spatial axes.
pub(crate) const fn spatial_letters(rank: usize) -> &'static str {
    match rank {
        1 => "W",
        2 => "HW",
        _ => "DHW",
    }
}

/// Returns the letters of the default data layout: batch, channels, spatial axes.
pub(crate) const fn data_letters(rank: usize) -> &'static str {
    match rank {
        1 => "NCW",
        2 => "NCHW",
        _ => "NCDHW",
    }
}

/// Returns attribute `name` with one value per spatial axis; a single value applies to all axes.
///
/// # Errors
/// Reports a wrong number of values, and a value less than `least`.
pub(crate) fn per_axis(call: &CallInfo<'_>, name: &'static str, rank: usize, least: i64) -> Result<Vec<i64>, Problem> {
    let given = call.needed_ints(name)?;
    let values = match &given[..] {
        [single] => vec![*single; rank],
        _ if given.len() == rank => given,
        _ => return Err(wrong_count(call, name, &[1, rank], &given)),
    };
    match values.iter().find(|value| **value < least) {
        Some(value) => {
            let message = format_args!("{name} must be at least {least}, it is {value}");
            Err(call.error(Code::AttrOutOfRange, ParamPlace::Param(name), message).into())
        }
        None => Ok(values),
    }
}

/// Returns the padding before and after each spatial axis. One value applies to all sides, one value per axis to both
/// sides of the axis. Otherwise all values before the axes come first: `[top, left, bottom, right]`.
///
/// # Errors
/// Reports a wrong number of values.
pub(crate) fn padding(call: &CallInfo<'_>, rank: usize) -> Result<Vec<(i64, i64)>, Problem> {
    let given = call.needed_ints("padding")?;
    match &given[..] {
        [single] => Ok(vec![(*single, *single); rank]),
        _ if given.len() == 2 * rank => {
            let (before, after) = given.split_at(rank);
            Ok(before.iter().copied().zip(after.iter().copied()).collect())
        }
        _ if given.len() == rank => Ok(given.iter().map(|value| (*value, *value)).collect()),
        _ => Err(wrong_count(call, "padding", &[1, rank, 2 * rank], &given)),
    }
}

fn wrong_count(call: &CallInfo<'_>, name: &'static str, allowed: &[usize], given: &[i64]) -> Problem {
    let mut counts: Vec<String> = allowed.iter().map(usize::to_string).collect();
    counts.dedup();
    let message = format_args!("{name} has {}, it takes {}", counted(given.len(), "value"), one_of(&counts));
    call.error(Code::AttrBadValue, ParamPlace::Param(name), message).into()
}

/// A sliding window along one spatial axis.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The letter of the axis, such as `H`.
    pub letter: char,
    /// The extent of the input.
    pub input: Dim,
    /// The extent of the kernel or pooling window.
    pub kernel: Dim,
    /// The padding before and after.
    pub padding: (i64, i64),
    /// The distance between adjacent windows.
    pub stride: i64,
    /// The distance between adjacent taps of a window.
    pub dilation: i64,
}

impl Window {
    /// Returns the distance from the first tap to the last: `dilation * (kernel - 1)`.
    fn reach(&self) -> Dim {
        &Dim::constant(self.dilation) * &(&self.kernel - &Dim::constant(1))
    }

    fn padded(&self) -> Dim {
        &(&self.input + &Dim::constant(self.padding.0)) + &Dim::constant(self.padding.1)
    }

    /// Returns the largest offset of a window from the first one: `padded - reach - 1`.
    fn room(&self) -> Dim {
        &(&self.padded() - &self.reach()) - &Dim::constant(1)
    }

    /// Returns the number of windows: `(input + padding - dilation * (kernel - 1) - 1) // stride + 1`.
    pub(crate) fn floor_extent(&self) -> Dim {
        &self.room().floor_div(&Dim::constant(self.stride)) + &Dim::constant(1)
    }

    /// Returns the number of windows with `ceil_mode`. The last window may extend past the padded input, but must begin
    /// within the input or the padding before it.
    ///
    /// TVM (src/relax/op/nn/pooling.cc) rounds up, and subtracts one if the last window begins too late, which is a
    /// case distinction on the input's extent. Here the difference `excess` between the rounded-up offset and the
    /// number of allowed beginnings does not depend on a symbolic input, so it selects a closed form.
    pub(crate) fn ceil_extent(&self) -> Dim {
        let (stride, one) = (Dim::constant(self.stride), Dim::constant(1));
        let rounded = &(&self.room() + &stride) - &one;
        let beginnings = &self.input + &Dim::constant(self.padding.0);
        let excess = &rounded - &beginnings;
        match excess.as_constant() {
            // The last window always begins early enough.
            Some(excess) if excess < 0 => &rounded.floor_div(&stride) + &one,
            Some(excess) if excess < self.stride => (&(&beginnings + &stride) - &one).floor_div(&stride),
            Some(_) => rounded.floor_div(&stride),
            None => Dim::ERROR,
        }
    }

    /// Prints the formula with its values: `(4 + 0 + 0 - 1*(7 - 1) - 1) // 1 + 1`.
    pub(crate) fn formula(&self) -> String {
        let (before, after) = self.padding;
        format!(
            "({} + {before} + {after} - {}*({} - 1) - 1) // {} + 1",
            operand(&self.input),
            self.dilation,
            operand(&self.kernel),
            self.stride
        )
    }

    /// Whether the output has no elements, for all values of the symbols.
    pub(crate) fn is_empty(call: &CallInfo<'_>, extent: &Dim) -> bool {
        call.at_least(extent, &Dim::constant(1)) == Answer::Refuted
    }

    /// Creates the error that no window fits. `kernel_param` is the parameter with the window's size.
    pub(crate) fn empty_report(&self, call: &CallInfo<'_>, extent: &Dim, kernel_param: &'static str) -> Problem {
        let (letter, kernel, (before, after)) = (self.letter, &self.kernel, self.padding);
        let message = format_args!("the output is empty: its {letter} extent would be {extent}");
        let window = match self.dilation {
            1 => format!("the window covers {kernel} along {letter}"),
            dilation => format!("the window covers {dilation}*({} - 1) + 1 along {letter}", operand(kernel)),
        };
        call.error(Code::ConvEmptyOutput, ParamPlace::Param(kernel_param), message)
            .with_primary_label(window)
            .with_label(
                ParamPlace::Param("data"),
                format!("the input has {} + {before} + {after} along {letter}, padding included", self.input),
            )
            .with_note(format!("{} = {extent}", self.formula()))
            .with_help("more padding or a smaller window gives an output")
            .into()
    }
}

/// Reports a hint if a dilation has no effect, because the window has one tap along every dilated axis.
pub(crate) fn hint_idle_dilation(call: &CallInfo<'_>, windows: &[Window]) {
    let mut dilated = windows.iter().filter(|window| window.dilation > 1).peekable();
    if dilated.peek().is_none() || dilated.any(|window| window.kernel.as_constant() != Some(1)) {
        return;
    }
    let extents: Vec<String> = windows.iter().map(|window| window.kernel.to_string()).collect();
    let message = format_args!("dilation has no effect on a window of extent {}", extents.join("x"));
    call.report(call.error(Code::AttrNoEffect, ParamPlace::Param("dilation"), message));
}

#[cfg(test)]
mod tests {
    use super::Window;
    use crate::tests::dims;
    use rx_base::Dim;

    fn window(input: &str, kernel: i64, padding: (i64, i64), stride: i64, dilation: i64) -> Window {
        let input = dims(input).remove(0);
        Window { letter: 'H', input, kernel: Dim::constant(kernel), padding, stride, dilation }
    }

    /// The definition as in TVM: round up, then drop a last window that begins after the input.
    fn reference(input: i64, kernel: i64, padding: (i64, i64), stride: i64, dilation: i64) -> i64 {
        let room = input + padding.0 + padding.1 - dilation * (kernel - 1) - 1 + stride - 1;
        let raw = room.div_euclid(stride) + 1;
        if (raw - 1) * stride >= input + padding.0 { raw - 1 } else { raw }
    }

    #[test]
    fn ceil_mode_agrees_with_its_definition() {
        for (input, kernel, before, after) in [(32, 3, 0, 0), (32, 5, 0, 0), (7, 2, 1, 1), (7, 1, 0, 3), (5, 1, 2, 4)] {
            for (stride, dilation) in [(1, 1), (2, 1), (3, 1), (4, 2), (2, 3)] {
                let wanted = reference(input, kernel, (before, after), stride, dilation);
                let given = window(&input.to_string(), kernel, (before, after), stride, dilation).ceil_extent();
                assert_eq!(given.as_constant(), Some(wanted), "{input} {kernel} {before} {after} {stride} {dilation}");
            }
        }
        let half = dims("n")[0].floor_div(&Dim::constant(2));
        assert_eq!(window("n", 3, (1, 1), 2, 2).ceil_extent(), half);
    }
}
