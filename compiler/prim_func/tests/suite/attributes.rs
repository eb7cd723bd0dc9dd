//! Tests of the search for written attributes.

use rx_prim_func::attributes::written_attributes;
use rx_syntax::{Segment, Segments};
use std::sync::Arc;

/// Splits the text at the place of its attributes (`WrittenAttributes::place`). Returns the text before
/// the place, the dictionary (empty if there is none), and its entries as `key: value`; `None` if there is no
/// place.
fn found(text: &str) -> Option<(String, String, Vec<String>)> {
    let written = written_attributes(&Segments::from_iter([Arc::new(Segment::new(text.into()))]))?;
    let entries = written.entries.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    let before = text.get(..written.place.start).unwrap_or_default();
    Some((before.to_owned(), text.get(written.place).unwrap_or_default().to_owned(), entries))
}

#[test]
fn attribute_dictionary_is_found() {
    let header = "@T.prim_func(private=True)\ndef f(A: T.Buffer((4,), \"float32\")):\n";
    let text = format!(
        "{header}    # first\n    T.func_attr({{\"op_pattern\": 0, \"b\": [1, -2.5], \"t\": T.target(\"llvm\")}})\n    A[0] = 0.0\n"
    );
    let (before, dictionary, entries) = found(&text).expect("a dictionary");
    assert!(before.ends_with("# first\n    T.func_attr("));
    assert_eq!(dictionary, "{\"op_pattern\": 0, \"b\": [1, -2.5], \"t\": T.target(\"llvm\")}");
    assert_eq!(entries, ["op_pattern: 0", "b: [1, -2.5]", "t: T.target(\"llvm\")"]);
}

#[test]
fn place_without_dictionary_is_after_the_header() {
    let header = "@T.prim_func\ndef f(\n    A: T.Buffer((4,), \"float32\"),\n):  # of four\n";
    let text = format!("{header}    A[0] = 0.0\n");
    assert_eq!(found(&text), Some((header.to_owned(), String::new(), Vec::new())));
}
