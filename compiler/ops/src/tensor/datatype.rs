//! Operators that only change the dtype: schemas and struct-info rules.

use super::compute::elementwise as compute;
use super::elementwise::with_dtype;
use super::values::elementwise;
use crate::call::{CallInfo, Problem};
use crate::cost::Cost;
use crate::infer_layout;
use crate::schema::{AttrKind, Param, Schema, Traits};
use rx_ir::StructInfo;

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new(
        "astype",
        "Each element converted to another dtype. Floats become integers by cutting off the fraction.",
        |call| cast(call, "x"),
    )
    .taking(&[
        Param::tensor("x", "The input."),
        Param::required_attr("dtype", AttrKind::DType, "The dtype of the result."),
    ])
    .lowered_by(compute::astype)
    .costing(Cost::PerOutput(0))
    .with_traits(Traits::OPAQUE.keeping("x").computing(elementwise::cast).laid_out(infer_layout::elementwise)),
    Schema::new(
        "wrap_param",
        "A parameter kept in another dtype than it is used in. Passes move the conversion to where weights are \
         prepared.",
        |call| cast(call, "data"),
    )
    .taking(&[Param::tensor("data", "The parameter."), Param::dtype("dtype", "float32", "The dtype to compute with.")])
    .lowered_by(compute::astype)
    .costing(Cost::Nothing)
    .with_traits(Traits::OPAQUE.keeping("data").computing(elementwise::cast)),
];

fn cast(call: &CallInfo<'_>, name: &'static str) -> Result<StructInfo, Problem> {
    call.tensor(name)?;
    Ok(with_dtype(call.ty(name), call.dtype("dtype")))
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, tensor, text, ty};

    #[test]
    fn only_the_dtype_changes() {
        for (input, wanted) in [("2 n:float16", "2 n:int8"), ("$s/2:?@cuda:0:global", "$s/2:int8@cuda:0:global")] {
            assert_eq!(infer("astype", &[("x", tensor(input)), ("dtype", text("int8"))]), Ok(ty(wanted)));
        }
        assert_eq!(infer("wrap_param", &[("data", tensor("2:float16"))]), Ok(ty("2:float32")));
    }
}
