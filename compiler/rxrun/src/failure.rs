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
    /// Like [`Failure::Input`], where the user has to give the missing values.
    Missing(String, Option<Span>, Missing),
}

/// Values that are neither given nor drawn from the seed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Symbolic dims, as `--dim` takes them.
    pub dims: Vec<String>,
    /// Parameters and fields of parameters that need an array, as `--input` takes them.
    pub inputs: Vec<String>,
}

impl Missing {
    /// Adds the values that `other` has in addition.
    fn extend(&mut self, other: Missing) {
        let add = |all: &mut Vec<String>, more: Vec<String>| {
            for name in more {
                if !all.contains(&name) {
                    all.push(name);
                }
            }
        };
        add(&mut self.dims, other.dims);
        add(&mut self.inputs, other.inputs);
    }
}

impl Failure {
    /// Creates a [`Failure::Usage`].
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage(message.into())
    }

    /// Combines two failures: all values that are missing, otherwise the first failure.
    pub fn with(self, other: Failure) -> Failure {
        match (self, other) {
            (Failure::Missing(message, span, mut missing), Failure::Missing(more, _, also)) => {
                missing.extend(also);
                Failure::Missing(format!("{message}; {more}"), span, missing)
            }
            (first, _) => first,
        }
    }

    /// Returns the message, and its position in the text if known.
    pub fn reason(&self) -> (String, Option<Span>) {
        match self {
            Failure::Reported(_) => ("the reason is reported above".to_owned(), None),
            Failure::Program(diagnostics) => match diagnostics.first() {
                Some(first) => (first.message.clone(), Some(first.primary)),
                None => ("the program cannot be run".to_owned(), None),
            },
            Failure::Run(message, span) | Failure::Input(message, span) | Failure::Missing(message, span, _) => {
                (message.clone(), *span)
            }
            Failure::Usage(message) | Failure::Module(message, _) => (message.clone(), None),
        }
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Reported(status) => *status,
            Failure::Program(_) | Failure::Run(..) => 1,
            Failure::Usage(_) | Failure::Module(..) | Failure::Input(..) | Failure::Missing(..) => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Missing};

    fn missing(message: &str, dims: &[&str], inputs: &[&str]) -> Failure {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Failure::Missing(message.to_owned(), None, Missing { dims: list(dims), inputs: list(inputs) })
    }

    #[test]
    fn missing_values_of_two_functions_are_one_failure() {
        let both = missing("a", &["n"], &["s"]).with(missing("b", &["n", "m"], &["t.0"]));
        let Failure::Missing(message, None, values) = &both else { panic!("{both:?}") };
        assert_eq!(message, "a; b");
        assert_eq!(
            (&values.dims[..], &values.inputs[..]),
            (&["n", "m"].map(str::to_owned)[..], &["s", "t.0"].map(str::to_owned)[..])
        );
    }

    #[test]
    fn other_failures_keep_the_first() {
        let first = missing("a", &["n"], &[]).with(Failure::usage("b"));
        assert_eq!(first.reason(), ("a".to_owned(), None));
        assert_eq!(Failure::usage("b").with(missing("a", &["n"], &[])).reason(), ("b".to_owned(), None));
    }
}
