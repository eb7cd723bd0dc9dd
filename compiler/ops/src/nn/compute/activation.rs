//! *Activations, softmax and dropout.* Floats narrower than 32 bits are computed in `float32` and rounded once.
//!
//! ```text
//! softmax(x, axis=1), x: [n, k]
//! max[i] = max_k x[i, k];  sum[i] = Σ_k exp(x[i, k] - max[i]);  out[i, k] = exp(x[i, k] - max[i]) / sum[i]
//! ```
//!
//! Guarantees: softmax subtracts the row maximum, so `exp` does not overflow.
//! Reference: TVM python/tvm/topi/nn/softmax.py and elemwise.py.

use crate::axes::normalize_axis;
use crate::compute::{Lowering, Operand, Unsupported};
use crate::reduction::{Axes, accumulator, identity, reduce_rows};
use rx_base::DType;
use rx_tir::func::BufferId;
use rx_tir::{BinaryOp, CompareOp, Expr, Intrinsic, KernelBuilder};

/// Emits `out = function(data)`, element by element, in the accumulator's dtype.
fn unary(lowering: &mut Lowering<'_>, function: impl FnOnce(Expr) -> Expr) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    lowering.compute(|builder, axes| function(data.at(builder, axes).cast(accumulator(data.dtype))).cast(data.dtype));
    Ok(())
}

/// Creates a constant with the dtype of `value`.
fn like(value: &Expr, number: f64) -> Expr {
    Expr::number(number, value.dtype())
}

fn positive(value: &Expr) -> Expr {
    Expr::compare(CompareOp::Gt, value.clone(), like(value, 0.0))
}

fn call(function: Intrinsic, value: Expr) -> Expr {
    Expr::call(function, vec![value])
}

/// Emits `max(data, 0)`.
pub(crate) fn relu(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    lowering.compute(|builder, axes| {
        let value = data.at(builder, axes);
        let zero = like(&value, 0.0);
        value.max(zero)
    });
    Ok(())
}

/// Emits `0.5 * data * (1 + erf(data / sqrt(2)))`.
pub(crate) fn gelu(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    unary(lowering, |x| {
        let erf = call(Intrinsic::Erf, x.clone() * like(&x, std::f64::consts::FRAC_1_SQRT_2));
        let (half, one) = (like(&x, 0.5), like(&x, 1.0));
        x * half * (one + erf)
    })
}

/// Emits `0.5 * data * (1 + tanh(sqrt(2 / π) * (data + 0.044715 * data³)))`.
pub(crate) fn gelu_tanh(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    unary(lowering, |x| {
        let (half, one) = (like(&x, 0.5), like(&x, 1.0));
        let scale = like(&x, (2.0 / std::f64::consts::PI).sqrt());
        let inner = scale * x.clone() * (one.clone() + like(&x, 0.044715) * x.clone() * x.clone());
        half * x * (one + call(Intrinsic::Tanh, inner))
    })
}

/// Emits `λ * (max(data, 0) + min(0, α * (exp(data) - 1)))`.
pub(crate) fn selu(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    unary(lowering, |x| {
        let (alpha, scale) = (like(&x, 1.673_263_242_354_377_2), like(&x, 1.050_700_987_355_480_5));
        let zero = like(&x, 0.0);
        let exp = call(Intrinsic::Exp, x.clone());
        let negative = alpha * (exp - like(&x, 1.0));
        scale * (x.max(zero.clone()) + zero.min(negative))
    })
}

/// Emits `data * sigmoid(data)`.
pub(crate) fn silu(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    unary(lowering, |x| x.clone() * call(Intrinsic::Sigmoid, x))
}

/// Emits `data` where positive, otherwise `alpha * data`.
pub(crate) fn leakyrelu(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let alpha = attribute(lowering, "alpha")?;
    unary(lowering, |x| {
        let scaled = x.clone() * like(&x, alpha);
        Expr::select(positive(&x), x, scaled)
    })
}

/// Emits `log(1 + exp(beta * data)) / beta`, or `data` itself where `beta * data > threshold`.
pub(crate) fn softplus(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (beta, threshold) = (attribute(lowering, "beta")?, attribute(lowering, "threshold")?);
    unary(lowering, |x| {
        let scaled = x.clone() * like(&x, beta);
        let linear = Expr::compare(CompareOp::Gt, scaled.clone(), like(&x, threshold));
        let smooth = call(Intrinsic::Log1p, call(Intrinsic::Exp, scaled)) / like(&x, beta);
        Expr::select(linear, x, smooth)
    })
}

