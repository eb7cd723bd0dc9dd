//! The events that handlers and worker threads send to the main loop.

use crate::lsp::{Change, Preferences, Profile, ProgressToken, Uri, WorkspaceEdit};
use crate::notebooks::{Cell, Changes};
use crate::pull::Pull;
use crate::reads::{Lane, Read};
use crate::run::{Order, Settings, stage};
use rx_base::{Diagnostic, Span};
use rx_settings::Choice;

/// Errors of lowering to TIR for functions of one version of a document's text.
#[derive(Debug)]
pub struct NotLowered {
    /// The document.
    pub uri: Uri,
    /// The number of the text that was lowered. If the document has another text by now, the errors are dropped.
    pub text_number: u64,
    /// The errors, at statements of that text.
    pub diagnostics: Vec<Diagnostic<Span>>,
}

/// One task for the main loop. Events arrive in the order of the client's messages.
#[derive(Debug)]
pub enum Event {
    /// `initialize`: the client's capabilities.
    Configure(Profile),
    /// `initialized`: from now on the server may send requests to the client.
    Initialized,
    /// The client's settings changed, but the notification did not contain the new values.
    PullSettings,
    /// The client's settings for runs.
    Settings(Settings),
    /// The client's settings for display, such as inlay hints.
    Prefer(Preferences),
    /// The diagnostic codes that the client's settings select. The strings describe the entries that are not valid.
    Choose(Choice, Vec<String>),
    /// Files on disk changed, at least one settings file (`rx.toml`) among them.
    SettingsFiles,
    /// `textDocument/didOpen`.
    Open {
        /// The document.
        uri: Uri,
        /// The client's language identifier, for example `python`.
        language: String,
        /// The version of the text.
        version: i32,
        /// The whole text.
        text: String,
    },
    /// `textDocument/didChange`.
    Change {
        /// The document.
        uri: Uri,
        /// The version after all the changes.
        version: i32,
        /// The changes in order. The positions of each refer to the text after the previous one.
        changes: Vec<Change>,
    },
    /// `textDocument/didClose`.
    Close {
        /// The document.
        uri: Uri,
    },
    /// `notebookDocument/didOpen`.
    OpenNotebook {
        /// The notebook.
        uri: Uri,
        /// Its version.
        version: i32,
        /// Its cells.
        cells: Vec<Cell>,
    },
    /// `notebookDocument/didChange`.
    ChangeNotebook {
        /// The notebook.
        uri: Uri,
        /// Its version after the changes.
        version: i32,
        /// The changes.
        changes: Changes,
    },
    /// `notebookDocument/didClose`.
    CloseNotebook {
        /// The notebook.
        uri: Uri,
    },
    /// `textDocument/diagnostic`: a pull request for a document's diagnostics.
    Pull(Pull),
    /// A read-only request about one document or all documents.
    Read(Read),
    /// A read that was cancelled by an edit before it finished and has to be retried.
    ReadAgain(Read),
    /// A worker of a lane is free again. The string, if any, is an error for the client's log.
    ReadDone(Lane, Option<String>),
    /// A function could not be lowered to TIR.
    NotLowered(NotLowered),
    /// A request to run a function.
    Run(Order),
    /// A request to show a compilation stage of a function.
    Stage(stage::Order),
    /// A child process has ended; the number is its id in the registry.
    RunEnded(u64),
    /// An edit to apply in the client (`workspace/applyEdit`).
    ApplyEdit(WorkspaceEdit),
    /// The client cancelled the progress with this token.
    CancelProgress(ProgressToken),
    /// The run of this document is to be stopped; `None` for the runs of all documents.
    StopRun(Option<Uri>),
    /// All runs are to be cancelled, because the session is ending.
    CancelRuns,
    /// The last event: the main loop ends.
    Stop,
}
