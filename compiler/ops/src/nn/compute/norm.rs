//! *Normalizations*: batch, layer, instance, group and RMS normalization.
//!
//! ```text
//! layer_norm(x, axes=[1]), x: [n, k]
//! mean[i] = Σ_k x[i, k] / K;  variance[i] = Σ_k (x[i, k] - mean[i])² / K
//! out[i, k] = (x[i, k] - mean[i]) * rsqrt(variance[i] + epsilon) * gamma[k] + beta[k]
//! ```
//!
//! Guarantees: the variance is computed in a second pass, after the mean. Floats narrower than 32 bits are computed in
//! `float32`, and results are rounded once.
//! Reference: TVM python/tvm/topi/nn/batch_norm.py, layer_norm.py, instance_norm.py, group_norm.py and rms_norm.py.

use crate::axes::{normalize_axes, normalize_axis};
use crate::compute::{Lowering, Operand, Unsupported};
use crate::reduction::{Axes, accumulator, reduce_rows};
use rx_base::{DType, Dim};
use rx_tir::func::BufferId;
use rx_tir::{BinaryOp, Expr, Intrinsic, KernelBuilder};

/// The operands and attributes that all normalizations share.
struct Norm {
    data: Operand,
    /// The dtype of the computation.
    dtype: DType,
    epsilon: f64,
    gamma: Option<Operand>,
    beta: Option<Operand>,
}

impl Norm {
    /// Reads the operands. `scale=False` omits `gamma`, `center=False` omits `beta`.
    fn of(lowering: &mut Lowering<'_>) -> Result<Norm, Unsupported> {
        let data = lowering.tensor("data")?;
        let mut parameter = |flag, name| match lowering.call.bool(flag) {
            Some(false) => Ok(None),
            _ => lowering.tensor(name).map(Some),
        };
        let (gamma, beta) = (parameter("scale", "gamma")?, parameter("center", "beta")?);
        Ok(Norm { dtype: accumulator(data.dtype), data, epsilon: epsilon(lowering)?, gamma, beta })
    }

    fn value(&self, builder: &KernelBuilder, index: &[Expr]) -> Expr {
        self.data.at(builder, index).cast(self.dtype)
    }

    /// Returns `normalized * gamma + beta`, with the parameters at `index`, rounded to the data's dtype.
    fn scaled(&self, builder: &KernelBuilder, normalized: Expr, index: &[Expr]) -> Expr {
        let parameter = |operand: &Operand| operand.at(builder, index).cast(self.dtype);
        let scaled = match &self.gamma {
            Some(gamma) => normalized * parameter(gamma),
            None => normalized,
        };
        let shifted = match &self.beta {
            Some(beta) => scaled + parameter(beta),
            None => scaled,
        };
        shifted.cast(self.data.dtype)
    }

    /// Returns `variance + epsilon`.
    fn stabilized(&self, variance: Expr) -> Expr {
        let epsilon = Expr::number(self.epsilon, variance.dtype());
        variance + epsilon
    }

    fn read_axes(&self, lowering: &Lowering<'_>) -> Result<Vec<usize>, Unsupported> {
        axes_of(lowering, self.data.ndim())
    }
}

fn epsilon(lowering: &Lowering<'_>) -> Result<f64, Unsupported> {
    lowering.call.float("epsilon").ok_or_else(|| Unsupported::because("the value of `epsilon` is not known"))
}

fn axes_of(lowering: &Lowering<'_>, ndim: usize) -> Result<Vec<usize>, Unsupported> {
    Ok(normalize_axes(lowering.call, "axes", ndim, &lowering.call.needed_ints("axes")?)?)
}

/// Row sums and the number of elements per row; the mean is their quotient.
struct Means {
    sum: BufferId,
    count: Expr,
}

impl Means {
    /// Emits the sums of `value(index)` over `axes` of `shape`.
    fn of(
        builder: &mut KernelBuilder,
        name: &str,
        (shape, axes): (&[Dim], &Axes),
        dtype: DType,
        value: impl FnOnce(&mut KernelBuilder, &[Expr], &[Expr]) -> Expr,
    ) -> Means {
        let sum = reduce_rows(builder, name, (shape, axes), (BinaryOp::Add, dtype), value);
        Means { sum, count: axes.count(builder, shape, dtype) }
    }

