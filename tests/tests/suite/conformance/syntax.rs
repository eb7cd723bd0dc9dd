//! Tests that every text which TVM prints parses, in the dialect of every Python version.

use super::Tally;
use rx_db::FileKind;
use rx_tests::cases::{self, CaseSet};
use rx_tests::check::{Found, check};

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
                let checked = check(text, FileKind::Rx);
                let first = checked.syntax().next().map(Found::to_string);
                let id = cases::text(row, "id").unwrap_or_default();
                tally.count(first.is_none(), || format!("{file} {id} {field}: {}", first.unwrap_or_default()));
            }
        }
    }
    tally.must_be_complete();
}
