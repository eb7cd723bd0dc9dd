//! Every Relax operator, each in one place: schema, docs, struct-info rule, compute definition.
//!
//! A family is a file; a file lists its operators in a table of [`Schema`]s and holds their rules below it. Argument checks,
//! completion, hover and the pages of docs are derived from the schema.
//!
//! - [`compute`]: the loops of a call. [`flow`]: ranges and elements of a result ([`values`]), the operands that are indices, and
//!   the layout rule ([`relayout`]). [`cost`]: operations and bytes.
//! - [`classic`]: names and orders of parameters in old releases of TVM, bound to those of today; no rule knows of them.
//! - [`provenance`] and `repair` explain a type and suggest an attribute by running the struct-info rule on changed arguments, so
//!   no operator describes its rule twice.
//! - [`user`]: operators that a project declares, as schemas made of data. A declaration is stored once, however often it is
//!   read.
//!
//! # Invariants
//!
//! - An operator is added by one entry in its family's file.
//! - A struct-info rule is a pure function from bound arguments to a type or a problem. It sees no text and names places by
//!   parameter. A formula is written once, where its dim is computed; the rule reports it by `CallInfo::derive`.
//! - A compute definition is written once for all shapes and layouts: extents are symbolic, layouts are index maps. Its `Kernel`
//!   lists the argument of each parameter.
//! - A value rule holds for every result; tests compare it with the values of all operator cases. An operator without a rule has
//!   unknown values, never wrong ones. The branches of `where` are limited by its condition (`values::relation`).
//! - A layout rule keeps values: with operands in other layouts, the call that it returns computes the same tensor in the layout
//!   that it names. Tests run each such operator between convolutions. An operator without a layout rule takes its operands in
//!   the layouts of their types.

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
