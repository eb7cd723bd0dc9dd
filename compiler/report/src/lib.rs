//! Renders diagnostics: as text, JSON and the formats of other tools.
//!
//! A [`Diagnostic`](rx_base::Diagnostic) is built once by a check and rendered here:
//!
//! - [`full`]: the report a person reads, with the source lines and labels under them (drawn by ariadne);
//! - [`concise`]: one line, `path:line:column: error[RX0501] message`;
//! - [`json`]: one JSON object, the machine-readable contract of `docs/json.md`.
//!
//! A run over files is written in a [`Format`], which is one of these or a form other tools read: SARIF, GitHub's workflow
//! commands, GitLab's code quality report, JUnit's XML. [`explain`] lays out the page of a code, which the build script puts into
//! the binary.
//!
//! All forms read positions through a [`Source`]: the text with its path and a table of positions that is built once, on first
//! use. [`load`] reads a text, [`store`] writes one, as a whole or not at all.
//!
//! # Invariants
//!
//! - The cost of a report does not depend on the length of the file or of its lines: of a long line only a window around each
//!   label is read.
//! - Fields of the JSON form are added, never changed.
//! - Forms that are one document (SARIF, GitLab, JUnit) are complete, whatever was found or could not be read.

mod concise;
mod excerpt;
mod explain;
mod fingerprint;
mod format;
mod full;
mod github;
mod gitlab;
mod json;
mod junit;
pub mod load;
mod plain;
pub mod process;
mod sarif;
mod source;
pub mod stdout;
pub mod store;
mod window;

pub use concise::concise;
pub use explain::{explain, page};
pub use format::{Format, Piece, Report};
pub use full::{Story, full};
pub use json::{EditRecord, FixRecord, LabelRecord, Record, json, json_line, place};
pub use plain::{colors_by_default, line_of, printable};
pub use source::{Position, Source};
