//! Ground floor of rx: what every other crate may use and that uses none of them.
//!
//! - [`Name`]: interned identifiers; [`Span`]: a byte range of some text.
//! - [`DType`]: the element types Relax knows.
//! - [`symbolic`]: symbolic integers in normal form, and a prover with three answers.
//! - [`diagnostic`]: diagnostics as values, their codes, labels and fixes; [`fix`]: fixes applied to a text.
//! - [`store`]: files written whole or not at all.
//! - [`tvm`]: the releases of TVM whose limits rx knows.

mod counted;
pub mod diagnostic;
pub mod dtype;
pub mod edit_distance;
pub mod fix;
pub mod name;
pub mod span;
pub mod store;
pub mod symbolic;
pub mod tvm;

pub use counted::{counted, one_of};
pub use diagnostic::{Code, Diagnostic, Fix, Label, Severity};
pub use dtype::DType;
pub use name::Name;
pub use span::Span;
pub use symbolic::{Answer, Dim};
pub use tvm::TvmVersion;
