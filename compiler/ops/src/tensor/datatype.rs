//! Operators that change nothing but the dtype.

use super::elementwise::with_dtype;
use super::loops::elementwise as loops;
use super::values::elementwise;
use crate::call::{CallInfo, Problem};
use crate::compute::Compute;
use crate::cost::Cost;
use crate::relayout;
use crate::schema::{AttrKind, Default, Flow, Param, Purity, Schema};
use rx_ir::StructInfo;

const REFERENCE: &str = "TVM src/relax/op/tensor/datatype.cc";

pub(crate) static OPERATORS: &[Schema] = &[
    Schema {
        name: "astype",
        params: &[
            Param::tensor("x", "The input."),
            Param::attr("dtype", AttrKind::DType, Default::Required, "The dtype of the result."),
        ],
        purity: Purity::Pure,
        doc: "Each element converted to another dtype. Floats become integers by cutting off the fraction.",
        reference: REFERENCE,
        cost: Cost::PerOutput(0),
        infer: |call| cast(call, "x"),
        compute: Some(Compute::Loops(loops::astype)),
        flow: Flow::OPAQUE.keeping("x").computing(elementwise::cast).laid_out(relayout::elementwise),
    },
    Schema {
        name: "wrap_param",
        params: &[
            Param::tensor("data", "The parameter."),
            Param::attr("dtype", AttrKind::DType, Default::Str("float32"), "The dtype to compute with."),
        ],
        purity: Purity::Pure,
        doc: "A parameter kept in another dtype than it is used in. Passes move the conversion to where weights are \
              prepared.",
        reference: REFERENCE,
        cost: Cost::Nothing,
        infer: |call| cast(call, "data"),
        compute: Some(Compute::Loops(loops::astype)),
        flow: Flow::OPAQUE.keeping("data").computing(elementwise::cast),
    },
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
