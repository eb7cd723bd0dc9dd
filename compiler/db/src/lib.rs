//! The queries, shared by the command line and the language server. Salsa is used in this crate only.
//!
//! A [`Workspace`] owns documents and a salsa database. Each item of a document is one salsa input; queries are per item
//! (`queries`), and each body is one call into a pure function of `rx-analysis`. Results hold no file positions: those
//! are computed from the document when somebody asks.

mod hover;
mod module;
mod position;
mod queries;
mod sync;
mod workspace;

pub use hover::Hover;
pub use module::FunctionRow;
pub use rx_syntax::document::{Document, Encoding, FileKind, FunctionKind};
pub use workspace::{Cancelled, FileId, RowKind, Snapshot, TypeRow, Workspace};
