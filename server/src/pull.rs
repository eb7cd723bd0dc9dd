//! Pull diagnostics: diagnostics that the client requests, so that a text is checked only when the client shows it.

use crate::lsp::{Uri, to_proto};
use crate::reads::Reply;

/// A request for the diagnostics of a document.
#[derive(Debug)]
pub struct Pull {
    /// The document.
    pub uri: Uri,
    /// The `resultId` of the last response that the client has.
    pub previous: Option<String>,
    /// The sender of the response.
    pub reply: Reply<Report>,
}

/// The response to a [`Pull`].
#[derive(Debug)]
pub struct Report {
    /// The `resultId` of this response, which changes with the text and with the settings. `None` if the document is
    /// not open.
    pub id: Option<String>,
    /// The diagnostics. `None` if they are the same as in the response that the client has.
    pub diagnostics: Option<to_proto::Diagnostics>,
}