    /// Returns the mean of a row.
    fn at(&self, builder: &KernelBuilder, row: &[Expr]) -> Expr {
        builder.load(self.sum, row) / self.count.clone()
    }
}

/// Means and variances of rows.
struct Moments {
    mean: Means,
    variance: Means,
}

impl Moments {
    /// Emits the mean and variance of `value(index)` over `axes` of `shape`.
    fn of(
        builder: &mut KernelBuilder,
        rows: (&[Dim], &Axes),
        dtype: DType,
        value: &dyn Fn(&KernelBuilder, &[Expr]) -> Expr,
    ) -> Moments {
        let mean = Means::of(builder, "sum", rows, dtype, |builder, index, _| value(builder, index));
        let variance = Means::of(builder, "square_sum", rows, dtype, |builder, index, row| {
            let deviation = value(builder, index) - mean.at(builder, row);
            deviation.clone() * deviation
        });
        Moments { mean, variance }
    }
}

/// Emits batch normalization. In inference it uses the running statistics and returns them unchanged. In training it
/// uses the statistics of the batch and moves the running statistics towards them by `momentum`, without bias
/// correction of the variance (TVM python/tvm/topi/nn/batch_norm.py).
pub(crate) fn batch_norm(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let norm = Norm::of(lowering)?;
    let running = [lowering.tensor("moving_mean")?, lowering.tensor("moving_var")?];
    let ndim = norm.data.ndim();
    let axis = normalize_axis(lowering.call, "axis", ndim, lowering.call.needed_int("axis")?)?;
    let others: Vec<usize> = (0..ndim).filter(|other| *other != axis).collect();
    let axes = Axes::new(ndim, &others);
    let training = lowering.call.bool("training") == Some(true);
    let momentum = lowering.call.float("momentum").unwrap_or(0.1);
    let outputs = [lowering.output(0), lowering.output(1), lowering.output(2)];
    let builder = &mut lowering.builder;
    let moments = training.then(|| {
        Moments::of(builder, (&norm.data.shape, &axes), norm.dtype, &|builder, index| norm.value(builder, index))
    });
    // Returns the mean and variance of a channel.
    let statistics = |builder: &KernelBuilder, channel: &[Expr]| match &moments {
        Some(moments) => [moments.mean.at(builder, channel), moments.variance.at(builder, channel)],
        None => running.each_ref().map(|operand| operand.at(builder, channel).cast(norm.dtype)),
    };
    builder.compute(outputs[0], |builder, index| {
        let channel = axes.kept(index);
        let [mean, variance] = statistics(builder, &channel);
        let deviation = Expr::call(Intrinsic::Sqrt, vec![norm.stabilized(variance)]);
        norm.scaled(builder, (norm.value(builder, index) - mean) / deviation, &channel)
    });
    for (at, operand) in running.iter().enumerate() {
        builder.compute(outputs[at + 1], |builder, channel| {
            let old = operand.at(builder, channel);
            if !training {
                return old;
            }
            let new = statistics(builder, channel)[at].clone();
            let weighted = |value: Expr, weight: f64| value * Expr::number(weight, norm.dtype);
            (weighted(old.cast(norm.dtype), 1.0 - momentum) + weighted(new, momentum)).cast(operand.dtype)
        });
    }
    Ok(())
}

/// Emits `(data - mean) / sqrt(variance + epsilon) * gamma + beta`, with statistics over `axes`. The parameters have
/// the extents of these axes.
pub(crate) fn layer_norm(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let norm = Norm::of(lowering)?;
    let given = norm.read_axes(lowering)?;
    let axes = Axes::new(norm.data.ndim(), &given);
    // INVARIANT: normalized axes are less than the rank.
    normalize(lowering, &norm, &axes, |index| given.iter().map(|axis| index[*axis].clone()).collect());
    Ok(())
}

/// Emits the same formula as [`layer_norm`], with one `gamma` and `beta` per channel.
pub(crate) fn instance_norm(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let norm = Norm::of(lowering)?;
    let axes = Axes::new(norm.data.ndim(), &norm.read_axes(lowering)?);
    let channel = channel_axis(lowering, &norm)?;
    // INVARIANT: normalized axes are less than the rank.
    normalize(lowering, &norm, &axes, |index| vec![index[channel].clone()]);
    Ok(())
}

