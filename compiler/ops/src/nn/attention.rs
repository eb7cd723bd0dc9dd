//! Fused multi-head attention: schemas and struct-info rules.

use super::compute::attention as compute;
use super::costs;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::cost::Cost;
use crate::operands::{AxisOf, rank_like, require_equal, require_ndim, require_rank, tensor_like};
use crate::schema::{AttrKind, Param, ParamKind, Schema};
use rx_base::{Answer, Code, Dim};
use rx_ir::{Shape, StructInfo};

const BATCH: usize = 0;
const SEQUENCE: usize = 1;
const HEADS: usize = 2;
const HEAD_DIM: usize = 3;
const AXES: &str = "(batch, sequence length, heads, head dimension)";

const QUERY: Param = Param::tensor("query", "The queries: (batch, seq_len, heads, head_dim).");
const KEY: Param =
    Param::tensor("key", "The keys: (batch, seq_len_kv, heads_kv, head_dim); `heads_kv` divides `heads`.");
const VALUE: Param = Param::tensor("value", "The values: (batch, seq_len_kv, heads_kv, head_dim_v).");
const BIAS: Param = Param::optional(
    "bias",
    ParamKind::Tensor,
    "Added to the scores: four dimensions that broadcast to (batch, heads, seq_len, seq_len_kv), the last one not.",
);
const SCALE: Param =
    Param::optional_attr("scale", AttrKind::Float, "The factor of the scores; `1 / sqrt(head_dim)` when left out.");
const CAUSAL_MASK: Param = Param::optional_attr(
    "causal_mask",
    AttrKind::Choice(&["TopLeft", "BottomRight"]),
    "Which corner the triangle of the causal mask starts from; no mask when left out.",
);
const WINDOW_SIZE: Param = Param::optional_attr(
    "window_size",
    AttrKind::Int,
    "The window of sliding-window attention; unlimited when left out.",
);

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "nn.attention",
        "Fused multi-head attention: `softmax(query @ keyᵀ * scale + bias) @ value`, head by head. Operands are \
         laid out (batch, sequence, heads, head dimension).",
        attention,
    )
    .taking(&[QUERY, KEY, VALUE, BIAS, SCALE, CAUSAL_MASK, WINDOW_SIZE])
    .lowered_by(compute::attention)
    .costing(Cost::Formula(costs::attention)),
    Schema::new(
        "nn.attention_bias",
        "Fused multi-head attention with a bias on the scores: the printed form of `nn.attention` with `bias`.",
        attention,
    )
    .taking(&[QUERY, KEY, VALUE, BIAS, SCALE, CAUSAL_MASK, WINDOW_SIZE])
    .lowered_by(compute::attention)
    .costing(Cost::Formula(costs::attention)),
    Schema::new(
        "nn.attention_var_len",
        "Fused multi-head attention over sequences of different lengths, concatenated along the sequence axis.",
        attention_var_len,
    )
    .taking(&[
        Param::tensor("queries", "The queries of all sequences in a row: (1, total_seq_len, heads, head_dim)."),
        Param::tensor("keys", "The keys of all sequences in a row: (1, total_seq_len_kv, heads_kv, head_dim)."),
        Param::tensor("values", "The values of all sequences in a row: (1, total_seq_len_kv, heads_kv, head_dim_v)."),
        Param::tensor(
            "seqstart_q",
            "Where each sequence of queries starts: the running sum of lengths, 0 first; int32.",
        ),
        Param::tensor("max_seqlen_q", "The longest sequence of queries; int32."),
        Param::optional(
            "seqstart_k",
            ParamKind::Tensor,
            "Where each sequence of keys starts; as `seqstart_q` when left out.",
        ),
        Param::optional(
            "max_seqlen_k",
            ParamKind::Tensor,
            "The longest sequence of keys; as `max_seqlen_q` when left out.",
        ),
        SCALE,
        CAUSAL_MASK,
        WINDOW_SIZE,
    ])
    .lowered_by(compute::attention_var_len),
];

fn attention(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let result = check_operands(call, "query", "key", "value")?;
    if call.optional_tensor("bias")?.is_some() {
        check_bias(call)?;
    }
    Ok(result)
}

fn attention_var_len(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let result = check_operands(call, "queries", "keys", "values")?;
    for name in ["seqstart_q", "max_seqlen_q", "seqstart_k", "max_seqlen_k"] {
        call.optional_tensor(name)?;
    }
    Ok(result)
}

