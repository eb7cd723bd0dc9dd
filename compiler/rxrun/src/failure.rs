//! The reasons why a run ends with an error, and their exit statuses.

use rx_base::{Diagnostic, Span};

/// The reason why a run ended with an error. It determines the exit status.
#[derive(Debug)]
pub enum Failure {
    /// An error that has already been reported; the field is the exit status.
    Reported(u8),
    /// Errors in the program, with positions in its text.
    Program(Vec<Diagnostic<Span>>),
    /// A failure while the program ran, with its position in the text if known.
    Run(String, Option<Span>),
    /// Wrong usage, inputs that do not fit, or a file that cannot be read or written: a one-line message.
    Usage(String),
    /// Like [`Failure::Usage`], where a module must be chosen; the names of the candidates follow the message.
    Module(String, Vec<String>),
    /// Like [`Failure::Usage`], with the position of a declaration in the text.
    Input(String, Option<Span>),
}

impl Failure {
    /// Creates a [`Failure::Usage`].
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage(message.into())
    }

    /// Returns the message, and its position in the text if known.
    pub fn reason(&self) -> (String, Option<Span>) {
        match self {
            Failure::Reported(_) => ("the reason stands above".to_owned(), None),
            Failure::Program(diagnostics) => match diagnostics.first() {
                Some(first) => (first.message.clone(), Some(first.primary)),
                None => ("the program cannot be run".to_owned(), None),
            },
            Failure::Run(message, span) | Failure::Input(message, span) => (message.clone(), *span),
            Failure::Usage(message) | Failure::Module(message, _) => (message.clone(), None),
        }
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Reported(status) => *status,
            Failure::Program(_) | Failure::Run(..) => 1,
            Failure::Usage(_) | Failure::Module(..) | Failure::Input(..) => 2,
        }
    }
}
