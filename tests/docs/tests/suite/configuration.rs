//! Tests that the manual of `rx.toml` describes every key, and that its examples are valid.

use rx_settings::keys::{KEYS, Key, Kind};
use std::path::Path;

/// Returns the blocks of a Markdown text that are fenced as `toml`.
fn examples(markdown: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            if language == "toml" {
                blocks.push(block.join("\n") + "\n");
            }
        }
    }
    blocks
}

fn manual() -> String {
    std::fs::read_to_string(rx_docs::folder().join("configuration.md")).unwrap_or_default()
}

/// Returns the keys with the names of their tables: `tvm.version`.
fn paths(keys: &[Key], table: &str) -> Vec<String> {
    let path = |key: &Key| {
        let path = format!("{table}{}", key.name);
        let inner = match key.kind {
            Kind::Table(keys) | Kind::Tables(keys) => paths(keys, &format!("{path}.")),
            _ => Vec::new(),
        };
        [vec![path], inner].concat()
    };
    keys.iter().flat_map(path).collect()
}

#[test]
fn examples_are_read() {
    let pages = rx_docs::codes::read(&rx_docs::folder().join("codes")).expect("docs/codes is readable");
    let right = pages.iter().filter(|(_, text)| !rx_docs::codes::is_elsewhere(text));
    let texts = right.map(|(name, text)| (name.clone(), text.clone())).chain([("configuration.md".into(), manual())]);
    let mut count = 0;
    for (name, text) in texts {
        for example in examples(&text) {
            let (_, mistakes) = rx_settings::read(&example, Path::new("/"));
            assert_eq!(mistakes, [], "{name}:\n{example}");
            count += 1;
        }
    }
    assert!(count > 50, "{count} examples");
}

#[test]
fn every_key_is_in_the_manual() {
    let manual = manual();
    for path in paths(KEYS, "") {
        let named = manual.lines().any(|line| line.starts_with('#') && line.contains(&format!("`{path}`")));
        assert!(named, "docs/configuration.md has no section on `{path}`");
    }
}
