//! Editor features as functions of a file and a position, independent of any protocol.
//!
//! Each module implements one kind of request (hover, completion, rename, …) as a function of a [`FileView`] and a byte
//! offset. Positions are byte offsets in the file, texts are Markdown or source text. The language server (`rx-server`)
//! converts them to LSP.
//!
//! [`FileView`]: rx_db::FileView
//!
//! # Invariants
//!
//! - No state is kept between requests. A result that must be fast after an edit comes from the database's queries, or
//!   reads as little text as possible.
//! - Every request returns normally on broken text, and no result contains a position outside the text.
//! - Documentation of an operator comes from its schema, formulas from its inference rule, types from `annotations`,
//!   and the variables that fit a call from its elaboration (`rx_analysis::position_scope`). This crate has no lists of
//!   operators or types, except for snippets.
//! - The call around a position is found by its brackets (`call_site`), since an incomplete call has no tree yet.
//! - Only `names` resolves variables: it reads those segments of an item that contain the name, in order, with the
//!   enclosing blocks. A rename is correct if all names of the renamed text resolve as before.
//! - The tokens of a segment (`semantic`) depend only on its key.
//! - A graph (`graph`) reads only the segments around the position and counts the bindings of the others. A pass that
//!   is offered as an action (`raw_entry`) is run on the module, and its result is applied as edits, so that comments
//!   and layout around them are preserved.
//! - A refactoring (`refactor`) is offered only after its result was checked: it has no new errors, and the variables
//!   that it does not touch keep their types.

mod actions;
mod call_site;
mod calls;
mod changes;
mod code_lens;
mod completion;
mod dataflow;
mod document_links;
mod explain;
mod folding;
mod format;
mod goto;
mod graph;
mod hints;
mod hover;
mod names;
mod outline;
mod raw_entry;
mod refactor;
mod rename;
mod schema_text;
mod selection;
mod semantic;
mod signature_help;
mod symbolic_kernel;
mod syntax_tree;
mod token_at;
mod tree;

pub use actions::{
    Effect, FunctionAt, QuickFix, annotate, first_function, fix_all, function_around, function_in, quick_fixes,
};
pub use calls::{Call, function_at, incoming, outgoing};
pub use code_lens::cost_line;
pub use completion::{Completion, CompletionKind, Completions, Subject, completion_doc, completions};
pub use document_links::{Link, MOST_LINKS, document_links};
pub use folding::{Fold, FoldKind, folds};
pub use format::{FORMAT_AFTER, format, format_typed};
pub use goto::{Definition, definition, highlights, references};
pub use graph::{Graph, GraphEdge, GraphNode, MOST_NODES, NodeKind, graph};
pub use hints::{Hint, HintParts, hints};
pub use hover::{Hover, hover};
pub use names::{Access, Occurrence, Symbol, SymbolKind, symbol_at};
pub use outline::{Outline, OutlineKind, functions, outline};
pub use raw_entry::{raw_entry, takes_prepared_weights};
pub use refactor::{Checked, RefactorKind, Refactoring, refactorings};
pub use rename::{prepare_rename, rename};
pub use selection::selections;
pub use semantic::{ItemKey, SegmentKey, SemanticWord, WordKind, changed_segments, item_keys};
pub use signature_help::{SignatureHelp, signature_help};
pub use symbolic_kernel::symbolic_kernel_fixes;
pub use syntax_tree::syntax_tree;
