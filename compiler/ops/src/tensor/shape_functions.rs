//! Conversions between tensors and shapes: schemas and struct-info rules.

use super::compute::create as compute;
use super::operands::shape;
use super::values::create as values;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::compute::Compute;
use crate::cost::Cost;
use crate::operands::{Element, rank_like, require_known_ndim, tensor_type};
use crate::schema::{Param, ParamKind, Schema, Traits};
use rx_base::{Code, DType, Dim};
use rx_ir::{Shape, StructInfo};

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new("shape_of", "The shape of a tensor, as a shape value.", shape_of)
        .taking(&[Param::tensor("expr", "The tensor.")])
        .costing(Cost::Nothing),
    Schema::new("size", "The number of elements of a tensor, as an `int64` tensor without dimensions.", size)
        .taking(&[Param::tensor("expr", "The tensor.")])
        .lowered_by(compute::size)
        .costing(Cost::Nothing)
        .with_traits(Traits::OPAQUE.computing(values::size)),
    Schema::new("tensor_to_shape", "A shape value whose dims are the elements of a vector.", tensor_to_shape)
        .taking(&[Param::tensor("expr", "The dims, a vector of integers.")])
        .computed_as(Compute::Host)
        .costing(Cost::Nothing),
    Schema::new("shape_to_tensor", "The dims of a shape value, as an `int64` vector.", shape_to_tensor)
        .taking(&[Param::operand("expr", ParamKind::ShapeValue, "The shape value.")])
        .lowered_by(compute::shape_to_tensor)
        .costing(Cost::Nothing)
        .with_traits(Traits::OPAQUE.computing(values::shape_to_tensor)),
];

fn shape_of(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    Ok(StructInfo::Shape(match &call.tensor("expr")?.shape {
        Shape::Var { ndim, .. } => Shape::of_rank(*ndim),
        shape => shape.clone(),
    }))
}

fn size(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    call.tensor("expr")?;
    Ok(StructInfo::tensor([], Some(DType::INT64)))
}

/// Infers the type of `tensor_to_shape`: the rank of the shape is the length of the vector. As in TVM, the operand must
/// be known to be a vector.
fn tensor_to_shape(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let tensor = call.tensor("expr")?;
    if let Some(dtype) = tensor.dtype.filter(|dtype| !dtype.is_int()) {
        let message = format_args!("`expr` must hold integers, it holds {dtype}");
        return Err(call.error(Code::IndexDtype, ParamPlace::Param("expr"), message).into());
    }
    require_known_ndim(call, "expr", 1, "one dimension")?;
    let length = tensor.shape.dims().and_then(<[Dim]>::first).and_then(Dim::as_constant);
    Ok(StructInfo::Shape(rank_like(&tensor.shape, length.and_then(|length| usize::try_from(length).ok()))))
}

/// Infers the type of `shape_to_tensor`. For a shape of unknown rank, only the vector's rank is known, while TVM infers
/// the shape `(-1,)`.
fn shape_to_tensor(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let length = shape(call, "expr")?.ndim().and_then(|ndim| i64::try_from(ndim).ok());
    let shape = length.map_or(Shape::Rank(1), |length| Shape::known([Dim::constant(length)]));
    Ok(tensor_type(shape, Element::known(Some(DType::INT64)), None))
}

#[cfg(test)]
mod tests {
    use crate::tests::{given, infer, shape, tensor, ty};
    use rx_base::Code;
    use rx_ir::{Shape, StructInfo};

    #[test]
    fn shapes_and_vectors() {
        let shape_type = |shape| Ok(StructInfo::Shape(shape));
        assert_eq!(infer("shape_of", &[("expr", tensor("$s/2:int8"))]), shape_type(Shape::Rank(2)));
        assert_eq!(infer("shape_of", &[("expr", tensor("2 n:int8"))]), infer("shape_of", &[("expr", tensor("2 n:?"))]));
        assert_eq!(infer("size", &[("expr", tensor("*:int8"))]), Ok(ty(":int64")));
        assert_eq!(infer("tensor_to_shape", &[("expr", tensor("3:int64"))]), shape_type(Shape::Rank(3)));
        assert_eq!(infer("tensor_to_shape", &[("expr", tensor("n:int64"))]), shape_type(Shape::Unknown));
        assert_eq!(infer("shape_to_tensor", &[("expr", shape("2 n"))]), Ok(ty("2:int64")));
        let vague = given(StructInfo::Shape(Shape::Unknown));
        assert_eq!(infer("shape_to_tensor", &[("expr", vague)]), Ok(ty("?1:int64")));
        for wrong in ["*:int64", "2 3:int64"] {
            let result = infer("tensor_to_shape", &[("expr", tensor(wrong))]);
            assert_eq!(result, Err(Some(Code::TensorNdimMismatch)));
        }
    }
}
