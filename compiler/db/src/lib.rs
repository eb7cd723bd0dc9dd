//! The queries, shared by the command line and the language server. Salsa is used in this crate only.
//!
//! A [`Workspace`] owns documents and a salsa database. Each item of a document is one salsa input; queries are per item
//! (`queries`), and each body is one call into a pure function of `rx-analysis`. Results hold no file positions: those
//! are computed from the document when somebody asks.

mod annotate;
mod module;
mod modules;
mod owner;
mod position;
mod project;
mod queries;
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
pub use stats::{Costs, FunctionOrLoops, StatsRow};
pub use view::FileView;
pub use workspace::{Cancelled, FileId, RowKind, Snapshot, TypeRow, Workspace};
