//! Every Relax operator, one operator in one place: schema, docs, struct-info rule, compute definition.
//!
//! A family is a file; a file lists its operators in a table of [`Schema`]s and holds their rules below it. What the
//! rest of rx knows of an operator (argument checks, completion, hover, docs pages) is derived from its schema.

pub mod call;
pub mod classic;
pub mod compute;
pub mod cost;
pub mod flow;
pub mod provenance;
mod registry;
pub mod relayout;
mod repair;
pub mod schema;
pub mod tvm;
pub mod values;

mod arguments;
mod axes;
mod broadcast;
pub mod layout;
mod operands;
mod reduction;

mod call_functions;
mod ccl;
mod distributed;
mod effects;
mod grad;
mod image;
mod inspect;
mod memory;
mod nn;
mod tensor;
pub mod user;
mod vision;
mod vm;

#[cfg(test)]
mod tests;

pub use call::{Arg, CallInfo, ParamPlace, Problem};
pub use compute::{Compute, Input, Kernel, Lowering, Unsupported};
pub use cost::{Charge, Cost};
pub use flow::{Flow, Part, Site};
pub use registry::{all, find};
pub use relayout::{Laid, LaidOut, LayoutCall, LayoutRule};
pub use repair::{Repair, repairs};
pub use schema::{AttrKind, Default, Param, ParamKind, Purity, Schema, usual_layouts};
