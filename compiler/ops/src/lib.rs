//! All Relax operators. Each operator has its schema, documentation, struct-info rule and compute definition in one
//! place.
//!
//! An operator family is a file. It lists its operators in a table of [`Schema`]s, followed by their rules. Argument
//! checks, completion, hover and the documentation pages are derived from the schemas.
//!
//! - [`compute`]: lowers a call to loops. [`traits`]: facts about a result's values ([`values`]), index operands, and
//!   the layout rule ([`infer_layout`]). [`cost`]: counts operations and bytes.
//! - [`classic`]: parameter names and orders of old TVM releases, bound to the current ones. No rule has to handle
//!   them.
//! - [`provenance`] and `suggestion`: explain a type and suggest an attribute. They run the struct-info rule on changed
//!   arguments, so no operator describes its rule twice.
//! - [`user`]: operators that a project declares, whose schemas are made from data. Equal declarations are stored once.
//!
//! # Invariants
//!
//! - An operator is added by one entry in its family's file.
//! - A struct-info rule is a pure function from bound arguments to a type or a problem. It does not see the program's
//!   text and refers to places by parameter. Each formula is written once, where its dim is computed; the rule reports
//!   it by `CallInfo::derive`.
//! - A compute definition is written once for all shapes and layouts: extents are symbolic, layouts are index maps. Its
//!   `Kernel` lists the argument of each parameter.
//! - A value rule holds for every execution; tests compare it with the values of all operator cases. An operator
//!   without a rule has unknown values, never wrong ones. The branches of `where` are limited by its condition
//!   (`values::relation`).
//! - A layout rule preserves values: with operands in other layouts, the call that it returns computes the same tensor
//!   in the layout that it names. Tests run each such operator between convolutions. An operator without a layout rule
//!   takes its operands in the layouts of their types.

pub mod call;
pub mod classic;
pub mod compute;
pub mod cost;
pub mod infer_layout;
pub mod provenance;
mod registry;
pub mod schema;
mod suggestion;
pub mod traits;
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
pub use infer_layout::{Laid, LaidOut, LayoutCall, LayoutRule};
pub use registry::{all, find};
pub use schema::{AttrKind, Default, Param, ParamKind, Purity, Schema, usual_layouts};
pub use suggestion::{Suggestion, shaping_operand, suggestions};
pub use traits::{Part, Site, Traits};
