//! The incremental queries of checking, shared by the command line and the language server. Of the crates that check,
//! only this one depends on salsa.
//!
//! A [`Workspace`] owns documents and a salsa database. Each item of a document (a function, a module header, the
//! Python between them) is one salsa input, and queries are per item (`queries`). Results contain no file positions;
//! these are computed from the document on request. So an edit of one function does not invalidate the results of the
//! functions after it.
//!
//! # Invariants
//!
//! - The body of a query is one call of a pure function of a crate below.
//! - Inputs are per item, queries are per function or per file, never per binding
//!   (`docs/decisions/0002-memo-below-salsa.md`).
//! - Incremental results equal those from scratch; a property test over random edits compares them.
//! - The reader of a snapshot is cancelled by unwinding, so no profile may set `panic = "abort"`.

mod annotate;
mod module;
mod modules;
mod owner;
mod position;
mod project;
mod queries;
mod scope;
mod statements;
mod stats;
mod suppress;
mod sync;
mod view;
mod why;
mod workspace;

pub use module::FunctionRow;
pub use modules::{ModuleId, ModuleRow, OUTSIDE, modules};
pub use owner::{Declaration, Owner, declaration, prim_param};
pub use project::{Project, Projects};
pub use rx_analysis::annotate::Annotate;
pub use rx_analysis::operators::declared_operators;
pub use rx_analysis::stats::amount;
pub use rx_analysis::stats::{CallStats, FunctionStats, ParamStats, PeakStats};
pub use rx_analysis::trace::{Asked, Detail, Step, StepKind, Trace, Why};
pub use rx_ir::{IndexSites, Origin, StructInfo};
pub use rx_ops::user::Operators;
pub use rx_syntax::document::{Document, Encoding, FileKind, FunctionKind, JoinedEdit};
pub use rx_tir::Count;
pub use scope::Scope;
pub use statements::Statements;
pub use stats::{Costs, FunctionOrLoops, StatsRow};
pub use view::FileView;
pub use workspace::{Cancelled, FileId, RowKind, Snapshot, TypeRow, Workspace};
