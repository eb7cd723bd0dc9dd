//! Keys that stand twice in one dictionary of the text: Python keeps the last value, and nobody is told.

use rx_base::diagnostic::Severity;
use rx_base::name::NameMap;
use rx_base::{Code, Diagnostic};
use rx_syntax::Cursor;
use rx_syntax::ast::Expr;

/// A key whose value another one of the same dictionary replaces.
pub(crate) struct RepeatedKey<'e> {
    /// The key.
    pub(crate) key: String,
    /// Where its value is lost.
    pub(crate) first: &'e Expr,
    /// Where it stands again.
    pub(crate) again: &'e Expr,
}

/// The keys of a dictionary that stand in it before, in order.
pub(crate) fn repeated_keys<'e>(cursor: Cursor<'_>, entries: &'e [(Option<Expr>, Expr)]) -> Vec<RepeatedKey<'e>> {
    let mut seen: NameMap<&Expr> = NameMap::default();
    let mut repeated = Vec::new();
    for key in entries.iter().filter_map(|(key, _)| key.as_ref()) {
        let Some(text) = cursor.string_value(key) else { continue };
        if let Some(first) = seen.insert(rx_base::name::name(&text), key) {
            repeated.push(RepeatedKey { key: text.into_owned(), first, again: key });
        }
    }
    repeated
}

/// The warning about a key that stands twice, at `again`.
pub(crate) fn repeated_key<P>(key: &str, first: P, again: P) -> Diagnostic<P> {
    let message = format!("the key `{key}` stands twice in one dictionary: its first value is lost");
    let mut found = Diagnostic::new(Code::DuplicateDefinition, again, message)
        .with_label(first, format!("`{key}` stands here first"))
        .with_help("leave out one of them");
    found.severity = Severity::Warning;
    found
}
