//! Everything that knows the protocol's types: what clients say ([`from_proto`]), what they are told ([`to_proto`],
//! [`progress`], [`semantic`]), and what they can take ([`Profile`]).

pub mod actions;
pub mod completions;
pub mod edits;
pub mod from_proto;
pub mod hints;
pub mod lenses;
pub mod progress;
pub mod semantic;
pub mod to_proto;
pub mod writing;

pub use tower_lsp::ls_types::{ProgressToken, Range, Uri, WorkspaceEdit};

use rx_db::Encoding;

/// The `source` of every diagnostic.
pub const SOURCE: &str = "rx";

/// What the client can take, from its `initialize` request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What a column counts; agreed on in `initialize`.
    pub encoding: Encoding,
    /// Whether diagnostics may carry related places; else they become lines of the message.
    pub related_information: bool,
    /// Whether a code may carry a link.
    pub code_links: bool,
    /// Whether diagnostics may carry data, handed back with code action requests.
    pub data: bool,
    /// Whether text may be tagged as unnecessary.
    pub unnecessary: bool,
    /// Whether hovers may be Markdown.
    pub markdown: bool,
    /// Whether the client asks for diagnostics; it is not sent any then.
    pub pulls: bool,
    /// Whether the client asks again when told to.
    pub refreshes: bool,
    /// Whether the client can be asked for its settings.
    pub settings: bool,
    /// Whether the client tells of changed settings when asked to.
    pub tells_settings: bool,
    /// Whether the server may begin to show progress.
    pub progress: bool,
    /// Whether the client looks after files for the server when asked to.
    pub watches: bool,
    /// Whether a document's symbols may be a tree.
    pub symbol_trees: bool,
    /// Whether the client asks before it renames.
    pub prepares_renames: bool,
    /// Whether the client folds whole lines only.
    pub folds_lines: bool,
    /// What it can do with answers that help to write.
    pub writing: Writing,
}

/// What the client can do with actions, hints and completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writing {
    /// Whether actions may be more than commands.
    pub actions: bool,
    /// Whether an action's edits may come when it is chosen.
    pub late_actions: bool,
    /// Whether one action may be preferred to others.
    pub preferred: bool,
    /// Whether edits may name the version of the text that they are for.
    pub versioned: bool,
    /// Whether the server may ask for edits.
    pub apply: bool,
    /// Whether a completion may have places to fill in.
    pub snippets: bool,
    /// Whether the docs of a completion may come when it is looked at.
    pub late_docs: bool,
    /// Whether a completion may be marked as deprecated.
    pub deprecated: bool,
    /// Whether completions may be documented in Markdown.
    pub markdown_docs: bool,
    /// Whether signatures may be documented in Markdown.
    pub markdown_signatures: bool,
    /// Whether a signature's parameters may be places in its label.
    pub label_offsets: bool,
    /// Whether a signature may say which of its parameters is meant.
    pub active_parameter: bool,
    /// Whether the tooltip of a hint may come when it is looked at.
    pub late_hints: bool,
}

/// What the user wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preferences {
    /// What inlay hints show.
    pub hints: rx_ide::HintParts,
    /// Whether runs on a GPU are offered.
    pub gpu: bool,
}

impl Default for Preferences {
    fn default() -> Preferences {
        Preferences { hints: rx_ide::HintParts { shapes: true, dtypes: true }, gpu: crate::run::gpu::has_driver() }
    }
}

impl Default for Profile {
    /// The least a client can be: UTF-16 and plain text.
    fn default() -> Profile {
        Profile {
            encoding: Encoding::Utf16,
            related_information: false,
            code_links: false,
            data: false,
            pulls: false,
            refreshes: false,
            settings: false,
            tells_settings: false,
            unnecessary: false,
            markdown: false,
            progress: false,
            watches: false,
            writing: Writing::default(),
            symbol_trees: false,
            prepares_renames: false,
            folds_lines: false,
        }
    }
}

/// A position as the client counts: line and column from 0, columns in units of [`Profile::encoding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// One change of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What is replaced, start and end; `None` is everything.
    pub range: Option<(Point, Point)>,
    /// What stands there now.
    pub text: String,
}
