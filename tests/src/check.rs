//! Checks a text and returns its diagnostics and types by line.

use rx_base::{Code, Diagnostic, Severity, Span, TvmVersion};
use rx_db::{FileKind, Operators, RowKind, Workspace};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A diagnostic in the form that tests compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The severity.
    pub severity: Severity,
    /// The code.
    pub code: Code,
    /// The message.
    pub message: String,
    /// The lines below the message: `note: …`, `help: …`.
    pub remarks: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { line, column, severity, code, message, .. } = self;
        write!(f, "{line}:{column}: {severity}: [{}] {message}", code.slug())
    }
}

/// The type of a parameter, binding or returned value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFound {
    /// The line, from 1.
    pub line: usize,
    /// The top-level function.
    pub function: String,
    /// The variable; `return` for a returned value, `_` for a bare statement.
    pub name: String,
    /// Whether it is a parameter, a binding or a returned value.
    pub kind: RowKind,
    /// The type, in the `tvm-0.27` dialect.
    pub ty: String,
}

/// The result of checking a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The diagnostics, in order of position.
    pub found: Vec<Found>,
    /// The types, in order of position.
    pub types: Vec<TypeFound>,
}

impl Checked {
    /// Returns the errors.
    pub fn errors(&self) -> impl Iterator<Item = &Found> {
        self.found.iter().filter(|found| found.severity == Severity::Error)
    }

    /// Returns the errors and warnings.
    pub fn complaints(&self) -> impl Iterator<Item = &Found> {
        self.found.iter().filter(|found| found.severity <= Severity::Warning)
    }

    /// Whether there is an error.
    pub fn is_rejected(&self) -> bool {
        self.errors().next().is_some()
    }
}

/// Checks a text as a file of this kind.
pub fn check(text: &str, kind: FileKind) -> Checked {
    check_for(text, kind, None)
}

/// Checks a text as a file of this kind that is meant for a release of TVM.
pub fn check_for(text: &str, kind: FileKind, tvm: Option<TvmVersion>) -> Checked {
    check_with(text, kind, tvm, &Arc::default())
}

/// Checks a settings file; returns also the operators that it declares.
pub fn check_settings(text: &str) -> (Checked, Arc<Operators>) {
    let (settings, mut mistakes) = rx_settings::read(text, Path::new("/"));
    let (operators, wrong) = rx_db::declared_operators(&settings.ops);
    mistakes.extend(wrong);
    (Checked { found: found(text, mistakes), types: Vec::new() }, Arc::new(operators))
}

/// Checks a text whose project declares these operators.
pub fn check_with(text: &str, kind: FileKind, tvm: Option<TvmVersion>, operators: &Arc<Operators>) -> Checked {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, kind);
    workspace.set_tvm(file, tvm);
    workspace.set_operators(file, operators.clone());
    let lines = Lines::of(text);
    let found = found(text, workspace.diagnostics(file));
    let types = workspace.types(file).into_iter().map(|row| TypeFound {
        line: lines.place(row.span).0,
        function: row.function,
        name: row.name,
        kind: row.kind,
        ty: row.struct_info,
    });
    Checked { found, types: types.collect() }
}

fn found(text: &str, diagnostics: Vec<Diagnostic<Span>>) -> Vec<Found> {
    let lines = Lines::of(text);
    let found = diagnostics.into_iter().map(|diagnostic| {
        let (line, column) = lines.place(diagnostic.primary);
        let notes = diagnostic.notes.iter().map(|note| format!("note: {note}"));
        let remarks = notes.chain(diagnostic.help.iter().map(|help| format!("help: {help}"))).collect();
        let (severity, code, message) = (diagnostic.severity, diagnostic.code, diagnostic.message);
        Found { line, column, severity, code, message, remarks }
    });
    found.collect()
}

/// The start offsets of the lines of a text.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Lines<'a> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { text, starts }
    }

    fn place(&self, span: Span) -> (usize, usize) {
        let offset = span.start as usize;
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|at| self.starts.get(at)).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count());
        (line, column + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostics_have_lines_and_columns() {
        let text = "@R.function\ndef f(é: R.Tensor((2,), \"float32\")):\n    return R.add(é, y)\n";
        let checked = check(text, FileKind::Rx);
        let found: Vec<String> = checked.errors().map(Found::to_string).collect();
        assert_eq!(found, ["3:21: error: [undefined-name] `y` is not defined"]);
        assert!(checked.is_rejected());
        assert_eq!(checked.types.first().map(|row| (row.line, row.name.as_str())), Some((2, "é")));
    }
}
