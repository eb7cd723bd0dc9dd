//! Everything that knows the protocol's types: what clients say ([`from_proto`]), what they are told ([`to_proto`],
//! [`progress`]), and what they can take ([`Profile`]).

pub mod from_proto;
pub mod progress;
pub mod to_proto;

pub use tower_lsp::ls_types::{CodeLens, Hover, ProgressToken, Uri};

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
    /// Whether the server may begin to show progress.
    pub progress: bool,
    /// Whether the client looks after files for the server when asked to.
    pub watches: bool,
}

impl Default for Profile {
    /// The least a client can be: UTF-16 and plain text.
    fn default() -> Profile {
        Profile {
            encoding: Encoding::Utf16,
            related_information: false,
            code_links: false,
            data: false,
            unnecessary: false,
            markdown: false,
            progress: false,
            watches: false,
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
