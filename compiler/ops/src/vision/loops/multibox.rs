//! Boxes decoded from anchors (TVM's python/tvm/topi/vision/multibox_transform_loc.py).

use crate::compute::{Lowering, Operand, Unsupported};
use crate::reduction::{Axes, accumulator, reduce_rows};
use rx_base::DType;
use rx_tir::{BinaryOp, BufferId, Expr, Intrinsic, KernelBuilder};

/// The loops of `vision.multibox_transform_loc`.
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

/// Exponentials of the scores beyond each anchor's largest, and their sums over the classes.
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
    /// Four offsets an anchor: x, y, w, h.
    encoded: Operand,
    /// Left, top, right, bottom.
    anchors: Operand,
    /// What x, y, w and h are multiplied by.
    variances: [f64; 4],
    clip: bool,
    dtype: DType,
}

impl Decoder {
    /// A corner of a box: of its centre moved and its size stretched as the offsets say, ymin, xmin, ymax and xmax.
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

    /// The end of a box along x (0) or y (1): the centre, and `side` of the size.
    fn end(&self, builder: &KernelBuilder, [batch, anchor]: [&Expr; 2], axis: usize, side: f64) -> Expr {
        let number = |value: f64| Expr::number(value, self.dtype);
        let anchor_at = |at: usize| {
            let place = [Expr::int(0), anchor.clone(), Expr::int(at as i64)];
            self.anchors.at(builder, &place).cast(self.dtype)
        };
        // INVARIANT: `axis` is 0 or 1, so `axis + 2` is one of the four.
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
