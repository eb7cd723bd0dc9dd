//! *SSD box decoding* (`vision.multibox_transform_loc`): computes class scores and box corners from anchors and encoded
//! offsets.
//!
//! ```text
//! for b, a, c in grid(batch, anchors, 4):
//!     center = anchor_center[a] + loc_pred[b, a*4 + axis] * variance[axis] * anchor_size[a]
//!     size   = exp(loc_pred[b, a*4 + 2 + axis] * variance[2 + axis]) * anchor_size[a]
//!     boxes[b, a, c] = clip(center ± 0.5 * size)
//! ```
//!
//! Requires: `cls_pred` (batch, classes, anchors), `loc_pred` (batch, 4 * anchors), `anchor` (1, anchors, 4).
//! Guarantees: corners are in the order ymin, xmin, ymax, xmax.
//! Reference: TVM python/tvm/topi/vision/multibox_transform_loc.py.

use crate::compute::{Lowering, Operand, Unsupported};
use crate::reduction::{Axes, accumulator, reduce_rows};
use rx_base::DType;
use rx_tir::{BinaryOp, BufferId, Expr, Intrinsic, KernelBuilder};

/// Emits the loops of `vision.multibox_transform_loc`.
pub(crate) fn transform_loc(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (scores, encoded) = (lowering.tensor("cls_pred")?, lowering.tensor("loc_pred")?);
    let anchors = lowering.tensor("anchor")?;
    if [scores.ndim(), encoded.ndim(), anchors.ndim()] != [3, 2, 3] {
        return Err(Unsupported::because("the operands must have 3, 2 and 3 dimensions"));
    }
    let call = lowering.call;
    let dtype = if scores.dtype.is_float() { accumulator(scores.dtype) } else { DType::FLOAT32 };
    let variances = match call.floats("variances").as_deref() {
        Some([x, y, w, h]) => [*x, *y, *w, *h],
        _ => return Err(Unsupported::because("`variances` must be 4 numbers")),
    };
    let (boxes, kept) = (lowering.output(0), lowering.output(1));
    let builder = &mut lowering.builder;
    let decoder = Decoder { encoded, anchors, variances, clip: call.bool("clip") == Some(true), dtype };
    builder.compute(boxes, |builder, axes| decoder.corner(builder, axes).cast(builder.dtype(boxes)));

    let softmax = (call.bool("apply_softmax") != Some(false)).then(|| exponentials(builder, &scores, dtype));
    let threshold = Expr::number(call.float("threshold").unwrap_or(0.0), dtype);
    let keep_background = call.bool("keep_background") != Some(false);
    builder.compute(kept, |builder, axes| {
        // INVARIANT: the axes are batch, class and anchor.
        let [batch, class, anchor] = [0, 1, 2].map(|at: usize| axes[at].clone());
        let score = match softmax {
            Some((exp, sum)) => builder.load(exp, axes) / builder.load(sum, &[batch, anchor]),
            None => scores.at(builder, axes).cast(dtype),
        };
        let mut keep = score.clone().ge(threshold);
        if !keep_background {
            keep = keep.and(!class.eq(Expr::int(0)));
        }
        Expr::select(keep, score, Expr::number(0.0, dtype)).cast(builder.dtype(kept))
    });
    Ok(())
}

/// Emits the numerators and denominators of the softmax over classes: `exp(score - max)` and its sum, per anchor.
fn exponentials(builder: &mut KernelBuilder, scores: &Operand, dtype: DType) -> (BufferId, BufferId) {
    let axes = Axes::new(3, &[1]);
    let rows = (&scores.shape[..], &axes);
    let max = reduce_rows(builder, "max", rows, (BinaryOp::Max, dtype), |builder, index, _| {
        scores.at(builder, index).cast(dtype)
    });
    let exp = builder.temporary("exp", &scores.shape, dtype);
    builder.compute(exp, |builder, index| {
        let score = scores.at(builder, index).cast(dtype);
        Expr::call(Intrinsic::Exp, vec![score - builder.load(max, &axes.kept(index))])
    });
    let sum = reduce_rows(builder, "sum", rows, (BinaryOp::Add, dtype), |builder, index, _| builder.load(exp, index));
    (exp, sum)
}

struct Decoder {
    /// The encoded offsets, four per anchor: x, y, w, h.
    encoded: Operand,
    /// The anchors as left, top, right, bottom.
    anchors: Operand,
    /// The factors of the offsets x, y, w and h.
    variances: [f64; 4],
    clip: bool,
    dtype: DType,
}

impl Decoder {
    /// Returns a corner coordinate of a decoded box. Along the last axis, the coordinates are ymin, xmin, ymax, xmax.
    fn corner(&self, builder: &mut KernelBuilder, axes: &[Expr]) -> Expr {
        // INVARIANT: the axes are batch, anchor and corner.
        let [batch, anchor, corner] = [0, 1, 2].map(|at: usize| axes[at].clone());
        let [ymin, xmin, ymax, xmax] = [(1, -0.5), (0, -0.5), (1, 0.5), (0, 0.5)].map(|(axis, side)| {
            let value = self.end(builder, [&batch, &anchor], axis, side);
            let number = |value| Expr::number(value, self.dtype);
            if self.clip { value.min(number(1.0)).max(number(0.0)) } else { value }
        });
        let is = |at: i64| corner.clone().eq(Expr::int(at));
        Expr::select(is(0), ymin, Expr::select(is(1), xmin, Expr::select(is(2), ymax, xmax)))
    }

    /// Returns an end of a box along x (`axis` 0) or y (`axis` 1): the center plus `side` times the size, where `side`
    /// is -0.5 or 0.5.
    fn end(&self, builder: &KernelBuilder, [batch, anchor]: [&Expr; 2], axis: usize, side: f64) -> Expr {
        let number = |value: f64| Expr::number(value, self.dtype);
        let anchor_at = |at: usize| {
            let place = [Expr::int(0), anchor.clone(), Expr::int(at as i64)];
            self.anchors.at(builder, &place).cast(self.dtype)
        };
        // INVARIANT: `axis` is 0 or 1, so `axis + 2` is less than 4.
        let offset = |at: usize| {
            let place = [batch.clone(), anchor.clone() * Expr::int(4) + Expr::int(at as i64)];
            self.encoded.at(builder, &place).cast(self.dtype) * number(self.variances[at])
        };
        let (low, high) = (anchor_at(axis), anchor_at(axis + 2));
        let size = high.clone() - low.clone();
        let centre = offset(axis) * size.clone() + (low + high) * number(0.5);
        let stretched = Expr::call(Intrinsic::Exp, vec![offset(axis + 2)]) * size;
        centre + stretched * number(side)
    }
}
