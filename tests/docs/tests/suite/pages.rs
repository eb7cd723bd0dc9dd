//! Tests that the committed pages are up to date, and that their examples are right.

use rx_base::{Code, Severity};
use rx_docs::codes::{ELSEWHERE, SECTIONS, file_stem, is_elsewhere, read, sections};
use rx_tests::check::Found;
use rx_tests::mdtest::{self, Language};

#[test]
fn pages_are_fresh() {
    let stale: Vec<String> = rx_docs::pages()
        .expect("docs/codes is readable")
        .into_iter()
        .filter(|(name, text)| std::fs::read_to_string(rx_docs::folder().join(name)).unwrap_or_default() != *text)
        .map(|(name, _)| name)
        .collect();
    assert!(stale.is_empty(), "run `cargo run -p rx-docs`; stale in docs: {}", stale.join(", "));
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let pages = read(&rx_docs::folder().join("codes")).expect("docs/codes is readable");
    let codes: Vec<String> = Code::ALL.iter().map(|code| file_stem(*code)).collect();
    let without: Vec<&String> = codes.iter().filter(|stem| !pages.contains_key(*stem)).collect();
    let unknown: Vec<&String> = pages.keys().filter(|stem| !codes.contains(stem)).collect();
    assert!(
        without.is_empty() && unknown.is_empty(),
        "codes without a page: {without:?}; pages of no code: {unknown:?}"
    );
}

/// Every page must have the sections of its kind, in order.
#[test]
fn pages_have_the_fixed_structure() {
    let pages = read(&rx_docs::folder().join("codes")).expect("docs/codes is readable");
    for (name, text) in &pages {
        let wanted: &[&str] = if is_elsewhere(text) { &ELSEWHERE } else { &SECTIONS };
        assert_eq!(sections(text), wanted, "sections of docs/codes/{name}.md");
    }
}

/// Wrong examples must be reported with only the page's code, at the places of their comments; right examples must have
/// no diagnostics.
#[test]
fn examples_are_true() {
    let mut failures = Vec::new();
    for (name, text) in read(&rx_docs::folder().join("codes")).expect("docs/codes is readable") {
        let Some(code) = Code::ALL.iter().find(|code| file_stem(**code) == name) else { continue };
        let page = format!("docs/codes/{name}.md");
        failures.extend(mdtest::run(&page, &text));
        let blocks = mdtest::checked(&text);
        let under = |section: &str| {
            let heading = format!(": {section}");
            let files = blocks.iter().filter(|(block, _)| block.language != Language::Settings);
            files.filter(move |(block, _)| block.heading.ends_with(&heading)).map(|(_, checked)| &checked.found)
        };
        if is_elsewhere(&text) {
            continue;
        }
        if under("Wrong").count() == 0 || under("Right").count() == 0 {
            failures.push(format!("{page} needs a wrong and a right example"));
        }
        for found in under("Wrong") {
            if found.is_empty() || found.iter().any(|found| found.code != *code) {
                failures.push(format!("{page}: the wrong example reports\n    {}", shown(found)));
            }
        }
        for found in under("Right") {
            if found.iter().any(|found| found.severity != Severity::Hint) {
                failures.push(format!("{page}: the right example reports\n    {}", shown(found)));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn shown(found: &[Found]) -> String {
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    lines.join("\n    ")
}
