//! What an editor asks of a place in a file, answered in bytes of the file.
//!
//! Each module answers one kind of question as a function of a [`FileView`] and a place. Nothing here knows a protocol:
//! positions are byte offsets, texts are Markdown or source. Nothing here is kept between questions: what has to be fast
//! after an edit asks the queries, which are, and looks at as little text as the answer needs.
//!
//! [`FileView`]: rx_db::FileView

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
