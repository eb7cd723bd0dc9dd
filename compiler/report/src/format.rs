//! The output formats of diagnostics.

use crate::source::Source;
use crate::{concise, full, github, gitlab, json, junit, sarif};
use rx_base::{Code, Diagnostic, Span};
use std::collections::BTreeSet;

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Reports with source lines, for people.
    Text,
    /// One line each: `path:line:column: error[RX0501] message`.
    Concise,
    /// One JSON object each, in one line (`docs/json.md`).
    Json,
    /// SARIF 2.1.0, for code scanning and viewers.
    Sarif,
    /// GitHub's workflow commands, which become annotations of a pull request.
    Github,
    /// GitLab's code quality report.
    Gitlab,
    /// JUnit's XML, which build servers show as tests.
    Junit,
}

/// A diagnostic rendered in a [`Format`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The code of the diagnostic.
    pub code: Code,
    /// The rendered text. It ends in a line end unless the format [is a document](Format::is_document).
    pub text: String,
}

impl Format {
    /// Whether the output is a single document, written when all files are done, instead of one piece after another.
    pub const fn is_document(self) -> bool {
        matches!(self, Format::Sarif | Format::Gitlab | Format::Junit)
    }

    /// Renders the diagnostics of one file, in order, one piece each.
    pub fn pieces<'d>(
        self,
        source: &Source<'_>,
        diagnostics: impl Iterator<Item = &'d Diagnostic<Span>>,
        color: bool,
    ) -> Vec<Piece> {
        let mut marks = crate::fingerprint::Marks::default();
        let mut text = |diagnostic: &Diagnostic<Span>| match self {
            Format::Text => full(source, diagnostic, color) + "\n",
            Format::Concise => concise(source, diagnostic, color) + "\n",
            Format::Json => json(source, diagnostic) + "\n",
            Format::Github => github::command(source, diagnostic) + "\n",
            Format::Sarif => sarif::result(source, diagnostic, &marks.next(source, diagnostic)),
            Format::Gitlab => gitlab::issue(source, diagnostic, &marks.next(source, diagnostic)),
            Format::Junit => junit::case(source, diagnostic),
        };
        diagnostics.map(|diagnostic| Piece { code: diagnostic.code, text: text(diagnostic) }).collect()
    }

    /// Renders the message about a file that was not checked, in formats that have one; `why` is one line.
    pub fn failure(self, why: &str) -> Option<String> {
        (self == Format::Github).then(|| github::failure(why) + "\n")
    }
}

/// The results of a run, collected for formats that are a single document.
#[derive(Clone, Debug)]
pub struct Report {
    format: Format,
    files: Vec<(String, Vec<Piece>)>,
    failures: Vec<String>,
}

impl Report {
    /// Creates an empty report.
    pub fn new(format: Format) -> Report {
        Report { format, files: Vec::new(), failures: Vec::new() }
    }

    /// Adds a checked file, under its shown name, with its diagnostics.
    pub fn file(&mut self, name: String, pieces: Vec<Piece>) {
        self.files.push((name, pieces));
    }

    /// Adds a one-line message about an input that was not checked.
    pub fn failure(&mut self, why: String) {
        self.failures.push(why);
    }

    /// The files with their diagnostics.
    pub(crate) fn files(&self) -> &[(String, Vec<Piece>)] {
        &self.files
    }

    /// The messages about inputs that were not checked.
    pub(crate) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Joins the pieces of all files by commas, one line each.
    pub(crate) fn joined(&self) -> String {
        let pieces = self.files.iter().flat_map(|(_, pieces)| pieces);
        pieces.map(|piece| piece.text.as_str()).collect::<Vec<_>>().join(",\n")
    }

    /// The codes of all diagnostics.
    pub(crate) fn codes(&self) -> BTreeSet<Code> {
        self.files.iter().flat_map(|(_, pieces)| pieces).map(|piece| piece.code).collect()
    }

    /// Renders the document; empty for formats that are not a single document.
    pub fn document(&self) -> String {
        match self.format {
            Format::Sarif => sarif::document(self),
            Format::Gitlab => gitlab::document(self),
            Format::Junit => junit::document(self),
            Format::Text | Format::Concise | Format::Json | Format::Github => String::new(),
        }
    }
}
