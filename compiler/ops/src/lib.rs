//! Every Relax operator, one operator in one place: schema, docs, struct-info rule, compute definition.
//!
//! A family is a file; a file lists its operators in a table of [`Schema`]s and holds their rules below it. What the
//! rest of rx knows of an operator (argument checks, completion, hover, docs pages) is derived from its schema.

pub mod call;
pub mod compute;
mod registry;
pub mod schema;

mod arguments;
mod axes;
mod broadcast;
mod layout;
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
mod vision;
mod vm;

#[cfg(test)]
mod tests;

pub use call::{Arg, CallInfo, ParamPlace, Problem};
pub use compute::{Compute, Input, Kernel, Lowering, Unsupported};
pub use registry::{all, find};
pub use schema::{AttrKind, Default, Param, ParamKind, Purity, Schema};
