//! Readers of `docs/findings.md` and `tests/conformance/findings.md`: rows on which rx disagrees with TVM on purpose,
//! and known faults.

use rx_tests::cases::{self, CaseSet};
use std::collections::BTreeSet;
use std::path::Path;

fn text() -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let documents =
        ["../docs/findings.md", "conformance/findings.md"].map(|name| std::fs::read_to_string(tests.join(name)));
    documents.into_iter().map(Result::unwrap_or_default).collect()
}

/// Returns the ids that these documents discuss: the words in backquotes at the start of their list items.
pub fn argued() -> BTreeSet<String> {
    ids_of(&text()).map(str::to_owned).collect()
}

fn ids_of(text: &str) -> impl Iterator<Item = &str> {
    let items = text.lines().filter_map(|line| line.strip_prefix("- "));
    items.flat_map(|item| item.split(':').next().unwrap_or("").split('`').skip(1).step_by(2))
}

#[test]
fn own_finding_without_its_row_is_an_error() {
    let set = CaseSet::own();
    let rows = [set.rows("op_inference"), set.rows("modules")].concat();
    let ids: BTreeSet<&str> = rows.iter().filter_map(|row| cases::text(row, "id")).collect();
    let text = std::fs::read_to_string(set.folder.join("findings.md")).unwrap_or_default();
    let gone: Vec<String> = ids_of(&text)
        .filter(|id| !ids.contains(id) && !set.folder.join("defects").join(id).is_file())
        .map(str::to_owned)
        .collect();
    assert!(gone.is_empty(), "no rows: {gone:?}");
}

#[test]
fn every_finding_has_a_reason() {
    for line in text().lines().filter(|line| line.starts_with("- ")) {
        let reason = line.split_once("`: ").map_or("", |(_, reason)| reason);
        assert!(reason.len() > 20, "a finding without a reason: {line}");
    }
}
