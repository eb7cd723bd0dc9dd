//! TVMScript text: the document, its segments, tokens and statement trees.
//!
//! - [`Document`] splits a file into [`Item`]s and those into [`Segment`]s, and keeps unchanged ones across edits.
//! - [`Segment::tree`] returns a segment's tokens and statements ([`ast`]). A tree holds no text: [`Cursor`] maps its
//!   tokens back to text.
//! - [`printer::print`] and [`format::format`] print text, in any [`dialect::Dialect`]; [`printer::tree_eq`] compares
//!   trees.
//! - [`directive`]: comments that configure rx, such as `# rx: ignore[RX0651]`.
//! - [`syntax_diagnostics`], [`numbered_names`] and [`Item::indentation_diagnostics`] report syntax errors.
//!
//! The crate parses the part of Python's grammar that TVMScript uses. It knows no operators and no types.
//!
//! # Invariants
//!
//! - A segment is immutable, and its tree is a pure function of its text. Positions inside a segment are relative to
//!   its start.
//! - A statement tree depends on token kinds only; it contains neither text nor positions.
//! - The end of a statement can be found from its start alone. So an edit parses only the surrounding segments again,
//!   and the edited document has the same items and statements as a new document of the same text.
//! - Parsing never fails: a broken statement becomes a tree with an error node, and one diagnostic.
//! - The differences between dialects are in one table ([`dialect`]). `rx-analysis` looks keywords up there, except
//!   that it accepts both `Any` and `Object` itself where it parses types.

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
pub mod segment;
mod shape;
mod shift;
mod target;
pub mod token;

pub use cursor::{At, Cursor, SmallPath};
pub use diagnostics::syntax_diagnostics;
pub use document::{Document, Edit, Encoding, FileKind, FunctionKind, Item, ItemKind, Location};
pub use expressions::Root;
pub use numbered::{numbered_names, numbered_names_in};
pub use segment::{Segment, SegmentTree, Segments, Statement, with_trees_ahead};
pub use token::{TokenKind, TokenTable};
