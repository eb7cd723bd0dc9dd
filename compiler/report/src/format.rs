//! The forms a run's diagnostics are written in.

use crate::source::Source;
use crate::{concise, full, github, gitlab, json, junit, sarif};
use rx_base::{Code, Diagnostic, Span};
use std::collections::BTreeSet;

/// How diagnostics are written.
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

/// A diagnostic as written in one [`Format`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its code.
    pub code: Code,
    /// Its text; with its line end unless the format [is a document](Format::is_document).
    pub text: String,
}

impl Format {
    /// Whether the output is one document, written whole when all files are done, rather than piece after piece.
    pub const fn is_document(self) -> bool {
        matches!(self, Format::Sarif | Format::Gitlab | Format::Junit)
    }

    /// The diagnostics of one file, in order, a piece each.
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

    /// What is written of a file that was not checked, for formats that say it; `why` in one line.
    pub fn failure(self, why: &str) -> Option<String> {
        (self == Format::Github).then(|| github::failure(why) + "\n")
    }
}

/// What a run found, collected for the formats that are one document.
#[derive(Clone, Debug)]
pub struct Report {
    format: Format,
    files: Vec<(String, Vec<Piece>)>,
    failures: Vec<String>,
}

impl Report {
    /// Nothing found yet.
    pub fn new(format: Format) -> Report {
        Report { format, files: Vec::new(), failures: Vec::new() }
    }

    /// Adds a checked file, as it is shown, with its diagnostics.
    pub fn file(&mut self, name: String, pieces: Vec<Piece>) {
        self.files.push((name, pieces));
    }

    /// Adds what was not checked, and why, in one line.
    pub fn failure(&mut self, why: String) {
        self.failures.push(why);
    }

    /// The files and their pieces.
    pub(crate) fn files(&self) -> &[(String, Vec<Piece>)] {
        &self.files
    }

    /// What was not checked.
    pub(crate) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// The pieces of all files joined by commas, a line each.
    pub(crate) fn joined(&self) -> String {
        let pieces = self.files.iter().flat_map(|(_, pieces)| pieces);
        pieces.map(|piece| piece.text.as_str()).collect::<Vec<_>>().join(",\n")
    }

    /// The codes that were found.
    pub(crate) fn codes(&self) -> BTreeSet<Code> {
        self.files.iter().flat_map(|(_, pieces)| pieces).map(|piece| piece.code).collect()
    }

    /// The document; empty for formats that are none.
    pub fn document(&self) -> String {
        match self.format {
            Format::Sarif => sarif::document(self),
            Format::Gitlab => gitlab::document(self),
            Format::Junit => junit::document(self),
            Format::Text | Format::Concise | Format::Json | Format::Github => String::new(),
        }
    }
}
