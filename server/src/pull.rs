//! Diagnostics that the client asks for, instead of being told: the text is checked when somebody looks at it.

use crate::lsp::{Uri, to_proto};
use crate::reads::Reply;

/// A request for the diagnostics of a document.
#[derive(Debug)]
pub struct Pull {
    /// Which document.
    pub uri: Uri,
    /// The last answer the client has, by the name it came with.
    pub previous: Option<String>,
    /// Where the answer goes.
    pub reply: Reply<Report>,
}

/// The answer to a [`Pull`].
#[derive(Debug)]
pub struct Report {
    /// The name of this answer, which changes with the text and with the settings; none of a document that is not open.
    pub id: Option<String>,
    /// The diagnostics; `None` where they are those of the answer the client has.
    pub diagnostics: Option<to_proto::Diagnostics>,
}
