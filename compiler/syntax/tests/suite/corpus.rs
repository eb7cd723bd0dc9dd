//! Tests that every text printed by TVM parses without diagnostics, and that every item has the kind that TVM reports.
//!
//! The texts are those of `tests/conformance`, and data beside the project: `RX_CASES` is their folder, by default
//! `../shared`.

use rx_syntax::{Document, FileKind, syntax_diagnostics};
use std::path::{Path, PathBuf};

fn cases() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("RX_CASES").map_or_else(|| workspace.join("../shared"), PathBuf::from);
    folder.is_dir().then_some(folder)
}

/// Returns the diagnostics of a text, as lines.
fn complaints(name: &str, text: &str, kind: FileKind) -> Vec<String> {
    let document = Document::new(text, kind);
    let mut complaints = Vec::new();
    for (index, item) in document.items().iter().enumerate() {
        if item.kind == rx_syntax::ItemKind::Foreign {
            continue;
        }
        let syntax = item.segments.iter().enumerate();
        let syntax = syntax.flat_map(|(at, segment)| syntax_diagnostics(segment).into_iter().map(move |d| (at, d)));
        for (segment, diagnostic) in syntax.chain(item.indentation_diagnostics()) {
            let place = document.segment_start(index, segment) + diagnostic.primary.start as usize;
            let (line, column) = document.line_column(place, rx_syntax::Encoding::Utf32);
            complaints.push(format!("{name}:{}:{}: {}", line + 1, column + 1, diagnostic.message));
        }
    }
    assert_eq!(document.text(), text, "{name}: the items are the whole text");
    complaints
}

fn check(complaints: &[String]) {
    let shown = complaints.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(complaints.is_empty(), "{} complaints, the first:\n{shown}", complaints.len());
}

fn texts_under(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            texts_under(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rx" || extension == "py") {
            into.push(path);
        }
    }
}

#[test]
fn models_parse() {
    let Some(cases) = cases() else { return println!("skipped: no RX_CASES") };
    let mut paths = Vec::new();
    texts_under(&cases.join("models"), &mut paths);
    let mut found = Vec::new();
    for path in &paths {
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        for kind in [FileKind::Rx, FileKind::Python] {
            found.extend(complaints(&path.to_string_lossy(), &text, kind));
        }
    }
    println!("{} models", paths.len());
    check(&found);
}

#[test]
fn printed_cases_parse() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance");
    let folders = [Some(own), cases().map(|given| given.join("cases"))];
    let mut found = Vec::new();
    let mut texts = 0;
    let files = ["modules", "modules_noroundtrip", "tir_modules", "op_inference"];
    for (folder, file) in folders.iter().flatten().flat_map(|folder| files.map(|file| (folder, file))) {
        let rows = std::fs::read_to_string(folder.join(format!("{file}.jsonl"))).unwrap_or_default();
        for (line, row) in rows.lines().enumerate() {
            let row: serde_json::Value = serde_json::from_str(row).expect("INVARIANT: the cases are JSON lines");
            for field in ["text", "text_pep695", "text_min", "text_meta", "text_bare"] {
                let Some(text) = row[field].as_str() else { continue };
                texts += 1;
                found.extend(complaints(&format!("{file}:{}:{field}", line + 1), text, FileKind::Rx));
            }
        }
    }
    println!("{texts} texts");
    check(&found);
}
