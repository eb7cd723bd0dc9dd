//! The base crate of rx, which depends on no other crate of the workspace.
//!
//! - [`Name`]: interned identifiers. [`Span`]: a byte range of a text.
//! - [`DType`]: the element types of Relax.
//! - [`symbolic`]: symbolic integers in normal form, and a prover with the answers proved, refuted and open.
//! - [`diagnostic`]: diagnostics with codes, labels and fixes. [`fix`]: application of fixes to a text.
//! - [`Chunks`]: a persistent list that shares the parts that an edit does not change.
//! - [`notebook`]: the code cells of a notebook as one text.
//! - [`store`]: atomic replacement of files. [`process`]: other processes, watched until they end.
//! - [`tvm`]: the releases of TVM whose limits rx knows.
//!
//! # Invariants
//!
//! - A [`Dim`] is always in normal form; dims with equal forms are equal for all non-negative values of their symbols.
//!   Arithmetic never overflows: a result that cannot be represented is the error dim, which is compatible with
//!   everything.
//! - A *proved* statement about dims holds, and a *refuted* one fails, for all values that the bounds and facts allow.
//!   Each question takes a bounded number of steps.
//! - A diagnostic is generic over the type of its places. Checks return diagnostics; they never print.
//! - The number and the slug of a published code keep their meaning.
//! - The edits of a fix are applied together or not at all. A fix that adds more errors than it removes is undone.

pub mod chunks;
mod counted;
pub mod diagnostic;
pub mod dtype;
pub mod edit_distance;
pub mod fix;
pub mod name;
pub mod notebook;
pub mod process;
pub mod span;
pub mod store;
pub mod symbolic;
pub mod tvm;

pub use chunks::Chunks;
pub use counted::{counted, one_of};
pub use diagnostic::{Code, Diagnostic, Fix, Label, Severity};
pub use dtype::DType;
pub use name::Name;
pub use span::Span;
pub use symbolic::{Answer, Dim};
pub use tvm::TvmVersion;
