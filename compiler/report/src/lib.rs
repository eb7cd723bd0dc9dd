//! Rendering of diagnostics: as text, as JSON, and in the formats of other tools.
//!
//! A check creates a [`Diagnostic`](rx_base::Diagnostic), and this crate renders it:
//!
//! - [`full`]: a report for people, with the source lines and labels under them (drawn by ariadne);
//! - [`concise`]: one line, `path:line:column: error[RX0501] message`;
//! - [`json`]: one JSON object, the stable interface of `docs/json.md`.
//!
//! A run over several files is written in a [`Format`]: one of these, or the format of another tool (SARIF, GitHub's
//! workflow commands, GitLab's code quality report, JUnit's XML). [`explain`] renders the page of a code, which the
//! build script embeds in the binary.
//!
//! All formats look up positions in a [`Source`]: the text with its path and a table of positions that is built on
//! first use. [`load`] reads a text, and [`Notebook`] the cells of a notebook; [`Content`] is either of them. [`store`]
//! writes a text, completely or not at all.
//!
//! # Invariants
//!
//! - The cost of a report does not depend on the length of the file or of its lines: of a long line only a window
//!   around each label is read.
//! - Fields of the JSON form are added, never changed.
//! - Formats that are a single document (SARIF, GitLab, JUnit) are complete, whatever was found or could not be read.

mod concise;
mod content;
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
mod notebook;
mod plain;
pub mod process;
mod sarif;
mod source;
pub mod stdout;
pub mod store;
mod window;

pub use concise::concise;
pub use content::Content;
pub use explain::{explain, page};
pub use format::{Format, Piece, Report};
pub use full::{FullReport, full};
pub use json::{EditRecord, FixRecord, LabelRecord, Record, json, json_line};
pub use notebook::Notebook;
pub use plain::{colors_by_default, line_of, printable};
pub use source::{Position, Source};
