//! Diagnostics as values, which are built once and rendered in many ways.
//!
//! A [`Diagnostic`] is generic over the type `P` of its places. Pure checks return places relative to the text that
//! they examine, so that results stay valid when earlier text changes. Places are converted to file positions only for
//! printing.

mod code;

pub use code::{Code, ParseCodeError};

use std::fmt;

/// The maximal length in bytes of a text in a diagnostic. The printed form of a type may be as long as a file.
const LONGEST_TEXT: usize = 4096;

/// The maximal length in bytes of one replacement in a fix.
const LONGEST_EDIT: usize = 1 << 16;

/// Truncates a text to [`LONGEST_TEXT`] and marks the cut with `…`.
fn clipped(text: impl Into<String>) -> String {
    let mut text = text.into();
    if text.len() > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        text.push('…');
    }
    text
}

/// The severity of a diagnostic, most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The module is invalid: it fails, or computes another result than intended.
    Error,
    /// The module may fail, or is probably not intended.
    Warning,
    /// Information that requires no action.
    Info,
    /// A suggestion for a small improvement, which an editor shows unobtrusively.
    Hint,
}

impl Severity {
    /// The printed word: `error`, `warning`, `info`, `hint`.
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
            Severity::Hint => "hint",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A secondary place that explains a diagnostic, with a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label<P> {
    /// The place.
    pub place: P,
    /// The explanation of the place.
    pub text: String,
}

/// A change of the text that fixes a mistake.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fix<P> {
    /// The action as shown in a menu: `use kernel_layout="IOHW"`.
    pub title: String,
    /// The replacements, which are applied together. An empty place inserts.
    pub edits: Vec<(P, String)>,
    /// Whether the fix is certain enough for "fix all".
    pub safe: bool,
}

/// One diagnostic: a code, the smallest place at fault, the facts that conflict, and advice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diagnostic<P> {
    /// The code.
    pub code: Code,
    /// The severity; usually [`Code::severity`].
    pub severity: Severity,
    /// The message: one line, without a final period. If two values conflict, it names both.
    pub message: String,
    /// The smallest place at fault.
    pub primary: P,
    /// A text at the primary place; empty if the message is sufficient.
    pub primary_label: String,
    /// Secondary places.
    pub labels: Vec<Label<P>>,
    /// Facts without a place, such as rules, or formulas with their numbers.
    pub notes: Vec<String>,
    /// Advice, one line each.
    pub help: Vec<String>,
    /// Fixes that follow the advice.
    pub fixes: Vec<Fix<P>>,
}

impl<P> Diagnostic<P> {
    /// Creates a diagnostic with the default severity of `code` at `primary`.
    pub fn new(code: Code, primary: P, message: impl Into<String>) -> Diagnostic<P> {
        Diagnostic {
            code,
            severity: code.severity(),
            message: clipped(message),
            primary,
            primary_label: String::new(),
            labels: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
            fixes: Vec::new(),
        }
    }

    /// Adds a text at the primary place.
    pub fn with_primary_label(mut self, text: impl Into<String>) -> Self {
        self.primary_label = clipped(text);
        self
    }

    /// Adds a secondary place.
    pub fn with_label(mut self, place: P, text: impl Into<String>) -> Self {
        self.labels.push(Label { place, text: clipped(text) });
        self
    }

    /// Adds a fact without a place.
    pub fn with_note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(clipped(text));
        self
    }

    /// Adds advice.
    pub fn with_help(mut self, text: impl Into<String>) -> Self {
        self.help.push(clipped(text));
        self
    }

    /// Adds a fix, unless one of its replacements is longer than 64 KiB.
    pub fn with_fix(mut self, fix: Fix<P>) -> Self {
        if fix.edits.iter().all(|(_, text)| text.len() <= LONGEST_EDIT) {
            self.fixes.push(fix);
        }
        self
    }

    /// Translates every place. A label whose place has no translation is dropped, and so is a fix if one of its edits
    /// has none.
    pub fn map_places<Q>(&self, primary: Q, mut translate: impl FnMut(&P) -> Option<Q>) -> Diagnostic<Q> {
        let labels = self
            .labels
            .iter()
            .filter_map(|label| Some(Label { place: translate(&label.place)?, text: label.text.clone() }));
        let labels = labels.collect();
        let fixes = self.fixes.iter().filter_map(|fix| {
            let edits: Option<Vec<_>> =
                fix.edits.iter().map(|(place, text)| Some((translate(place)?, text.clone()))).collect();
            Some(Fix { title: fix.title.clone(), edits: edits?, safe: fix.safe })
        });
        let fixes = fixes.collect();
        Diagnostic {
            code: self.code,
            severity: self.severity,
            message: self.message.clone(),
            primary,
            primary_label: self.primary_label.clone(),
            labels,
            notes: self.notes.clone(),
            help: self.help.clone(),
            fixes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, Diagnostic, Fix, LONGEST_EDIT, LONGEST_TEXT};

    #[test]
    fn texts_are_of_bounded_length() {
        let long = "é".repeat(LONGEST_EDIT);
        let fix = Fix { title: "write it".into(), edits: vec![((), long.clone())], safe: false };
        let diagnostic = Diagnostic::new(Code::SyntaxError, (), long.clone()).with_label((), long).with_fix(fix);
        assert_eq!(diagnostic.message.len(), LONGEST_TEXT + '…'.len_utf8());
        assert!(diagnostic.message.ends_with("é…"));
        assert_eq!(diagnostic.labels[0].text, diagnostic.message);
        assert!(diagnostic.fixes.is_empty());
    }
}
