//! Checks attributes that a function or a block sets more than once (TVM `src/tirx/script/builder/ir.cc`: `FuncAttrs`,
//! `BlockAttrs`). A function sets each attribute once. The attributes of a block are merged: nested dictionaries key
//! by key, other values must be equal.

use super::Walk;
use super::forms::Level;
use crate::attributes::literal;
use rx_base::{Code, Diagnostic};
use rx_context::ItemPlace;
use rx_context::mistakes::{repeated_key, repeated_keys};
use rx_ir::Attr;
use rx_syntax::Cursor;
use rx_syntax::ast::Expr;

/// An attribute that the function or an open block has set.
pub(super) struct Attribute {
    /// The level of its statement.
    pub(super) level: Level,
    /// Whether a block sets it rather than the function.
    of_block: bool,
    key: String,
    value: Attr,
    place: ItemPlace,
}

impl Walk<'_> {
    /// Checks and records the entries of a `T.func_attr` or `T.sblock_attr` at this level.
    pub(super) fn state_attributes(
        &mut self,
        cursor: Cursor<'_>,
        of_block: bool,
        entries: &[(Option<Expr>, Expr)],
        level: Level,
    ) {
        let place = |walk: &Self, expr: &Expr| ItemPlace::Segment(walk.segment, cursor.span(expr.tokens));
        let repeated = repeated_keys(cursor, entries);
        for repeated in &repeated {
            let (first, again) = (place(self, repeated.first), place(self, repeated.again));
            self.found.push(repeated_key(&repeated.key, first, again));
        }
        for (key, written) in entries.iter().filter_map(|(key, value)| Some((key.as_ref()?, value))) {
            let Some(text) = cursor.string_value(key) else { continue };
            if repeated.iter().any(|repeated| std::ptr::eq(repeated.first, key)) {
                continue;
            }
            let value = literal(cursor, written);
            let is_same = |it: &&Attribute| it.of_block == of_block && it.level == level && it.key == text;
            let mut before = self.attributes.iter().filter(is_same);
            let clash = match of_block {
                false => before.next().map(|first| {
                    let message = format!("the attribute `{text}` has a value already");
                    (place(self, key), message, first)
                }),
                true => before.find_map(|first| {
                    let (path, old, new) = difference(&text, &first.value, &value)?;
                    let message = format!("the attribute `{path}` of the block is {new} here, and {old} before");
                    Some((place(self, written), message, first))
                }),
            };
            if let Some((primary, message, first)) = clash {
                let found = Diagnostic::new(Code::DuplicateDefinition, primary, message)
                    .with_label(first.place.clone(), format!("`{text}` has its first value here"))
                    .with_help("state it once");
                self.found.push(found);
            }
            let place = place(self, written);
            self.attributes.push(Attribute { level, of_block, key: text.into_owned(), value, place });
        }
    }
}

/// Returns the first clash between two values that are merged: the path of keys, the old and the new value.
fn difference<'a>(path: &str, old: &'a Attr, new: &'a Attr) -> Option<(String, &'a Attr, &'a Attr)> {
    let (Attr::Dict(old_entries), Attr::Dict(new_entries)) = (old, new) else {
        return (old != new).then(|| (path.to_owned(), old, new));
    };
    new_entries.iter().find_map(|(key, new)| {
        let (_, old) = old_entries.iter().rfind(|(other, _)| other == key)?;
        difference(&format!("{path}.{key}"), old, new)
    })
}
