//! TVMScript text: segments, tokens, statement trees, and the document that they form.
//!
//! - [`Document`] cuts a file into [`Item`]s and those into [`Segment`]s, and keeps them across edits.
//! - [`Segment::tree`] is a segment's tokens and statements ([`ast`]); [`Cursor`] leads from a tree back to its text.
//! - [`printer::print`] and [`format::format`] go back to text, in any [`dialect::Dialect`]; [`printer::tree_eq`] compares trees.
//! - [`directive`]: comments that address rx, such as `# rx: ignore[RX0651]`.
//! - [`syntax_diagnostics`], [`numbered_names`] and [`Item::indentation_diagnostics`] report mistakes of syntax.
//!
//! The crate knows Python's grammar as far as TVMScript uses it. It knows no operators and no types.
//!
//! # Invariants
//!
//! - A segment is immutable, and its tree is a pure function of its text. Positions inside a segment are relative to its start.
//! - A statement tree depends on token kinds only; it contains neither text nor positions.
//! - The end of a statement can be found from its start alone. So an edit reads only its surroundings again, and afterwards the
//!   document has the items and statements of a new document of the same text.
//! - Parsing never fails: a broken statement becomes a tree with an error node, and one diagnostic.
//! - The differences between spellings are in one table ([`dialect`]). `rx-analysis` asks it for keywords, but names both `Any`
//!   and `Object` itself where it reads types.

pub mod ast;
pub mod cursor;
mod diagnostics;
pub mod dialect;
pub mod directive;
pub mod document;
mod expressions;
pub mod format;
mod grammar;
mod header;
mod line;
mod literal;
mod nesting;
mod numbered;
pub mod printer;
mod recover;
#[cfg(test)]
mod render;
pub mod segment;
mod shape;
mod shift;
mod target;
pub mod token;

pub use cursor::{At, Cursor, SmallPath};
pub use diagnostics::syntax_diagnostics;
pub use document::{Document, Edit, Encoding, FileKind, FunctionKind, Item, ItemKind, Location};
pub use expressions::Root;
pub use numbered::numbered_names;
pub use segment::{Segment, SegmentTree, Statement};
pub use token::{TokenKind, TokenTable};
