//! Diagnostics that several readers of a file make: misspelled names, names of the surrounding Python, repeated keys.

use rx_base::diagnostic::Severity;
use rx_base::name::{NameMap, name};
use rx_base::{Code, Diagnostic, Fix, Name};
use rx_syntax::Cursor;
use rx_syntax::ast::Expr;

/// A key whose value another one of the same dictionary replaces.
pub struct RepeatedKey<'e> {
    /// The key.
    pub key: String,
    /// Where its value is lost.
    pub first: &'e Expr,
    /// Where it stands again.
    pub again: &'e Expr,
}

/// The keys of a dictionary that stand in it before, in order.
pub fn repeated_keys<'e>(cursor: Cursor<'_>, entries: &'e [(Option<Expr>, Expr)]) -> Vec<RepeatedKey<'e>> {
    let mut seen: NameMap<&Expr> = NameMap::default();
    let mut repeated = Vec::new();
    for key in entries.iter().filter_map(|(key, _)| key.as_ref()) {
        let Some(text) = cursor.string_value(key) else { continue };
        if let Some(first) = seen.insert(name(&text), key) {
            repeated.push(RepeatedKey { key: text.into_owned(), first, again: key });
        }
    }
    repeated
}

/// The warning about a key that stands twice, at `again`.
pub fn repeated_key<P>(key: &str, first: P, again: P) -> Diagnostic<P> {
    let message = format!("the key `{key}` stands twice in one dictionary: its first value is lost");
    let mut found = Diagnostic::new(Code::DuplicateDefinition, again, message)
        .with_label(first, format!("`{key}` stands here first"))
        .with_help("leave out one of them");
    found.severity = Severity::Warning;
    found
}

/// What is said of a captured Python name.
pub fn captured_diagnostic<P>(captured: Name, place: P) -> Diagnostic<P> {
    let message =
        format!("`{captured}` is a Python value that rx does not evaluate; what depends on it is not checked");
    Diagnostic::new(Code::CapturedPythonName, place, message)
}

/// As [`suggest`] where a name is near, with the edit that writes it in the diagnostic's place.
pub fn suggest_in_place<P: Clone>(diagnostic: Diagnostic<P>, near: Option<&str>) -> Diagnostic<P> {
    match near {
        Some(near) => {
            let edits = vec![(diagnostic.primary.clone(), near.to_owned())];
            suggest(diagnostic, near, edits)
        }
        None => diagnostic,
    }
}

/// Adds a "did you mean" to a diagnostic of a misspelled name, with the edits that spell it right.
pub fn suggest<P>(diagnostic: Diagnostic<P>, near: &str, edits: Vec<(P, String)>) -> Diagnostic<P> {
    diagnostic.with_help(format!("did you mean `{near}`?")).with_fix(Fix {
        title: format!("change to {near}"),
        edits,
        safe: false,
    })
}
