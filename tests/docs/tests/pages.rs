//! The committed pages are what the data says, and their examples are true.

use rx_base::Code;
use rx_docs::codes::{anchor, snippets};

#[test]
fn pages_are_fresh() {
    for (name, text) in rx_docs::pages().expect("docs/codes is readable") {
        let committed = std::fs::read_to_string(rx_docs::folder().join(name)).unwrap_or_default();
        assert!(committed == text, "docs/{name} is stale: run `cargo run -p rx-docs`");
    }
}

/// The first block of a snippet shows its code and no other; every block says all that is reported of it.
#[test]
fn examples_are_true() {
    let mut failures = Vec::new();
    for (name, text) in snippets(&rx_docs::folder().join("codes")).expect("docs/codes is readable") {
        let Some(code) = Code::ALL.iter().find(|code| anchor(**code) == name) else {
            failures.push(format!("docs/codes/{name}.md names no code"));
            continue;
        };
        failures.extend(rx_tests::mdtest::run(&format!("docs/codes/{name}.md"), &text));
        let blocks = rx_tests::mdtest::blocks(&text);
        let Some(example) = blocks.first() else {
            failures.push(format!("docs/codes/{name}.md has no example"));
            continue;
        };
        let checked = rx_tests::check::check(&example.code, example.kind);
        if checked.found.is_empty() || checked.found.iter().any(|found| found.code != *code) {
            let found: Vec<String> = checked.found.iter().map(ToString::to_string).collect();
            failures.push(format!("docs/codes/{name}.md: the first example reports\n    {}", found.join("\n    ")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
