//! Diagnostics as values: built once, rendered many ways.
//!
//! A [`Diagnostic`] is generic over its places `P`. Pure checks produce places relative to what they read, so that
//! results stay valid when the text before them moves; programs ask for file positions only when they print.

mod code;

pub use code::{Code, ParseCodeError};

use std::fmt;

/// The most bytes of one text of a diagnostic: types may be long as files, and people read lines.
const LONGEST_TEXT: usize = 4096;

/// The most bytes a fix may put in.
const LONGEST_EDIT: usize = 1 << 16;

/// The text, its end cut off and shown as `…` where it is too long.
fn clipped(text: impl Into<String>) -> String {
    let mut text = text.into();
    if text.len() > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        text.push('…');
    }
    text
}

/// How serious a diagnostic is, most serious first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The module is wrong: it fails, or computes something else than written.
    Error,
    /// The module may fail or is probably not meant.
    Warning,
    /// Worth knowing; nothing to do.
    Info,
    /// A small improvement an editor shows in passing.
    Hint,
}

impl Severity {
    /// The word printed for it: `error`, `warning`, `info`, `hint`.
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

/// A second place that explains the first, with a few words on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label<P> {
    /// Where.
    pub place: P,
    /// What is to be seen there.
    pub text: String,
}

/// A change of the text that mends the mistake.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fix<P> {
    /// The action, as a menu shows it: `use kernel_layout="IOHW"`.
    pub title: String,
    /// Replacements that belong together; an empty place inserts.
    pub edits: Vec<(P, String)>,
    /// Whether the fix is certain enough for "fix all".
    pub safe: bool,
}

/// One mistake: a code, the smallest guilty place, the facts that clash, and a way out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diagnostic<P> {
    /// What kind of mistake.
    pub code: Code,
    /// How serious; usually [`Code::severity`].
    pub severity: Severity,
    /// One line, without a final stop, naming both values where two clash.
    pub message: String,
    /// The smallest guilty place.
    pub primary: P,
    /// Words on the primary place; empty when the message says it all.
    pub primary_label: String,
    /// Other places that explain.
    pub labels: Vec<Label<P>>,
    /// Facts without a place: formulas with numbers put in, rules.
    pub notes: Vec<String>,
    /// What to do, one line each.
    pub help: Vec<String>,
    /// Edits that do it.
    pub fixes: Vec<Fix<P>>,
}

impl<P> Diagnostic<P> {
    /// A diagnostic of `code`'s own severity at `primary`.
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

    /// With words on the primary place.
    pub fn with_primary_label(mut self, text: impl Into<String>) -> Self {
        self.primary_label = clipped(text);
        self
    }

    /// With a second place.
    pub fn with_label(mut self, place: P, text: impl Into<String>) -> Self {
        self.labels.push(Label { place, text: clipped(text) });
        self
    }

    /// With a fact that has no place.
    pub fn with_note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(clipped(text));
        self
    }

    /// With advice.
    pub fn with_help(mut self, text: impl Into<String>) -> Self {
        self.help.push(clipped(text));
        self
    }

    /// With an edit that mends it, unless it puts in more than anyone would look at.
    pub fn with_fix(mut self, fix: Fix<P>) -> Self {
        if fix.edits.iter().all(|(_, text)| text.len() <= LONGEST_EDIT) {
            self.fixes.push(fix);
        }
        self
    }

    /// The same diagnostic with every place translated; labels and edits whose place has no translation are dropped,
    /// and a fix is dropped whole when one of its edits is.
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
