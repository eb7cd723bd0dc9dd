//! Attention as loops: scores, softmax, weighted sum, head by head.

use crate::compute::{Lowering, Operand, Unsupported};
use crate::reduction::{Axes, accumulator, reduce, reduce_rows};
use rx_base::{DType, Dim};
use rx_tir::{BinaryOp, Expr, Intrinsic, KernelBuilder};

/// `softmax(query @ keyᵀ * scale + bias) @ value`. Keys and values may have fewer heads: then neighbouring heads of the
/// queries share one.
pub(crate) fn attention(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let attention = Attention::of(lowering)?;
    let (score, sum, shape) = attention.weights(&mut lowering.builder);
    let out = lowering.output(0);
    let builder = &mut lowering.builder;
    let dtype = attention.dtype;
    let heads_shared = attention.heads_shared(builder, &attention.value);
    let value = &attention.value;
    let extents = builder.shape(out);
    let keys = builder.dim(&shape[3]);
    let out_dtype = builder.dtype(out);
    let target = if out_dtype == dtype { out } else { builder.temporary("weighted", &attention.out_shape, dtype) };
    reduce(builder, target, &extents, &[keys], BinaryOp::Add, |builder, axes, reduced| {
        // INVARIANT: the result has four axes: batch, query, head, element.
        let [batch, query, head, element] = [0, 1, 2, 3].map(|at: usize| axes[at].clone());
        let row = [batch.clone(), head.clone(), query];
        let mut place = row.to_vec();
        place.push(reduced[0].clone());
        let weight = builder.load(score, &place) / builder.load(sum, &row);
        let index = [batch, reduced[0].clone(), head.floor_div(heads_shared), element];
        (axes.to_vec(), weight * value.at(builder, &index).cast(dtype))
    });
    if target != out {
        builder.compute(out, |builder, axes| builder.load(target, axes).cast(out_dtype));
    }
    Ok(())
}

/// A call, read.
struct Attention {
    query: Operand,
    key: Operand,
    value: Operand,
    bias: Option<Operand>,
    /// What the scores are multiplied by; by default `1 / sqrt(head_dim)`.
    scale: Option<f64>,
    mask: Mask,
    /// In which it is computed.
    dtype: DType,
    out_shape: Vec<Dim>,
}

/// Which keys a query sees.
struct Mask {
    /// Only keys up to the query's own place.
    causal: bool,
    /// Whether the last query stands at the last key, not the first at the first.
    from_end: bool,
    /// How many keys up to its own it sees.
    window: Option<i64>,
}

impl Attention {
    fn of(lowering: &mut Lowering<'_>) -> Result<Attention, Unsupported> {
        let [query, key, value] = [lowering.tensor("query")?, lowering.tensor("key")?, lowering.tensor("value")?];
        if [&query, &key, &value].iter().any(|operand| operand.ndim() != 4) {
            return Err(Unsupported::because("the operands must have 4 dimensions"));
        }
        let bias = lowering.optional_tensor("bias")?;
        let causal = lowering.call.str("causal_mask");
        let mask = Mask {
            causal: causal.is_some(),
            from_end: causal != Some("TopLeft"),
            window: lowering.call.int("window_size"),
        };
        let scale = lowering.call.float("scale");
        let (dtype, out_shape) = (accumulator(query.dtype), lowering.output_shape(0).to_vec());
        Ok(Attention { query, key, value, bias, scale, mask, dtype, out_shape })
    }

    /// How many neighbouring heads of the queries share one of `operand`.
    fn heads_shared(&self, builder: &mut KernelBuilder, operand: &Operand) -> Expr {
        builder.dim(&self.query.shape[2].floor_div(&operand.shape[2]))
    }

    /// Exponentials of the scores, their sums over the keys, and the extents of the former: (batch, heads, queries, keys).
    fn weights(&self, builder: &mut KernelBuilder) -> (rx_tir::BufferId, rx_tir::BufferId, [Dim; 4]) {
        let [query, key] = [&self.query, &self.key];
        let shape = [&query.shape[0], &query.shape[2], &query.shape[1], &key.shape[1]].map(Dim::clone);
        let product = builder.temporary("product", &shape, self.dtype);
        let (extents, head_dim) = (builder.shape(product), builder.dim(&query.shape[3]));
        let heads_shared = self.heads_shared(builder, key);
        reduce(builder, product, &extents, &[head_dim], BinaryOp::Add, |builder, axes, reduced| {
            // INVARIANT: `product` has four axes.
            let [batch, head, row, column] = [0, 1, 2, 3].map(|at: usize| axes[at].clone());
            let left = [batch.clone(), row, head.clone(), reduced[0].clone()];
            let right = [batch, column, head.floor_div(heads_shared), reduced[0].clone()];
            let product = query.at(builder, &left).cast(self.dtype) * key.at(builder, &right).cast(self.dtype);
            (axes.to_vec(), product)
        });
        let score = builder.temporary("score", &shape, self.dtype);
        builder.compute(score, |builder, axes| self.score(builder, builder.load(product, axes), axes));
        let axes = Axes::new(4, &[3]);
        let rows = (&shape[..], &axes);
        let max = reduce_rows(builder, "max", rows, (BinaryOp::Max, self.dtype), |builder, index, _| {
            builder.load(score, index)
        });
        let exp = builder.temporary("exp", &shape, self.dtype);
        builder.compute(exp, |builder, index| {
            let shifted = builder.load(score, index) - builder.load(max, &axes.kept(index));
            Expr::call(Intrinsic::Exp, vec![shifted])
        });
        let sum = reduce_rows(builder, "sum", rows, (BinaryOp::Add, self.dtype), |builder, index, _| {
            builder.load(exp, index)
        });
        (exp, sum, shape)
    }

    /// `product * scale + bias`, and −∞ where the query does not see the key.
    fn score(&self, builder: &mut KernelBuilder, product: Expr, axes: &[Expr]) -> Expr {
        let scaled = match self.scale {
            Some(scale) => product * Expr::number(scale, self.dtype),
            None => {
                let head_dim = builder.dim(&self.query.shape[3]).cast(self.dtype);
                product / Expr::call(Intrinsic::Sqrt, vec![head_dim])
            }
        };
        let score = match &self.bias {
            Some(bias) => scaled + bias.broadcast_at(builder, axes).cast(self.dtype),
            None => scaled,
        };
        let offset = match self.mask.from_end {
            true => builder.dim(&(&self.key.shape[1] - &self.query.shape[1])),
            false => Expr::int(0),
        };
        // INVARIANT: the scores have four axes.
        let (place, key) = (axes[2].clone() + offset, axes[3].clone());
        let mut seen = Expr::bool(true);
        if self.mask.causal {
            seen = seen.and(place.clone().ge(key.clone()));
        }
        if let Some(window) = self.mask.window {
            seen = seen.and((place - key).lt(Expr::int(window)));
        }
        Expr::select(seen, score, Expr::Float { value: f64::NEG_INFINITY, dtype: self.dtype })
    }
}
