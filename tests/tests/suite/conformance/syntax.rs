//! Tests that every text which TVM prints parses, in the dialect of every Python version.

use super::Tally;
use rx_syntax::{Document, FileKind, Item, syntax_diagnostics};
use rx_tests::cases::{self, CaseSet};

/// Returns the message of a syntax error in `text`, if there is one.
fn syntax_error(text: &str) -> Option<String> {
    let document = Document::new(text, FileKind::Rx);
    let of_item = |item: &Item| {
        let of_indentation = item.indentation_diagnostics().next().map(|(_, error)| error.message);
        of_indentation
            .or_else(|| item.segments.iter().flat_map(|it| syntax_diagnostics(it)).next().map(|it| it.message))
    };
    document.items().iter().find_map(of_item)
}

#[test]
fn printed_texts_parse() {
    cases::sets().iter().for_each(texts_parse);
}

fn texts_parse(set: &CaseSet) {
    let mut tally = Tally::new(set.figure("printed texts without a syntax error"));
    for file in ["modules", "modules_noroundtrip", "tir_modules", "op_inference"] {
        let rows = set.rows(file);
        assert!(!rows.is_empty() || set.own, "{file} has no rows");
        for row in rows.iter().filter(|row| !cases::is_true(row, "negative")) {
            for field in ["text", "text_pep695", "text_bare"] {
                let Some(text) = cases::text(row, field) else { continue };
                let error = syntax_error(text);
                let id = cases::text(row, "id").unwrap_or_default();
                tally.count(error.is_none(), || format!("{file} {id} {field}: {}", error.unwrap_or_default()));
            }
        }
    }
    tally.must_be_complete();
}
