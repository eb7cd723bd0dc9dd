//! `docs/findings.md`: rows where rx disagrees with TVM on purpose.

use std::collections::BTreeSet;
use std::path::Path;

/// The ids the document argues: the words in backquotes that begin its list items.
pub fn argued() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/findings.md");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let items = text.lines().filter_map(|line| line.strip_prefix("- "));
    let ids = items.flat_map(|item| item.split(':').next().unwrap_or("").split('`').skip(1).step_by(2));
    ids.map(str::to_owned).collect()
}

#[test]
fn every_finding_has_a_reason() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/findings.md");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    for line in text.lines().filter(|line| line.starts_with("- ")) {
        let reason = line.split_once("`: ").map_or("", |(_, reason)| reason);
        assert!(reason.len() > 20, "a finding without a reason: {line}");
    }
}
