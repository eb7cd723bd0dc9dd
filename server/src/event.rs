//! What the handlers tell the main loop.

use crate::lsp::{Change, Preferences, Profile, ProgressToken, Uri, WorkspaceEdit};
use crate::pull::Pull;
use crate::reads::{Lane, Read};
use crate::run::{Order, Settings, stage};
use rx_base::{Diagnostic, Span};
use rx_settings::Choice;

/// Why a function has no lowering, at statements of a document.
#[derive(Debug)]
pub struct NotLowered {
    /// Which document.
    pub uri: Uri,
    /// The number of its text.
    pub text_number: u64,
    /// The reasons.
    pub diagnostics: Vec<Diagnostic<Span>>,
}

/// One thing for the main loop to do, in the order of the client's messages.
#[derive(Debug)]
pub enum Event {
    /// The client said what it can take.
    Configure(Profile),
    /// The client can be asked for things now.
    Initialized,
    /// The client says that settings changed, and not how.
    PullSettings,
    /// The user decided something about runs.
    Settings(Settings),
    /// The user decided what to be shown.
    Prefer(Preferences),
    /// The user chose codes; with words that are none.
    Choose(Choice, Vec<String>),
    /// Files outside the editor changed, a settings file among them.
    SettingsFiles,
    /// A document was opened.
    Open {
        /// Which.
        uri: Uri,
        /// The client's name of its language.
        language: String,
        /// The version of the text.
        version: i32,
        /// All of it.
        text: String,
    },
    /// A document was changed.
    Change {
        /// Which.
        uri: Uri,
        /// The version after the changes.
        version: i32,
        /// One after the other, each in the positions the one before left.
        changes: Vec<Change>,
    },
    /// A document was closed.
    Close {
        /// Which.
        uri: Uri,
    },
    /// The mistakes of a document are asked for.
    Pull(Pull),
    /// A question about a document, or about all.
    Read(Read),
    /// A worker met an edit before it had the answer: the question is open again.
    ReadAgain(Read),
    /// A worker of a lane is free again; with what is to be logged, if anything.
    ReadDone(Lane, Option<String>),
    /// A function has no lowering.
    NotLowered(NotLowered),
    /// A function is to be run.
    Run(Order),
    /// A stage of a function is to be shown.
    Stage(stage::Order),
    /// A run, or what shows a stage, has ended; the registry's number of it.
    RunEnded(u64),
    /// The client is to apply this.
    ApplyEdit(WorkspaceEdit),
    /// The client cancelled a progress of this name.
    CancelProgress(ProgressToken),
    /// No run is wanted any more.
    CancelRuns,
    /// No more will come.
    Stop,
}
