//! Why nothing more is done.

use rx_base::{Diagnostic, Span};

/// Why a run ended, and with what status.
#[derive(Debug)]
pub enum Failure {
    /// Said already; the status follows.
    Reported(u8),
    /// Mistakes of the program, at places of its text.
    Program(Vec<Diagnostic<Span>>),
    /// What the program did when it ran, at a place of its text where that is known.
    Run(String, Option<Span>),
    /// Wrong usage, inputs that do not fit, files: one line.
    Usage(String),
    /// As [`Failure::Usage`], where a module must be chosen: with the names of those that can be.
    Module(String, Vec<String>),
    /// As [`Failure::Usage`], about a declaration in the text.
    Input(String, Option<Span>),
}

impl Failure {
    /// Wrong usage.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage(message.into())
    }

    /// What is wrong, in words, and where in the text.
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
