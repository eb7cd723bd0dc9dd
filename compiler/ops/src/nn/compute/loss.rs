//! *Losses*: cross entropy, negative log likelihood and its gradient.
//!
//! ```text
//! nll_loss: out[n] = -predictions[n, targets[n]] * weights[targets[n]], 0 where targets[n] == ignore_index
//!           reduction "mean": Σ out[n] / Σ weights[targets[n]]
//! ```
//!
//! Requires: targets in `[0, C)` or equal to `ignore_index`.
//! Reference: TVM python/tvm/topi/nn/loss.py.

use crate::compute::{Lowering, Operand, Unsupported};
use crate::reduction::{Axes, accumulator, reduce_rows};
use rx_base::{DType, Dim};
use rx_tir::{BinaryOp, BufferId, CompareOp, Expr, KernelBuilder};

/// Emits the negative sum of `predictions * labels`, divided by the batch size if there is a batch axis.
pub(crate) fn cross_entropy(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (predictions, labels) = (lowering.tensor("predictions")?, lowering.tensor("labels")?);
    let out = lowering.output(0);
    let builder = &mut lowering.builder;
    let dtype = accumulator(builder.dtype(out));
    let axes = all_axes(predictions.ndim());
    let rows = (&predictions.shape[..], &axes);
    let sum = reduce_rows(builder, "sum", rows, (BinaryOp::Add, dtype), |builder, index, _| {
        predictions.at(builder, index).cast(dtype) * labels.at(builder, index).cast(dtype)
    });
    builder.compute(out, |builder, _| {
        let sum = builder.load(sum, &[]);
        let loss = match &predictions.shape[..] {
            [batch, _, ..] => sum / builder.dim(batch).cast(dtype),
            _ => sum,
        };
        let out_dtype = builder.dtype(out);
        (-loss).cast(out_dtype)
    });
    Ok(())
}

fn all_axes(ndim: usize) -> Axes {
    Axes::new(ndim, &(0..ndim).collect::<Vec<_>>())
}

/// Emits `-predictions[target] * weights[target]`, or 0 for an ignored target; then the sum, the weighted mean, or all
/// losses.
pub(crate) fn nll_loss(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let loss = Likelihood::of(lowering)?;
    let reduction = lowering.call.str("reduction").unwrap_or("mean");
    let out = lowering.output(0);
    let builder = &mut lowering.builder;
    let out_dtype = builder.dtype(out);
    if reduction == "none" {
        builder.compute(out, |builder, index| loss.loss(builder, index).cast(out_dtype));
        return Ok(());
    }
    let axes = all_axes(loss.targets.ndim());
    let rows: (&[Dim], &Axes) = (&loss.targets.shape, &axes);
    let sum =
        reduce_rows(builder, "sum", rows, (BinaryOp::Add, loss.dtype), |builder, index, _| loss.loss(builder, index));
    let weight = (reduction == "mean").then(|| loss.total_weight(builder));
    builder.compute(out, |builder, _| {
        let sum = builder.load(sum, &[]);
        match weight {
            Some(weight) => (sum / builder.load(weight, &[])).cast(out_dtype),
            None => sum.cast(out_dtype),
        }
    });
    Ok(())
}

/// The operands and attributes of a negative log likelihood.
struct Likelihood {
    predictions: Operand,
    targets: Operand,
    weights: Option<Operand>,
    ignored: i64,
    /// The dtype of the computation.
    dtype: DType,
}

impl Likelihood {
    fn of(lowering: &mut Lowering<'_>) -> Result<Likelihood, Unsupported> {
        let (predictions, targets) = (lowering.tensor("predictions")?, lowering.tensor("targets")?);
        let weights = lowering.optional_tensor("weights")?;
        if predictions.ndim() != targets.ndim() + 1 {
            return Err(Unsupported::because("`predictions` must have one dimension more than `targets`"));
        }
        if let Some(other) = weights.as_ref().map(Operand::ndim).filter(|ndim| *ndim != 1) {
            return Err(Unsupported(format!("`weights` requires 1 dimension, of classes; found {other}")));
        }
        let ignored = lowering.call.int("ignore_index").unwrap_or(-100);
        Ok(Likelihood { dtype: accumulator(predictions.dtype), predictions, targets, weights, ignored })
    }

