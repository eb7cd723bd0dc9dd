//! TVMScript text: segments, tokens, statement trees, and the document they make up.
//!
//! - [`Document`] cuts a file into [`Item`]s and those into [`Segment`]s, and keeps them across edits.
//! - [`Segment::tree`] is a segment's tokens and statements ([`ast`]); [`Cursor`] leads from a tree back to its text.
//! - [`printer::print`] and [`format::format`] go back to text, in any [`dialect::Dialect`]; [`printer::tree_eq`] compares trees.
//! - [`directive`]: comments that speak to rx.
//! - [`syntax_diagnostics`], [`numbered_names`] and [`Item::indentation_diagnostics`] say what is wrong with them.

pub mod ast;
pub mod cursor;
mod diagnostics;
pub mod dialect;
pub mod directive;
pub mod document;
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

pub use cursor::{Cursor, SmallPath};
pub use diagnostics::syntax_diagnostics;
pub use document::{Document, Edit, Encoding, FileKind, FunctionKind, Item, ItemKind, Location};
pub use numbered::numbered_names;
pub use segment::{Segment, SegmentTree, Statement};
pub use token::{TokenKind, TokenTable};
