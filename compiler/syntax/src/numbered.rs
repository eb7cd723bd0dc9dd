//! Errors for names that begin with a digit, such as `0_bias`. Importers of PyTorch and ONNX models create such
//! parameter names.

use crate::document::Item;
use rx_base::name::{NameMap, name};
use rx_base::{Code, Diagnostic, Fix, Span};
use std::collections::btree_map::{BTreeMap, Entry};

/// Returns one error for each name of an item that begins with a digit, at its first occurrence, with a fix that
/// renames all occurrences. Positions are a segment's index and a span in it.
pub fn numbered_names(item: &Item) -> Vec<Diagnostic<(usize, Span)>> {
    numbered_names_in(item, 0..item.segments.len())
}

/// Like [`numbered_names`], but visits only some segments, in ascending order: those that contain such names.
pub fn numbered_names_in(item: &Item, segments: impl IntoIterator<Item = usize>) -> Vec<Diagnostic<(usize, Span)>> {
    let mut places: BTreeMap<(usize, u32), Vec<(usize, Span)>> = BTreeMap::new();
    let mut first: NameMap<(usize, u32)> = NameMap::default();
    for at in segments {
        let Some(segment) = item.segments.get(at) else { continue };
        let tokens = &segment.tree().tokens;
        for token in tokens.numbered() {
            let Some(span) = tokens.span(*token) else { continue };
            let Some(text) = segment.text().get(span.range()) else { continue };
            let key = *first.entry(name(text)).or_insert((at, span.start));
            match places.entry(key) {
                Entry::Vacant(slot) => drop(slot.insert(vec![(at, span)])),
                Entry::Occupied(mut slot) => slot.get_mut().push((at, span)),
            }
        }
    }
    let is_free = |new: &String| !item.segments.iter().any(|segment| segment.text().contains(new.as_str()));
    let diagnostic = |places: Vec<(usize, Span)>| {
        let (at, span) = *places.first()?;
        let wrong = item.segments.get(at)?.text().get(span.range())?;
        let message = format!("`{wrong}` is no name: a name begins with a letter or `_`");
        let mut wanted =
            std::iter::once(format!("p_{wrong}")).chain((1..100).map(|number| format!("p{number}_{wrong}")));
        let fix = wanted.find(is_free).map(|new| Fix {
            title: format!("call it `{new}`"),
            edits: places.iter().map(|place| (*place, new.clone())).collect(),
            safe: true,
        });
        let mut diagnostic = Diagnostic::new(Code::SyntaxError, (at, span), message);
        diagnostic.fixes.extend(fix);
        Some(diagnostic)
    };
    places.into_values().filter_map(diagnostic).collect()
}
