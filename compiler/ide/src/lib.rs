//! Answers an editor's questions about a place in a file, in bytes of the file.
//!
//! Each module answers one kind of question as a function of a [`FileView`] and a place. Nothing here knows a protocol: positions
//! are byte offsets, texts are Markdown or source.
//!
//! [`FileView`]: rx_db::FileView
//!
//! # Invariants
//!
//! - Nothing is kept between questions. An answer that must be fast after an edit comes from the queries, or from as little text
//!   as it needs.
//! - Every question has an answer on broken text, and no answer names a place outside the text.
//! - Texts about an operator come from its schema, formulas from its rule, types from `annotations`, and the variables that fit a
//!   call from its elaboration (`rx_analysis::before`). The editor has no lists of its own, except for snippets.
//! - The call around a place is found by brackets (`call_site`), since a call that is being written has no tree yet.
//! - Only `names` resolves variables: it reads an item's segments that contain the name, in order, with the blocks around them. A
//!   rename is correct if the renamed text resolves the same way.
//! - The tokens of a segment (`semantic`) depend on their key and on nothing else.
//! - A graph (`graph`) reads the segments around the place only; of the others it counts the bindings. A pass offered as an
//!   action (`raw_entry`) is run, and its result applied as edits, so that comments and layout around them stay.

mod actions;
mod call_site;
mod calls;
mod changes;
mod completion;
mod explain;
mod folding;
mod format;
mod graph;
mod hints;
mod hover;
mod lens;
mod links;
mod names;
mod navigate;
mod outline;
mod raw_entry;
mod rename;
mod schema_text;
mod selection;
mod semantic;
mod signature_help;
mod syntax_tree;
mod tree;
mod word;

pub use actions::{FunctionAt, QuickFix, annotate, first_function, fix_all, function_around, function_in, quick_fixes};
pub use calls::{Call, function_at, incoming, outgoing};
pub use completion::{Completion, CompletionKind, Completions, Subject, completion_doc, completions};
pub use folding::{Fold, FoldKind, folds};
pub use format::format;
pub use graph::{Graph, GraphEdge, GraphNode, MOST_NODES, NodeKind, graph};
pub use hints::{Hint, HintParts, hints};
pub use hover::{Hover, hover};
pub use lens::cost_line;
pub use links::{Link, MOST_LINKS, links};
pub use names::{Access, Occurrence, Symbol, SymbolKind, symbol_at};
pub use navigate::{Definition, definition, highlights, references};
pub use outline::{Outline, OutlineKind, functions, outline};
pub use raw_entry::{raw_entry, takes_prepared_weights};
pub use rename::{prepare_rename, rename};
pub use selection::selections;
pub use semantic::{SegmentKey, SemanticWord, WordKind, segment_keys};
pub use signature_help::{SignatureHelp, signature_help};
pub use syntax_tree::syntax_tree;
