//! *Scaled dot-product attention* as separate stages, without fusion.
//!
//! ```text
//! product[b, h, i, j] = Σ_d query[b, i, h, d] * key[b, j, h // group, d]
//! score  = product * scale + bias, -inf where masked
//! out[b, i, h, e] = Σ_j softmax_j(score)[b, h, i, j] * value[b, j, h // group, e]
//! ```
//!
//! Requires: operands of shape (batch, sequence, heads, head dimension).
//! Guarantees: sums are in the accumulator's dtype. The `cuda` crate matches these stages to emit a fused kernel.

use crate::compute::{Lowering, Operand, Unsupported};
use crate::reduction::{Axes, accumulator, reduce, reduce_rows};
use crate::tensor::compute::index;
use rx_base::{DType, Dim};
use rx_tir::{BinaryOp, BufferId, Expr, Intrinsic, KernelBuilder};

/// Emits `softmax(query @ keyᵀ * scale + bias) @ value`. Keys and values may have fewer heads than queries
/// (grouped-query attention): then adjacent query heads share one.
pub(crate) fn attention(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    Attention::of(lowering, ["query", "key", "value"])?.store(lowering);
    Ok(())
}

/// Emits [`attention`] for several sequences packed along one axis. A query attends to the keys of its sequence; a
/// query without a key gets 0.
pub(crate) fn attention_var_len(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let query_starts = lowering.tensor("seqstart_q")?;
    let key_starts = lowering.optional_tensor("seqstart_k")?.unwrap_or_else(|| query_starts.clone());
    let mut attention = Attention::of(lowering, ["queries", "keys", "values"])?;
    // INVARIANT: the operands have four dimensions.
    let [queries, keys] = [&attention.query, &attention.key].map(|operand| operand.shape[1].clone());
    let builder = &mut lowering.builder;
    let queries = Sequences::of(builder, query_starts, &queries)?;
    attention.sequences = Some([queries, Sequences::of(builder, key_starts, &keys)?]);
    attention.store(lowering);
    Ok(())
}

/// The operands and attributes of an attention call.
struct Attention {
    query: Operand,
    key: Operand,
    value: Operand,
    bias: Option<Operand>,
    /// The factor of the scores; `1 / sqrt(head_dim)` if absent.
    scale: Option<f64>,
    mask: Mask,
    /// The dtype of the computation.
    dtype: DType,
    out_shape: Vec<Dim>,
    /// The sequences of queries and keys, if several are packed in each.
    sequences: Option<[Sequences; 2]>,
}

/// The rule that states which keys a query attends to.
struct Mask {
    /// Whether keys after the query's position are masked.
    causal: bool,
    /// Whether the last query is aligned with the last key, instead of the first query with the first key.
    from_end: bool,
    /// The number of keys, up to the query's position, that are not masked.
    window: Option<i64>,
}

