//! Every text TVM prints parses, in the spelling of every Python.

use crate::Tally;
use rx_db::FileKind;
use rx_tests::cases;
use rx_tests::check::{Found, check};

#[test]
fn printed_texts_parse() {
    let Some(folder) = cases::folder() else { return };
    let mut tally = Tally::new("printed texts without a syntax error");
    for file in ["modules", "modules_noroundtrip", "tir_modules", "op_inference"] {
        let rows = cases::rows(&folder.join(format!("cases/{file}.jsonl"))).unwrap_or_default();
        assert!(!rows.is_empty(), "{file} has no rows");
        for row in rows.iter().filter(|row| !cases::is_true(row, "negative")) {
            for field in ["text", "text_pep695"] {
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