/// Emits `data` where positive, otherwise `alpha * data`, with one `alpha` per channel or a single one.
pub(crate) fn prelu(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (data, alpha) = (lowering.tensor("data")?, lowering.tensor("alpha")?);
    if alpha.ndim() != 1 {
        return Err(Unsupported::because("`alpha` must have one dimension"));
    }
    let axis = normalize_axis(lowering.call, "axis", data.ndim(), lowering.call.needed_int("axis")?)?;
    lowering.compute(|builder, axes| {
        // INVARIANT: a normalized axis is less than the rank.
        let slope = alpha.broadcast_at(builder, std::slice::from_ref(&axes[axis]));
        let value = data.at(builder, axes);
        let slope = slope.cast(value.dtype());
        Expr::select(positive(&value), value.clone(), value * slope)
    });
    Ok(())
}

fn attribute(lowering: &Lowering<'_>, name: &str) -> Result<f64, Unsupported> {
    lowering.call.float(name).ok_or_else(|| Unsupported(format!("the value of `{name}` is not known")))
}

/// Emits softmax: `exp(data - max)` divided by its sum along an axis.
pub(crate) fn softmax(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let rows = Rows::of(lowering)?;
    let out = lowering.output(0);
    let Rows { data, axes, dtype } = &rows;
    let builder = &mut lowering.builder;
    let max = rows.max(builder);
    let exp = builder.temporary("exp", &data.shape, *dtype);
    builder.compute(exp, |builder, index| rows.exp(builder, max, index));
    let sum = reduce_rows(builder, "sum", (&data.shape, axes), (BinaryOp::Add, *dtype), |builder, index, _| {
        builder.load(exp, index)
    });
    builder.compute(out, |builder, index| {
        (builder.load(exp, index) / builder.load(sum, &axes.kept(index))).cast(data.dtype)
    });
    Ok(())
}

/// Emits log-softmax: `data - max - log(Σ exp(data - max))` along an axis.
pub(crate) fn log_softmax(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let rows = Rows::of(lowering)?;
    let out = lowering.output(0);
    let Rows { data, axes, dtype } = &rows;
    let builder = &mut lowering.builder;
    let max = rows.max(builder);
    let sum = reduce_rows(builder, "sum", (&data.shape, axes), (BinaryOp::Add, *dtype), |builder, index, _| {
        rows.exp(builder, max, index)
    });
    builder.compute(out, |builder, index| {
        let log = call(Intrinsic::Log, builder.load(sum, &axes.kept(index)));
        (rows.shifted(builder, max, index) - log).cast(data.dtype)
    });
    Ok(())
}

/// The operand of a softmax, split into rows along the axis.
struct Rows {
    data: Operand,
    axes: Axes,
    /// The dtype of the computation.
    dtype: DType,
}

impl Rows {
    fn of(lowering: &mut Lowering<'_>) -> Result<Rows, Unsupported> {
        let data = lowering.tensor("data")?;
        let axis = normalize_axis(lowering.call, "axis", data.ndim(), lowering.call.needed_int("axis")?)?;
        Ok(Rows { axes: Axes::new(data.ndim(), &[axis]), dtype: accumulator(data.dtype), data })
    }

    fn max(&self, builder: &mut KernelBuilder) -> BufferId {
        let rows = (&self.data.shape[..], &self.axes);
        reduce_rows(builder, "max", rows, (BinaryOp::Max, self.dtype), |builder, index, _| {
            self.data.at(builder, index).cast(self.dtype)
        })
    }

    fn shifted(&self, builder: &KernelBuilder, max: BufferId, index: &[Expr]) -> Expr {
        self.data.at(builder, index).cast(self.dtype) - builder.load(max, &self.axes.kept(index))
    }

    fn exp(&self, builder: &KernelBuilder, max: BufferId, index: &[Expr]) -> Expr {
        call(Intrinsic::Exp, self.shifted(builder, max, index))
    }
}

/// Emits dropout in inference mode: the identity, and a mask of ones.
pub(crate) fn dropout(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    let (out, mask) = (lowering.output(0), lowering.output(1));
    lowering.builder.compute(out, |builder, axes| data.at(builder, axes));
    lowering.builder.compute(mask, |_, _| identity(BinaryOp::Mul, data.dtype));
    Ok(())
}
