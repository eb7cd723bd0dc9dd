//! What the handlers tell the main loop.

use crate::lsp::{Change, Profile, Uri};
use crate::reads::Read;

/// One thing for the main loop to do, in the order of the client's messages.
#[derive(Debug)]
pub enum Event {
    /// The client said what it can take.
    Configure(Profile),
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
    /// A question about a document.
    Read(Read),
    /// A worker met an edit before it had the answer: the question is open again.
    ReadAgain(Read),
    /// A worker is free again; with what is to be logged, if anything.
    ReadDone(Option<String>),
    /// No more will come.
    Stop,
}