fn channel_axis(lowering: &Lowering<'_>, norm: &Norm) -> Result<usize, Unsupported> {
    let given = lowering.call.needed_int("channel_axis")?;
    Ok(normalize_axis(lowering.call, "channel_axis", norm.data.ndim(), given)?)
}

/// Emits the normalization over `axes`. The function `parameter` maps the index of an element to the index of its
/// parameters.
fn normalize(lowering: &mut Lowering<'_>, norm: &Norm, axes: &Axes, parameter: impl FnOnce(&[Expr]) -> Vec<Expr>) {
    let out = lowering.output(0);
    let builder = &mut lowering.builder;
    let rows = (&norm.data.shape[..], axes);
    let moments = Moments::of(builder, rows, norm.dtype, &|builder, index| norm.value(builder, index));
    builder.compute(out, |builder, index| {
        let normalized = normalized(builder, norm, &moments, norm.value(builder, index), &axes.kept(index));
        norm.scaled(builder, normalized, &parameter(index))
    });
}

/// Returns `(value - mean) / sqrt(variance + epsilon)` with the statistics of `row`.
fn normalized(builder: &KernelBuilder, norm: &Norm, moments: &Moments, value: Expr, row: &[Expr]) -> Expr {
    let variance = norm.stabilized(moments.variance.at(builder, row));
    (value - moments.mean.at(builder, row)) * Expr::call(Intrinsic::Rsqrt, vec![variance])
}

/// Emits [`instance_norm`] over groups of channels. The channel axis is split into groups and channels per group, and
/// the latter are reduced together with `axes`.
pub(crate) fn group_norm(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let norm = Norm::of(lowering)?;
    let given = norm.read_axes(lowering)?;
    let channel = channel_axis(lowering, &norm)?;
    let groups = Dim::constant(lowering.call.needed_int("num_groups")?);
    // INVARIANT: normalized axes are less than the rank.
    let size = norm.data.shape[channel].floor_div(&groups);
    let mut parted = norm.data.shape.clone();
    parted.splice(channel..=channel, [groups, size.clone()]);
    let mut reduced: Vec<usize> = given.iter().map(|axis| axis + usize::from(*axis > channel)).collect();
    reduced.push(channel + 1);
    let axes = Axes::new(parted.len(), &reduced);
    let out = lowering.output(0);
    let builder = &mut lowering.builder;
    let size = builder.dim(&size);
    let whole = |index: &[Expr]| {
        let mut whole = index.to_vec();
        let joined = index[channel].clone() * size.clone() + index[channel + 1].clone();
        whole.splice(channel..=channel + 1, [joined]);
        whole
    };
    let value = |builder: &KernelBuilder, index: &[Expr]| norm.value(builder, &whole(index));
    let moments = Moments::of(builder, (&parted, &axes), norm.dtype, &value);
    let extents: Vec<Expr> = parted.iter().map(|dim| builder.dim(dim)).collect();
    builder.map(out, &extents, |builder, index| {
        let target = whole(index);
        let normalized = normalized(builder, &norm, &moments, value(builder, index), &axes.kept(index));
        let result = norm.scaled(builder, normalized, std::slice::from_ref(&target[channel]));
        (target, result)
    });
    Ok(())
}

/// Emits `data / sqrt(mean(data²) + epsilon) * weight`, with the mean over `axes`.
pub(crate) fn rms_norm(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (data, weight) = (lowering.tensor("data")?, lowering.tensor("weight")?);
    let (given, epsilon) = (axes_of(lowering, data.ndim())?, epsilon(lowering)?);
    let axes = Axes::new(data.ndim(), &given);
    let dtype = accumulator(data.dtype);
    let out = lowering.output(0);
    let builder = &mut lowering.builder;
    let square = Means::of(builder, "square_sum", (&data.shape, &axes), dtype, |builder, index, _| {
        let value = data.at(builder, index).cast(dtype);
        value.clone() * value
    });
    builder.compute(out, |builder, index| {
        let mean = square.at(builder, &axes.kept(index)) + Expr::number(epsilon, dtype);
        // INVARIANT: normalized axes are less than the rank.
        let parameter: Vec<Expr> = given.iter().map(|axis| index[*axis].clone()).collect();
        let scale = Expr::call(Intrinsic::Rsqrt, vec![mean]);
        let value = data.at(builder, index).cast(dtype);
        (scale * value * weight.at(builder, &parameter).cast(dtype)).cast(data.dtype)
    });
    Ok(())
}
