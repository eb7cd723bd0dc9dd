//! *Padding and pixel shuffle.*
//!
//! ```text
//! pad(x, (1, 2), "constant", v), x: [n]:  out[i] = x[i - 1] if 0 <= i - 1 < n else v,  out: [n + 3]
//! ```
//!
//! Reference: TVM python/tvm/topi/nn/pad.py and pixel_shuffle.py.

use crate::compute::{Lowering, Unsupported};
use rx_tir::{Expr, KernelBuilder};

/// Emits padding, with a constant or with elements of the tensor, as `pad_mode` states.
pub(crate) fn pad(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    let widths = lowering.call.needed_ints("pad_width")?;
    let mode = Mode::of(lowering)?;
    let out = lowering.output(0);
    let builder = &mut lowering.builder;
    let extents = data.extents(builder);
    let value = Expr::number(lowering.call.float("pad_value").unwrap_or(0.0), data.dtype);
    builder.compute(out, |builder, axes| {
        let mut inside = Expr::bool(true);
        let mut source = Vec::with_capacity(axes.len());
        for ((axis, extent), sides) in axes.iter().zip(&extents).zip(widths.chunks(2)) {
            // INVARIANT: the struct-info rule requires two widths per axis.
            let (before, after) = (sides[0], sides[1]);
            let position = axis.clone() - Expr::int(before);
            let (index, valid) = mode.source(position, extent, (before > 0, after > 0));
            source.push(index);
            inside = inside.and(valid);
        }
        Expr::select(inside, data.at(builder, &source), value)
    });
    Ok(())
}

/// The contents of the padding.
#[derive(Clone, Copy)]
enum Mode {
    /// A constant value.
    Constant,
    /// The mirrored tensor, without repeating its edge: `c b | a b c | b a`.
    Reflect,
    /// Copies of the edge element: `a a | a b c | c c`.
    Replicate,
    /// The opposite end of the tensor: `b c | a b c | a b`.
    Circular,
}

impl Mode {
    fn of(lowering: &Lowering<'_>) -> Result<Mode, Unsupported> {
        match lowering.call.str("pad_mode") {
            Some("constant") | None => Ok(Mode::Constant),
            Some("reflect") => Ok(Mode::Reflect),
            Some("replicate") => Ok(Mode::Replicate),
            Some("circular") => Ok(Mode::Circular),
            Some(other) => Err(Unsupported(format!("pad_mode \"{other}\" is not known"))),
        }
    }

    /// Returns the index of the data element for `position`, which may be out of bounds on either side. Also returns
    /// whether it is an element and not the constant.
    fn source(self, position: Expr, extent: &Expr, (before, after): (bool, bool)) -> (Expr, Expr) {
        let always = || Expr::bool(true);
        if !before && !after {
            return (position, always());
        }
        let (zero, last) = (Expr::int(0), extent.clone() - Expr::int(1));
        let (is_before, is_after) = (position.clone().lt(zero.clone()), position.clone().ge(extent.clone()));
        let only = |side: bool, condition: Expr| if side { condition } else { Expr::bool(false) };
        let (is_before, is_after) = (only(before, is_before), only(after, is_after));
        match self {
            Mode::Constant => (position, (!is_before).and(!is_after)),
            Mode::Replicate => {
                let high = Expr::select(is_after, last, position);
                (Expr::select(is_before, zero, high), always())
            }
            Mode::Reflect => {
                let high = Expr::select(is_after, last * Expr::int(2) - position.clone(), position.clone());
                (Expr::select(is_before, zero - position, high), always())
            }
            Mode::Circular => (position.floor_mod(extent.clone()), always()),
        }
    }
}

/// Emits `out[…, c, h, w] = data[…, c * r² + (h % r) * r + w % r, h // r, w // r]`.
pub(crate) fn pixel_shuffle(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    let factor = Expr::int(lowering.call.needed_int("upscale_factor")?);
    let value = |builder: &mut KernelBuilder, axes: &[Expr]| {
        let [lead @ .., channel, row, column] = axes else { return Expr::number(0.0, data.dtype) };
        let within = row.clone().floor_mod(factor.clone()) * factor.clone() + column.clone().floor_mod(factor.clone());
        let mut source = lead.to_vec();
        source.extend([
            channel.clone() * (factor.clone() * factor.clone()) + within,
            row.clone().floor_div(factor.clone()),
            column.clone().floor_div(factor.clone()),
        ]);
        data.at(builder, &source)
    };
    lowering.compute(value);
    Ok(())
}
