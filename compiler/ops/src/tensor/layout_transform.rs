//! `layout_transform`, which moves each element to the index that an index map gives: schema and struct-info rule.

use super::compute::layout as compute;
use super::index_map::IndexMap;
use crate::cost::Cost;

use crate::call::{CallInfo, Problem};
use crate::operands::{rank_like, tensor_like};
use crate::schema::{AttrKind, Param, Schema};
use rx_base::{Code, DType};
use rx_ir::{Attr, Shape, StructInfo, TensorInfo};

pub(crate) static OPERATORS: &[Schema] = &[Schema::new(
    "layout_transform",
    "Moves each element to the position that an index map computes: transposes, tiles or flattens.",
    layout_transform,
)
.taking(&[
    Param::tensor("x", "The input."),
    Param::required_attr(
        "index_map",
        AttrKind::Any,
        "From the indices of `x` to those of the result: `T.index_map(lambda n, c: (n, c // 4, c % 4))`.",
    ),
    Param::optional_attr(
        "pad_value",
        AttrKind::Any,
        "The value of places that no element of `x` is moved to, in the dtype of `x`; anything when left out.",
    ),
    Param::optional_attr(
        "axis_separators",
        AttrKind::IntList,
        "Where the dims of the result part into axes of memory; no value depends on it. TVM up to 0.25.",
    ),
    Param::optional_attr(
        "input_axis_separators",
        AttrKind::IntList,
        "Where the dims of `x` part into axes of memory; no value depends on it. TVM up to 0.25.",
    ),
])
.lowered_by(compute::layout_transform)
.costing(Cost::Copy)];

fn layout_transform(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    check_pad_value(call, x)?;
    let text = match call.attr("index_map") {
        Some(Attr::Opaque(text) | Attr::Str(text)) => text,
        _ => return Ok(tensor_like(x, rank_like(&x.shape, None))),
    };
    // A map that is a name from the surrounding Python program is unknown here.
    let Some(map) = IndexMap::parse(text) else { return Ok(tensor_like(x, rank_like(&x.shape, None))) };
    if let Some(ndim) = x.shape.ndim()
        && ndim != map.params.len()
    {
        let message = format_args!("`x` has {ndim} dimensions, the index map takes {}", map.params.len());
        return Err(call.error_for(Code::TensorNdimMismatch, "index_map", "x", message).into());
    }
    Ok(match x.shape.dims().and_then(|dims| map.map_shape(dims)) {
        Some(dims) => tensor_like(x, Shape::known(dims)),
        None => tensor_like(x, rank_like(&x.shape, Some(map.indices.len()))),
    })
}

/// Checks the dtype of the pad value. A Python number is converted to the dtype of `x` if possible; a typed scalar must
/// have the dtype of `x`.
fn check_pad_value(call: &CallInfo<'_>, x: &TensorInfo) -> Result<(), Problem> {
    let clash = |given: &str| {
        let wanted = x.dtype.map_or_else(|| "of unknown dtype".to_owned(), |dtype| dtype.to_string());
        let message = format_args!("`pad_value` is {given}, `x` is {wanted}; they must have one dtype");
        Err(call.error_for(Code::DtypeMismatch, "pad_value", "x", message).into())
    };
    if x.dtype_error {
        return Ok(());
    }
    match (call.attr("pad_value"), x.dtype) {
        (Some(Attr::Float(_)), Some(dtype)) if dtype.is_int() || dtype.is_bool() => clash("a float"),
        (Some(Attr::Opaque(text)), dtype) => match typed_scalar(text) {
            Some(given) if dtype != Some(given) => clash(&given.to_string()),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Returns the dtype of a typed scalar such as `T.float32(2.0)`.
fn typed_scalar(text: &str) -> Option<DType> {
    let (dtype, rest) = text.trim().strip_prefix("T.")?.split_once('(')?;
    rest.ends_with(')').then(|| DType::parse(dtype))?
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, infer, tensor, ty};
    use rx_base::Code;
    use rx_ir::{Attr, StructInfo};

    fn transform(x: &str, map: &str, pad: Attr) -> Result<StructInfo, Option<Code>> {
        let map = Given::Attr(Attr::Opaque(format!("T.index_map({map})").into()));
        infer("layout_transform", &[("x", tensor(x)), ("index_map", map), ("pad_value", Given::Attr(pad))])
    }

    #[test]
    fn the_map_gives_the_shape() {
        let tile = "lambda a, b: (a, b // 2, b % 2)";
        assert_eq!(transform("n 8:float32", tile, Attr::None), Ok(ty("n 4 2:float32")));
        assert_eq!(transform("?2:float32", tile, Attr::None), Ok(ty("?3:float32")));
        assert_eq!(transform("*", tile, Attr::None), Ok(ty("?3")));
        assert_eq!(transform("2 3 4", tile, Attr::None), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(transform("2 3:int8", "lambda a, b: (b - a,)", Attr::None), Ok(ty("?1:int8")));
        assert_eq!(transform("2 3:int8", "make_map()", Attr::None), Ok(ty("*:int8")));
    }

    #[test]
    fn the_pad_value_has_the_dtype_of_the_data() {
        let map = "lambda i: (i // 4, i % 4)";
        let typed = |text: &str| Attr::Opaque(text.into());
        assert_eq!(transform("6:float32", map, typed("T.float32(2.0)")), Ok(ty("2 4:float32")));
        assert_eq!(transform("6:float32", map, Attr::Int(2.into())), Ok(ty("2 4:float32")));
        assert_eq!(transform("6:float16", map, typed("T.float32(2.0)")), Err(Some(Code::DtypeMismatch)));
        assert_eq!(transform("6:int32", map, Attr::Float(2.5)), Err(Some(Code::DtypeMismatch)));
    }
}
