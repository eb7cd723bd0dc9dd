//! Diagnostics as text.
//!
//! A [`Diagnostic`](rx_base::Diagnostic) is built once by a check and rendered here in one of three ways:
//!
//! - [`full`]: the report a person reads, with the source lines and labels under them (drawn by ariadne);
//! - [`concise`]: one line, `path:line:column: error[RX0501] message`;
//! - [`json`]: one JSON object, the machine-readable contract of `docs/json.md`.
//!
//! All three read positions through a [`Source`]: the text with its path and a table of positions that is built once,
//! on first use. The cost of a report does not depend on the length of the file or of its lines: of a long line only a
//! window round each label is looked at.

mod concise;
mod excerpt;
mod full;
mod json;
pub mod load;
mod plain;
mod source;
mod window;

pub use concise::concise;
pub use full::full;
pub use json::{EditRecord, FixRecord, LabelRecord, Record, json, json_line};
pub use plain::{colors_by_default, line_of, printable};
pub use source::{Position, Source};
