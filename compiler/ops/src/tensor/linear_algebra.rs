//! Products of matrices and vectors: schemas and struct-info rules.

use super::compute::products;
use super::operands::common_vdevice;
use crate::broadcast::broadcast_shapes;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::cost::{Cost, elements, multiply_adds, operand_dims};
use crate::operands::{Element, computed_from, joined_element, require_known_ndim, tensor_type};
use crate::schema::{AttrKind, Param, ParamKind, Schema};
use rx_base::{Answer, Code, Dim};
use rx_ir::{Shape, StructInfo};

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "matmul",
        "The matrix product. Leading axes are broadcast; a vector counts as a row on the left, as a column on \
         the right, and its axis is dropped from the result.",
        matmul,
    )
    .taking(&[
        Param::tensor("x1", "The left matrices, `(…, m, k)`, or a vector `(k,)`."),
        Param::tensor("x2", "The right matrices, `(…, k, n)`, or a vector `(k,)`."),
        Param::optional_attr(
            "out_dtype",
            AttrKind::DType,
            "The dtype of the result and of the sum; when left out that of the operands, which must then agree.",
        ),
    ])
    .lowered_by(products::matmul)
    .costing(Cost::Formula(matmul_operations)),
    Schema::new(
        "einsum",
        "A sum of products in Einstein's notation: axes named alike go together, and those the result does not \
         name are summed.",
        super::einsum::einsum,
    )
    .taking(&[
        Param::operand("operands", ParamKind::Tensors, "The tensors, as a tuple."),
        Param::required_attr(
            "subscripts",
            AttrKind::Str,
            "A letter per axis, operands separated by commas: `ij,jk->ik`. `...` is any number of axes that broadcast.",
        ),
    ])
    .lowered_by(products::einsum)
    .costing(Cost::Formula(super::einsum::operations)),
    Schema::new("outer", "The outer product of two vectors: a matrix of all products.", outer)
        .taking(&[Param::tensor("x1", "The left vector."), Param::tensor("x2", "The right vector.")])
        .lowered_by(products::outer)
        .costing(Cost::PerOutput(1)),
];

/// Counts `2·(elements of the result)·k` operations.
fn matmul_operations(call: &CallInfo<'_>, result: &StructInfo) -> Option<Dim> {
    let inner = operand_dims(call, "x1")?.last()?;
    Some(multiply_adds([&elements(result)?, inner]))
}

/// Infers the type of `matmul` (TVM's `InferTypeMatmul`).
fn matmul(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (x1, x2) = (call.tensor("x1")?, call.tensor("x2")?);
    for (name, tensor) in [("x1", x1), ("x2", x2)] {
        if tensor.shape.ndim() == Some(0) {
            let message = format_args!("`{name}` must have at least 1 dimension, it has 0");
            let report = call.error(Code::TensorNdimMismatch, ParamPlace::Param(name), message);
            return Err(report.with_help("multiply by a scalar with R.multiply").into());
        }
    }
    let element = match call.dtype("out_dtype") {
        Some(dtype) => Element::known(Some(dtype)),
        None => joined_element(call, "x1", "x2")?,
    };
    let vdevice = common_vdevice([x1, x2]);
    let (Some(left), Some(right)) = (x1.shape.dims(), x2.shape.dims()) else {
        let ndim = product_rank(x1.shape.ndim(), x2.shape.ndim());
        let error = x1.shape == Shape::Error || x2.shape == Shape::Error;
        let shape = if error { Shape::Error } else { product_shape_of_rank(ndim) };
        return Ok(tensor_type(shape, element, vdevice));
    };
    check_reduction(call, left, right)?;
    let shape = match product_shape(call, left, right)? {
        Some(dims) => Shape::known(dims),
        None => Shape::of_rank(product_rank(Some(left.len()), Some(right.len()))),
    };
    Ok(tensor_type(computed_from(&[x1, x2], shape), element, vdevice))
}

/// Returns the rank of a matrix product. A vector operand removes one axis from the result.
fn product_rank(left: Option<usize>, right: Option<usize>) -> Option<usize> {
    let (left, right) = (left?, right?);
    let dropped = usize::from(left == 1) + usize::from(right == 1);
    Some(left.max(right).max(2) - dropped)
}

/// Returns the shape of a product of which only the rank is known. Rank 0 determines the shape completely.
fn product_shape_of_rank(ndim: Option<usize>) -> Shape {
    if ndim == Some(0) { Shape::known([]) } else { Shape::of_rank(ndim) }
}

