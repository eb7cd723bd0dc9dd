//! Names that begin with a digit, as importers of PyTorch and ONNX models call parameters: `0_bias`.

use crate::document::Item;
use rx_base::name::{NameMap, name};
use rx_base::{Code, Diagnostic, Fix, Span};
use std::collections::btree_map::{BTreeMap, Entry};

/// One error for each name of an item that begins with a digit, where it is written first, with the fix that renames it wherever the
/// item has it. Places are a segment and bytes of it.
pub fn numbered_names(item: &Item) -> Vec<Diagnostic<(usize, Span)>> {
    let mut places: BTreeMap<(usize, u32), Vec<(usize, Span)>> = BTreeMap::new();
    let mut first: NameMap<(usize, u32)> = NameMap::default();
    for (at, segment) in item.segments.iter().enumerate() {
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