/// Infers the result type (batch, queries, heads, head dimension of the values), with dtype and device of the queries
/// (TVM `InferTypeAttention`).
fn check_operands(
    call: &CallInfo<'_>,
    query: &'static str,
    key: &'static str,
    value: &'static str,
) -> Result<StructInfo, Problem> {
    for name in [query, key, value] {
        require_ndim(call, name, 4, AXES)?;
        require_rank(call, name)?;
    }
    let axis = |name, axis| AxisOf::new(name, axis);
    require_equal(call, axis(query, BATCH), axis(key, BATCH), "the batch size")?;
    require_equal(call, axis(query, BATCH), axis(value, BATCH), "the batch size")?;
    require_multiple(call, query, key)?;
    require_multiple(call, query, value)?;
    require_equal(call, axis(key, SEQUENCE), axis(value, SEQUENCE), "the sequence length")?;
    require_equal(call, axis(query, HEAD_DIM), axis(key, HEAD_DIM), "the head dimension")?;
    let (queries, values) = (call.tensor(query)?, call.tensor(value)?);
    let shape = match (queries.shape.written_dims(), values.shape.written_dims()) {
        (Some([batch, sequence, heads, _]), Some([_, _, _, head_dim])) => {
            Shape::known([batch, sequence, heads, head_dim].map(Dim::clone))
        }
        _ => rank_like(&queries.shape, Some(4)),
    };
    Ok(tensor_like(queries, shape))
}

/// Rejects a number of query heads that is not a multiple of the key or value heads (grouped-query attention).
fn require_multiple(call: &CallInfo<'_>, query: &'static str, other: &'static str) -> Result<(), Problem> {
    let (query_axis, other_axis) = (AxisOf::new(query, HEADS), AxisOf::new(other, HEADS));
    let (Some(heads), Some(shared)) = (query_axis.dim(call), other_axis.dim(call)) else { return Ok(()) };
    if call.equal(&heads.floor_mod(shared), &Dim::constant(0)) != Answer::Refuted {
        return Ok(());
    }
    let message = format_args!("`{query}` has {heads} heads, which is no multiple of the {shared} heads of `{other}`");
    Err(call
        .error(Code::ShapeMismatch, ParamPlace::Param(other), message)
        .with_primary_label(format!("{}: axis {HEADS} is {shared}", call.ty(other)))
        .with_label(ParamPlace::Param(query), format!("{}: axis {HEADS} is {heads}", call.ty(query)))
        .into())
}

fn check_bias(call: &CallInfo<'_>) -> Result<(), Problem> {
    require_ndim(call, "bias", 4, "(batch, heads, sequence length, sequence length of the keys)")?;
    let pairs = [
        (AxisOf::new("query", BATCH), 0, "the batch size"),
        (AxisOf::new("query", HEADS), 1, "the number of heads"),
        (AxisOf::new("query", SEQUENCE), 2, "the sequence length"),
    ];
    for (of, bias_axis, subject) in pairs {
        let bias = AxisOf::new("bias", bias_axis);
        let broadcast = bias.dim(call).is_some_and(|dim| dim.as_constant() == Some(1));
        if !broadcast {
            require_equal(call, of, bias, subject)?;
        }
    }
    require_equal(call, AxisOf::new("key", SEQUENCE), AxisOf::new("bias", 3), "the sequence length of the keys")
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, tensor, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    fn attention(query: &str, key: &str, value: &str, bias: Option<&str>) -> Result<StructInfo, Option<Code>> {
        let mut args = vec![("query", tensor(query)), ("key", tensor(key)), ("value", tensor(value))];
        args.extend(bias.map(|bias| ("bias", tensor(bias))));
        infer("nn.attention", &args)
    }

    #[test]
    fn the_result_takes_its_last_dim_from_the_values() {
        let (q, k, v) = ("4 16 32 8:float16", "4 s 8 8:float16", "4 s 8 12:float16");
        assert_eq!(attention(q, k, v, None), Ok(ty("4 16 32 12:float16")));
        assert_eq!(attention(q, k, v, Some("4 1 16 s:float16")), Ok(ty("4 16 32 12:float16")));
        assert_eq!(attention(q, "?4:float16", "?4:float16", None), Ok(ty("?4:float16")));
        assert_eq!(attention(q, "*:float16", "?4:float16", None), Err(Some(Code::TensorNdimMismatch)));
    }

    #[test]
    fn operands_must_fit() {
        let q = "4 16 32 8:float16";
        let code = |key: &str, value: &str, bias: Option<&str>| attention(q, key, value, bias);
        let kv = "4 9 8 8:float16";
        assert_eq!(code("4 9 8:float16", kv, None), Err(Some(Code::TensorNdimMismatch)));
        for (key, value) in
            [("3 9 8 8:float16", kv), ("4 9 5 8:float16", kv), (kv, "4 7 8 8:float16"), ("4 9 8 6:float16", kv)]
        {
            assert_eq!(code(key, value, None), Err(Some(Code::ShapeMismatch)), "{key} {value}");
        }
        assert_eq!(code(kv, kv, Some("4 32 16 1:float16")), Err(Some(Code::ShapeMismatch)));
        assert_eq!(code(kv, kv, Some("4 32 9:float16")), Err(Some(Code::TensorNdimMismatch)));
    }
}
