//! Sorting along an axis: schemas and struct-info rules.

use super::compute::sort as compute;
use super::operands::{int_attr, retyped};
use super::values::{pick, sort};
use crate::axes::normalize_axis;
use crate::call::{CallInfo, Problem};
use crate::operands::{rank_like, tensor_like};
use crate::schema::{Param, Schema, Traits};
use rx_base::Dim;
use rx_ir::{Shape, StructInfo, TensorInfo};

const DATA: Param = Param::tensor("data", "The input.");
const AXIS: Param = Param::int("axis", -1, "The axis to sort along.");
const DESCENDING: Param = Param::flag("descending", false, "Whether the largest element comes first.");
const INDEX_DTYPE: Param = Param::dtype("dtype", "int32", "The dtype of the indices; `None` is that of the data.");

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new("sort", "Sorts the elements along an axis.", sort)
        .taking(&[Param::tensor("x", "The input."), AXIS, DESCENDING])
        .lowered_by(compute::sort)
        .with_traits(Traits::OPAQUE.keeping("x").computing(sort::sort)),
    Schema::new("argsort", "The indices that sort the elements along an axis.", argsort)
        .taking(&[DATA, AXIS, DESCENDING, INDEX_DTYPE])
        .lowered_by(compute::argsort)
        .with_traits(Traits::OPAQUE.computing(sort::argsort)),
    Schema::new("topk", "The `k` largest or smallest elements along an axis, sorted, and their places.", topk)
        .taking(&[
            DATA,
            Param::int("k", 1, "How many to take; all where it is below 1."),
            AXIS,
            Param::choice(
                "ret_type",
                &["both", "values", "indices"],
                "both",
                "The results: a tuple of values and indices, or one of the two.",
            ),
            Param::flag("largest", true, "Whether to take the largest or the smallest."),
            INDEX_DTYPE,
        ])
        .lowered_by(compute::topk)
        .with_traits(Traits::OPAQUE.computing(pick::topk)),
];

/// Returns the axis, if the rank is known. TVM only checks it when it lowers the call.
fn axis(call: &CallInfo<'_>, data: &TensorInfo) -> Result<Option<usize>, Problem> {
    let axis = int_attr(call, "axis")?.unwrap_or(-1);
    data.shape.ndim().map(|ndim| normalize_axis(call, "axis", ndim, axis)).transpose()
}

/// Creates the type of a tensor of indices into `data`.
fn indices(call: &CallInfo<'_>, data: &TensorInfo, shape: Shape) -> StructInfo {
    match call.dtype("dtype") {
        Some(dtype) => retyped(data, shape, Some(dtype)),
        None => tensor_like(data, shape),
    }
}

fn sort(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    axis(call, call.tensor("x")?)?;
    Ok(call.ty("x").clone())
}

fn argsort(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    axis(call, data)?;
    Ok(indices(call, data, data.shape.clone()))
}

fn topk(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let axis = axis(call, data)?;
    let count = int_attr(call, "k")?.unwrap_or(1);
    let shape = match data.shape.written_dims() {
        Some(dims) => {
            let mut dims = dims.to_vec();
            if let Some(dim) = axis.and_then(|axis| dims.get_mut(axis))
                && count > 0
                && dim.as_constant().is_none_or(|length| count < length)
            {
                let length = std::mem::replace(dim, Dim::constant(count));
                call.derive(axis, || format!("the top k = {count} of {length}"));
            }
            Shape::known(dims)
        }
        None => rank_like(&data.shape, data.shape.ndim()),
    };
    let (values, indices) = (tensor_like(data, shape.clone()), indices(call, data, shape));
    Ok(match call.str("ret_type").unwrap_or("both") {
        "values" => values,
        "indices" => indices,
        _ => StructInfo::tuple([values, indices]),
    })
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, infer, number, tensor, text, ty};
    use rx_base::Code;
    use rx_ir::{Attr, StructInfo};

    #[test]
    fn sorting_keeps_the_shape() {
        let along = |op: &str, param: &str, x: &str, axis| infer(op, &[(param, tensor(x)), ("axis", number(axis))]);
        assert_eq!(along("sort", "x", "2 n:float32", 1), Ok(ty("2 n:float32")));
        assert_eq!(along("sort", "x", "2 n:float32", 99), Err(Some(Code::AxisOutOfRange)));
        assert_eq!(along("argsort", "data", "$s/2:float32", -1), Ok(ty("$s/2:int32")));
        let same = [("data", tensor("2:float32")), ("dtype", Given::Attr(Attr::None))];
        assert_eq!(infer("argsort", &same), Ok(ty("2:float32")));
    }

    #[test]
    fn topk_shortens_the_axis() {
        let topk = |x: &str, k, axis| {
            let result = infer("topk", &[("data", tensor(x)), ("k", number(k)), ("axis", number(axis))])?;
            Ok::<_, Option<Code>>(result.as_tuple().unwrap_or_default().to_vec())
        };
        assert_eq!(topk("2 10 4:float32", 5, 1), Ok(vec![ty("2 5 4:float32"), ty("2 5 4:int32")]));
        assert_eq!(topk("a b:float32", 3, -1), Ok(vec![ty("a 3:float32"), ty("a 3:int32")]));
        assert_eq!(topk("2 4:float32", 6, -1), Ok(vec![ty("2 4:float32"), ty("2 4:int32")]));
        assert_eq!(topk("2 4:float32", -1, -1), Ok(vec![ty("2 4:float32"), ty("2 4:int32")]));
        assert_eq!(topk("?3", 3, 1), Ok(vec![ty("?3"), ty("?3:int32")]));
        assert_eq!(topk("2 4", 3, 2), Err(Some(Code::AxisOutOfRange)));
        let one = |which: &str| infer("topk", &[("data", tensor("2 4:int8")), ("ret_type", text(which))]);
        assert_eq!(one("values"), Ok(ty("2 1:int8")));
        assert_eq!(one("indices"), Ok(ty("2 1:int32")));
        assert!(matches!(one("both"), Ok(StructInfo::Tuple(_))));
    }
}