    /// Emits the sum of the weights of all targets that are not ignored.
    fn total_weight(&self, builder: &mut KernelBuilder) -> BufferId {
        let axes = all_axes(self.targets.ndim());
        let rows = (&self.targets.shape[..], &axes);
        reduce_rows(builder, "weight", rows, (BinaryOp::Add, self.dtype), |builder, index, _| {
            self.weight(builder, index)
        })
    }

    fn target(&self, builder: &KernelBuilder, index: &[Expr]) -> Expr {
        self.targets.at(builder, index).cast(DType::INT64)
    }

    /// Returns `value`, or 0 for an ignored target. The value, which may load out of bounds, is only evaluated for
    /// other targets.
    fn unless_ignored(&self, target: Expr, value: Expr) -> Expr {
        let counts = Expr::compare(CompareOp::Ne, target, Expr::int(self.ignored));
        Expr::select(counts, value, Expr::number(0.0, self.dtype))
    }

    fn plain_weight(&self, builder: &KernelBuilder, target: &Expr) -> Expr {
        match &self.weights {
            Some(weights) => weights.at(builder, std::slice::from_ref(target)).cast(self.dtype),
            None => Expr::number(1.0, self.dtype),
        }
    }

    fn weight(&self, builder: &KernelBuilder, index: &[Expr]) -> Expr {
        let target = self.target(builder, index);
        let weight = self.plain_weight(builder, &target);
        self.unless_ignored(target, weight)
    }

    /// Returns the loss of one target.
    fn loss(&self, builder: &KernelBuilder, index: &[Expr]) -> Expr {
        let target = self.target(builder, index);
        // For (N, C, d1, …) the class is the second index; for (C,) it is the only one.
        let mut place = index.to_vec();
        place.insert(place.len().min(1), target.clone());
        let loss = -self.predictions.at(builder, &place).cast(self.dtype);
        let loss = match &self.weights {
            Some(_) => loss * self.plain_weight(builder, &target),
            None => loss,
        };
        self.unless_ignored(target, loss)
    }
}

/// Emits the gradient of [`nll_loss`] with respect to the predictions. At the target's class it is minus the target's
/// weight times the output's gradient, divided by the total weight for a mean. It is 0 for all other classes and for
/// ignored targets.
pub(crate) fn nll_loss_backward(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let gradient = lowering.tensor("output_grad")?;
    let loss = Likelihood::of(lowering)?;
    if gradient.ndim() > loss.targets.ndim() {
        return Err(Unsupported::because("`output_grad` has more dimensions than `targets`"));
    }
    let is_mean = lowering.call.str("reduction").unwrap_or("mean") == "mean";
    let out = lowering.output(0);
    let builder = &mut lowering.builder;
    let total = is_mean.then(|| loss.total_weight(builder));
    builder.compute(out, |builder, index| {
        // For (N, C, d1, …) the class is the second index; for (C,) it is the only one.
        let mut place = index.to_vec();
        let class = place.remove(place.len().min(2) - 1);
        let target = loss.target(builder, &place);
        let weighted = loss.plain_weight(builder, &target) * gradient.broadcast_at(builder, &place).cast(loss.dtype);
        let share = match total {
            Some(total) => weighted / builder.load(total, &[]),
            None => weighted,
        };
        let of_target = loss.unless_ignored(target.clone(), -share);
        Expr::select(target.eq(class), of_target, Expr::number(0.0, loss.dtype)).cast(builder.dtype(out))
    });
    Ok(())
}