/// Checks that the reduced extents fit: the last axis of the left operand with the second-to-last axis of the right one
/// (the only axis of a vector).
fn check_reduction(call: &CallInfo<'_>, left: &[Dim], right: &[Dim]) -> Result<(), Problem> {
    let right_axis = right.len().saturating_sub(2);
    let (Some(k), Some(other)) = (left.last(), right.get(right_axis)) else { return Ok(()) };
    if call.equal(k, other) != Answer::Refuted {
        return Ok(());
    }
    let left_axis = left.len().saturating_sub(1);
    let message =
        format_args!("the reduction dims differ: the last axis of `x1` is {k}, axis {right_axis} of `x2` is {other}");
    let report = call
        .error(Code::MatmulReductionMismatch, ParamPlace::Param("x2"), message)
        .with_primary_label(format!("{}: axis {right_axis} is {other}", call.ty("x2")))
        .with_label(ParamPlace::Param("x1"), format!("{}: axis {left_axis} is {k}", call.ty("x1")))
        .with_note("(…, m, k) times (…, k, n) is (…, m, n)");
    let agrees = |dim: Option<&Dim>, with: &Dim| dim.is_some_and(|dim| call.equal(dim, with) == Answer::Proved);
    let report = if right.len() >= 2 && agrees(right.last(), k) {
        report.with_help(format!("the last axis of `x2` is {k}: transpose it with R.permute_dims"))
    } else if left.len() >= 2 && agrees(left.get(left_axis - 1), other) {
        report.with_help(format!("axis {} of `x1` is {other}: transpose it with R.permute_dims", left_axis - 1))
    } else {
        report
    };
    Err(report.into())
}

/// Returns the dims of a product; `None` if it is unknown whether the batch axes broadcast.
fn product_shape(call: &CallInfo<'_>, left: &[Dim], right: &[Dim]) -> Result<Option<Vec<Dim>>, Problem> {
    let lead = |dims: &[Dim]| Shape::known(&dims[..dims.len().saturating_sub(2)]);
    let prefix =
        broadcast_shapes(call, &lead(left), &lead(right)).map_err(|conflict| conflict.report(call, "x1", "x2"))?;
    let Some(prefix) = prefix.dims() else { return Ok(None) };
    let mut dims = prefix.to_vec();
    // A vector has no row or column axis in the result.
    if let [.., rows, _] = left {
        dims.push(rows.clone());
    }
    if let [.., _, columns] = right {
        dims.push(columns.clone());
    }
    Ok(Some(dims))
}

/// Infers the type of `outer` (TVM's `InferTypeOuter`).
fn outer(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (x1, x2) = (call.tensor("x1")?, call.tensor("x2")?);
    for name in ["x1", "x2"] {
        require_known_ndim(call, name, 1, "one dimension")?;
    }
    let shape = match (x1.shape.written_dims(), x2.shape.written_dims()) {
        (Some([rows]), Some([columns])) => Shape::known([rows.clone(), columns.clone()]),
        _ => Shape::Rank(2),
    };
    Ok(tensor_type(shape, Element::of(x1), None))
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, tensor, text, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    fn product(left: &str, right: &str) -> Result<StructInfo, Option<Code>> {
        infer("matmul", &[("x1", tensor(left)), ("x2", tensor(right))])
    }

    #[test]
    fn products_of_matrices_and_vectors() {
        for (left, right, wanted) in [
            ("3 4:float32", "4 5:float32", "3 5:float32"),
            ("4:float32", "4:float32", ":float32"),
            ("4:float32", "2 4 5:float32", "2 5:float32"),
            ("2 3 4:float32", "4:float32", "2 3:float32"),
            ("b 1 m k:float32", "c k n:float32", "b c m n:float32"),
            ("b m k:float32", "c k n:float32", "?3:float32"),
            ("m k:float32", "j n:float32", "m n:float32"),
            ("$s/1:float32", "$s/1:float32", ":float32"),
            ("?2:float32", "*:float32", "*:float32"),
            ("3 4:?", "4 5:float32", "3 5:?"),
        ] {
            assert_eq!(product(left, right), Ok(ty(wanted)), "{left} {right}");
        }
        let cast = [("x1", tensor("3 4:int8")), ("x2", tensor("4 5:uint8")), ("out_dtype", text("int32"))];
        assert_eq!(infer("matmul", &cast), Ok(ty("3 5:int32")));
    }

    #[test]
    fn impossible_products_are_reported() {
        assert_eq!(product("3 4:int8", ":int8"), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(product("3 4:int8", "5 6:int8"), Err(Some(Code::MatmulReductionMismatch)));
        assert_eq!(product("3 n:int8", "n+1 6:int8"), Err(Some(Code::MatmulReductionMismatch)));
        assert_eq!(product("2 3 4:int8", "5 4 6:int8"), Err(Some(Code::BroadcastMismatch)));
        assert_eq!(product("3 4:int8", "4 6:int32"), Err(Some(Code::DtypeMismatch)));
        assert_eq!(infer("outer", &[("x1", tensor("3:int8")), ("x2", tensor("?1:int8"))]), Ok(ty("?2:int8")));
        let vague = infer("outer", &[("x1", tensor("3:int8")), ("x2", tensor("*:int8"))]);
        assert_eq!(vague, Err(Some(Code::TensorNdimMismatch)));
    }
}
