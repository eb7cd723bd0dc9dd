//! Activations: one tensor in, one of the same shape out.

use crate::call::{CallInfo, Problem};
use crate::schema::{Param, Purity, Schema};
use rx_base::Code;
use rx_ir::StructInfo;

pub(crate) static OPERATORS: &[Schema] = &[Schema {
    name: "nn.relu",
    params: &[Param::tensor("data", "The input.")],
    purity: Purity::Pure,
    doc: "Rectified linear unit: `max(data, 0)`, element by element.",
    reference: "TVM src/relax/op/nn/nn.cc",
    infer: same_type,
}];

/// The result has the type of `data`.
fn same_type(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    call.tensor("data")?;
    let _ = Code::ArgumentType;
    Ok(call.ty("data").clone())
}