impl Attention {
    fn of(lowering: &mut Lowering<'_>, [query, key, value]: [&'static str; 3]) -> Result<Attention, Unsupported> {
        let [query, key, value] = [lowering.tensor(query)?, lowering.tensor(key)?, lowering.tensor(value)?];
        if [&query, &key, &value].iter().any(|operand| operand.ndim() != 4) {
            return Err(Unsupported::because("the operands must have 4 dimensions"));
        }
        let has_bias = lowering.call.schema.params.iter().any(|param| param.name == "bias");
        let bias = if has_bias { lowering.optional_tensor("bias")? } else { None };
        let causal = lowering.call.str("causal_mask");
        let mask = Mask {
            causal: causal.is_some(),
            from_end: causal != Some("TopLeft"),
            window: lowering.call.int("window_size"),
        };
        let scale = lowering.call.float("scale");
        let (dtype, out_shape) = (accumulator(query.dtype), lowering.output_shape(0).to_vec());
        Ok(Attention { query, key, value, bias, scale, mask, dtype, out_shape, sequences: None })
    }

    /// Stores the sum of the values, weighted by the softmax of the scores.
    fn store(&self, lowering: &mut Lowering<'_>) {
        let (score, sum, shape) = self.weights(&mut lowering.builder);
        let out = lowering.output(0);
        let builder = &mut lowering.builder;
        let dtype = self.dtype;
        let heads_shared = self.heads_shared(builder, &self.value);
        let value = &self.value;
        let extents = builder.shape(out);
        let keys = builder.dim(&shape[3]);
        let out_dtype = builder.dtype(out);
        let target = if out_dtype == dtype { out } else { builder.temporary("weighted", &self.out_shape, dtype) };
        reduce(builder, target, &extents, &[keys], BinaryOp::Add, |builder, axes, reduced| {
            // INVARIANT: the result has four axes: batch, query, head, element.
            let [batch, query, head, element] = [0, 1, 2, 3].map(|at: usize| axes[at].clone());
            let row = [batch.clone(), head.clone(), query];
            let mut place = row.to_vec();
            place.push(reduced[0].clone());
            let weight = self.weight(builder.load(score, &place), builder.load(sum, &row));
            let index = [batch, reduced[0].clone(), head.floor_div(heads_shared), element];
            (axes.to_vec(), weight * value.at(builder, &index).cast(dtype))
        });
        if target != out {
            builder.compute(out, |builder, axes| builder.load(target, axes).cast(out_dtype));
        }
    }

    /// Returns the number of adjacent query heads that share one head of `operand`.
    fn heads_shared(&self, builder: &mut KernelBuilder, operand: &Operand) -> Expr {
        builder.dim(&self.query.shape[2].floor_div(&operand.shape[2]))
    }

    /// Emits the exponentials of the scores and their sums over the keys. Returns both buffers and the shape of the
    /// first: (batch, heads, queries, keys).
    fn weights(&self, builder: &mut KernelBuilder) -> (BufferId, BufferId, [Dim; 4]) {
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
            let max = self.finite(builder.load(max, &axes.kept(index)));
            let shifted = builder.load(score, index) - max;
            Expr::call(Intrinsic::Exp, vec![shifted])
        });
        let sum = reduce_rows(builder, "sum", rows, (BinaryOp::Add, self.dtype), |builder, index, _| {
            builder.load(exp, index)
        });
        (exp, sum, shape)
    }

    /// Returns `product * scale + bias`, or −∞ where the key is masked.
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
        Expr::select(self.seen(builder, axes), score, self.unseen())
    }

    /// Returns the score of a masked key, −∞.
    fn unseen(&self) -> Expr {
        Expr::Float { value: f64::NEG_INFINITY, dtype: self.dtype }
    }

    /// Returns the maximum score of a query, or 0 if all keys are masked. Then all exponentials are `exp(-inf) = 0`
    /// instead of NaN.
    fn finite(&self, max: Expr) -> Expr {
        match self.sequences {
            Some(_) => Expr::select(max.clone().eq(self.unseen()), Expr::number(0.0, self.dtype), max),
            None => max,
        }
    }

    /// Returns the weight of a key from its exponential and the sum; 0 if the sum is 0 (all keys masked).
    fn weight(&self, exp: Expr, sum: Expr) -> Expr {
        match self.sequences {
            Some(_) => {
                let zero = Expr::number(0.0, self.dtype);
                Expr::select(sum.clone().eq(zero.clone()), zero, exp / sum)
            }
            None => exp / sum,
        }
    }

    /// Returns whether the key of a score is visible to its query.
    fn seen(&self, builder: &mut KernelBuilder, axes: &[Expr]) -> Expr {
        // INVARIANT: the scores have four axes.
        let (query, key) = (axes[2].clone(), axes[3].clone());
        let Some([queries, keys]) = &self.sequences else {
            let [queries, keys] = [&self.query, &self.key].map(|operand| builder.dim(&operand.shape[1]));
            return self.mask.seen((query, queries), (key, keys));
        };
        let sequence = queries.at(builder, &query);
        let exists = sequence.clone().lt(queries.count.clone());
        let together = exists.and(sequence.clone().eq(keys.at(builder, &key)));
        let [(first_query, queries), (first_key, keys)] =
            [queries, keys].map(|sequences| sequences.span(builder, &sequence));
        together.and(self.mask.seen((query - first_query, queries), (key - first_key, keys)))
    }
}

impl Mask {
    /// Returns whether a query attends to a key. Both are given by their position in their sequence and the sequence's
    /// length.
    fn seen(&self, (query, queries): (Expr, Expr), (key, keys): (Expr, Expr)) -> Expr {
        let place = match self.from_end && (self.causal || self.window.is_some()) {
            // As in TVM, the offset is the absolute difference of the lengths, whichever sequence is longer.
            true => query + (keys.clone() - queries.clone()).max(queries - keys),
            false => query,
        };
        let mut seen = Expr::bool(true);
        if self.causal {
            seen = seen.and(place.clone().ge(key.clone()));
        }
        match self.window {
            Some(window) => seen.and((place - key).lt(Expr::int(window))),
            None => seen,
        }
    }
}

/// An operand with several sequences packed along one axis.
struct Sequences {
    /// The start of each sequence, followed by the end of the last one.
    starts: Operand,
    /// The number of sequences.
    count: Expr,
    /// The index of the sequence at each position; `count` for positions after the last sequence.
    numbers: BufferId,
}

impl Sequences {
    fn of(builder: &mut KernelBuilder, starts: Operand, places: &Dim) -> Result<Sequences, Unsupported> {
        let [entries] = &starts.shape[..] else {
            return Err(Unsupported::because("`seqstart_q` and `seqstart_k` must have 1 dimension"));
        };
        let count = builder.dim(&(entries - &Dim::constant(1)));
        let numbers = builder.temporary("sequence", std::slice::from_ref(places), DType::INT64);
        let extents = builder.shape(numbers);
        // The index equals the number of sequences that end at or before the position. Sequences may be empty.
        reduce(builder, numbers, &extents, std::slice::from_ref(&count), BinaryOp::Add, |builder, axes, reduced| {
            // INVARIANT: there is one axis of each kind.
            let end = index(starts.at(builder, &[reduced[0].clone() + Expr::int(1)]));
            let has_ended = axes[0].clone().ge(end);
            (axes.to_vec(), Expr::select(has_ended, Expr::int(1), Expr::int(0)))
        });
        Ok(Sequences { starts, count, numbers })
    }

    /// Returns the index of the sequence at a position.
    fn at(&self, builder: &KernelBuilder, place: &Expr) -> Expr {
        builder.load(self.numbers, std::slice::from_ref(place))
    }

    /// Returns the begin and the length of sequence `number`.
    fn span(&self, builder: &KernelBuilder, number: &Expr) -> (Expr, Expr) {
        let start = |at: Expr| index(self.starts.at(builder, &[at]));
        let begin = start(number.clone());
        (begin.clone(), start(number.clone() + Expr::int(1)) - begin)
    }
}
