//! Diagnostics that several readers of a file report: misspelled names, captured Python names, repeated keys.

use rx_base::diagnostic::Severity;
use rx_base::name::{NameMap, name};
use rx_base::{Code, Diagnostic, Fix, Name};
use rx_syntax::Cursor;
use rx_syntax::ast::Expr;

/// A dictionary key that occurs again, so that its first value is lost.
pub struct RepeatedKey<'e> {
    /// The key.
    pub key: String,
    /// The first occurrence.
    pub first: &'e Expr,
    /// The later occurrence.
    pub again: &'e Expr,
}

/// Returns the keys of a dictionary that occurred before in it, in order.
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

/// Creates the warning about a repeated key, at the position `again`.
pub fn repeated_key<P>(key: &str, first: P, again: P) -> Diagnostic<P> {
    let message = format!("the key `{key}` occurs twice in one dictionary: its first value is lost");
    let mut found = Diagnostic::new(Code::DuplicateDefinition, again, message)
        .with_label(first, format!("`{key}` occurs here first"))
        .with_help("leave out one of them");
    found.severity = Severity::Warning;
    found
}

/// Creates the diagnostic about a captured Python name.
pub fn captured_diagnostic<P>(captured: Name, place: P) -> Diagnostic<P> {
    let message =
        format!("`{captured}` is a Python value that rx does not evaluate; values that depend on it are not checked");
    Diagnostic::new(Code::CapturedPythonName, place, message)
}

/// Like [`suggest`], if there is a similar name; the edit replaces the diagnostic's primary place.
pub fn suggest_in_place<P: Clone>(diagnostic: Diagnostic<P>, near: Option<&str>) -> Diagnostic<P> {
    match near {
        Some(near) => {
            let edits = vec![(diagnostic.primary.clone(), near.to_owned())];
            suggest(diagnostic, near, edits)
        }
        None => diagnostic,
    }
}

/// Adds "did you mean …" to the diagnostic of a misspelled name, with the edits that correct it.
pub fn suggest<P>(diagnostic: Diagnostic<P>, near: &str, edits: Vec<(P, String)>) -> Diagnostic<P> {
    diagnostic.with_help(format!("did you mean `{near}`?")).with_fix(Fix {
        title: format!("change to {near}"),
        edits,
        safe: false,
    })
}
