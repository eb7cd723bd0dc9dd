//! *Multinomial sampling* by inversion of the cumulative distribution, from given uniform samples.
//!
//! ```text
//! cumulative[r, c] = Σ_{c' <= c} prob[r, c'];  out[i] = count of classes c with cumulative[row[i], c] <= sample[i]
//! ```

use super::{at_most, common_dtype, index};
use crate::compute::{Lowering, Unsupported};
use crate::reduction::accumulator;
use rx_tir::{BinaryOp, Expr, IterKind};

/// Emits `multinomial_from_uniform`: the first class whose cumulative probability is greater than the sample. If
/// rounding makes all cumulative probabilities smaller, it is the last class.
pub(crate) fn multinomial_from_uniform(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let prob = lowering.tensor("prob")?;
    let (samples, rows) = (lowering.tensor("uniform_sample")?, lowering.tensor("sample_indices")?);
    if [&prob, &samples, &rows].iter().any(|operand| operand.ndim() != 2) {
        return Err(Unsupported::because("the operands must have 2 dimensions"));
    }
    let out = lowering.output(0);
    let builder = &mut lowering.builder;
    let sum_dtype = accumulator(prob.dtype);
    let cumulative = builder.temporary("cumulative", &prob.shape, sum_dtype);
    let [batch, classes] = [0, 1].map(|axis: usize| builder.dim(&prob.shape[axis]));
    let axes = [(batch, IterKind::Spatial), (classes.clone(), IterKind::Ordered)];
    builder.block("cumulative", &axes, |builder, axes| {
        let own = prob.at(builder, axes).cast(sum_dtype);
        // INVARIANT: there are two axes.
        let before = builder.load(cumulative, &[axes[0].clone(), axes[1].clone() - Expr::int(1)]);
        let sum = Expr::select(axes[1].clone().eq(Expr::int(0)), own.clone(), before + own);
        (None, builder.store(cumulative, axes.to_vec(), sum))
    });
    let passed = builder.temporary("passed", &samples.shape, rx_base::DType::INT64);
    let shape = builder.shape(passed);
    let dtype = common_dtype(sum_dtype, samples.dtype);
    // Probabilities are not negative, so the classes with a cumulative probability up to the sample come first and can
    // be counted.
    builder.reduce(
        passed,
        &shape,
        std::slice::from_ref(&classes),
        Expr::int(0),
        BinaryOp::Add,
        |builder, axes, class| {
            let row = index(rows.at(builder, axes));
            let reached = builder.load(cumulative, &[row, class[0].clone()]).cast(dtype);
            let below = at_most(reached, samples.at(builder, axes).cast(dtype));
            (axes.to_vec(), Expr::select(below, Expr::int(1), Expr::int(0)))
        },
    );
    builder.compute(out, |builder, axes| {
        let class = builder.load(passed, axes).min(classes - Expr::int(1));
        class.cast(builder.dtype(out))
    });
    Ok(())
}
