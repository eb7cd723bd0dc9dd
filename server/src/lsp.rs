//! Conversion between the protocol's types and the server's. Messages of the client are converted in [`from_proto`],
//! messages to the client in [`to_proto`], [`progress`] and [`semantic`]. [`Profile`] holds the client's capabilities.
//! The documents, the main loop and the reads use only the types of this module.

pub mod actions;
pub mod completions;
pub mod edits;
pub mod from_proto;
pub mod hints;
pub mod lenses;
pub mod notebooks;
pub mod progress;
pub mod semantic;
pub mod to_proto;
pub mod writing;

pub use tower_lsp::ls_types::{Location, ProgressToken, Range, Uri, WorkspaceEdit};

use rx_db::Encoding;

/// The `source` field of every diagnostic.
pub const SOURCE: &str = "rx";

/// The client's capabilities, from its `initialize` request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The position encoding (the unit of columns), negotiated in `initialize`.
    pub encoding: Encoding,
    /// Whether diagnostics may have `relatedInformation`; otherwise related places become lines of the message.
    pub related_information: bool,
    /// Whether a diagnostic code may have a link (`codeDescription`).
    pub code_links: bool,
    /// Whether diagnostics may have a `data` field, which the client returns in code action requests.
    pub data: bool,
    /// Whether a diagnostic may have the tag `Unnecessary`.
    pub unnecessary: bool,
    /// Whether hovers may be Markdown.
    pub markdown: bool,
    /// Whether the client pulls diagnostics. If so, none are published.
    pub pulls: bool,
    /// Whether the client supports `workspace/diagnostic/refresh`.
    pub refreshes: bool,
    /// Whether the client supports `workspace/codeLens/refresh`.
    pub refreshes_lenses: bool,
    /// Whether the client supports `workspace/configuration`.
    pub settings: bool,
    /// Whether the client supports dynamic registration for `workspace/didChangeConfiguration`.
    pub tells_settings: bool,
    /// Whether the server may create progress (`window/workDoneProgress/create`).
    pub progress: bool,
    /// Whether the client supports dynamic registration for `workspace/didChangeWatchedFiles`.
    pub watches: bool,
    /// Whether document symbols may be hierarchical.
    pub symbol_trees: bool,
    /// Whether the client supports `textDocument/prepareRename`.
    pub prepares_renames: bool,
    /// Whether the client folds whole lines only.
    pub folds_lines: bool,
    /// Whether the client syncs notebooks.
    pub notebooks: bool,
    /// The capabilities for code actions, hints and completions.
    pub writing: Writing,
}

/// The command of VS Code that opens signature help. A client names it in its experimental capability
/// `commands.commands`, as for rust-analyzer, if it has it.
pub const PARAMETER_HINTS: &str = "editor.action.triggerParameterHints";

/// The client's capabilities for code actions, inlay hints, completions and signature help.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writing {
    /// Whether code actions may be `CodeAction` literals, not only commands.
    pub actions: bool,
    /// Whether a code action's edit may be computed by `codeAction/resolve`.
    pub late_actions: bool,
    /// Whether a code action may have `isPreferred`.
    pub preferred: bool,
    /// Whether workspace edits may use `documentChanges`, which name the version of the text.
    pub versioned: bool,
    /// Whether the client supports `workspace/applyEdit`.
    pub apply: bool,
    /// Whether a completion may be a snippet with placeholders.
    pub snippets: bool,
    /// Whether the client can execute [`PARAMETER_HINTS`] after a completion.
    pub parameter_hints: bool,
    /// Whether the documentation of a completion may be computed by `completionItem/resolve`.
    pub late_docs: bool,
    /// Whether a completion may have the tag `Deprecated`.
    pub deprecated: bool,
    /// Whether the documentation of completions may be Markdown.
    pub markdown_docs: bool,
    /// Whether the documentation of signatures may be Markdown.
    pub markdown_signatures: bool,
    /// Whether a signature's parameters may be given as offsets in its label.
    pub label_offsets: bool,
    /// Whether a signature may have its own `activeParameter`.
    pub active_parameter: bool,
    /// Whether the tooltip of an inlay hint may be computed by `inlayHint/resolve`.
    pub late_hints: bool,
}

/// The user's settings for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preferences {
    /// The parts of types that inlay hints show.
    pub hints: rx_ide::HintParts,
    /// Whether code actions offer to run a function on a GPU.
    pub gpu: bool,
}

impl Default for Preferences {
    fn default() -> Preferences {
        Preferences { hints: rx_ide::HintParts { shapes: true, dtypes: true }, gpu: crate::run::gpu::has_driver() }
    }
}

impl Default for Profile {
    /// The minimal client: UTF-16 positions and plain text.
    fn default() -> Profile {
        Profile {
            encoding: Encoding::Utf16,
            related_information: false,
            code_links: false,
            data: false,
            pulls: false,
            refreshes: false,
            refreshes_lenses: false,
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
            notebooks: false,
        }
    }
}

/// A position as in the protocol: line and column from 0. Columns are counted in units of [`Profile::encoding`].
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
    /// The start and end of the replaced range; `None` if the whole text is replaced.
    pub range: Option<(Point, Point)>,
    /// The new text.
    pub text: String,
}
