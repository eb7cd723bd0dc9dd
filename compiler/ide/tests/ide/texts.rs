//! Texts for tests of many requests: the examples, the mdtest programs, and the checker's own test texts.

use rx_db::FileKind;
use std::path::{Path, PathBuf};

/// Returns the texts, each with its origin and its kind.
pub fn texts() -> Vec<(String, FileKind, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = Vec::new();
    for folder in ["examples", "compiler/db/tests/texts"] {
        for path in files(&root.join(folder), "rx") {
            let text = std::fs::read_to_string(&path).expect("a text");
            texts.push((path.display().to_string(), FileKind::Rx, text));
        }
    }
    for path in files(&root.join("tests/mdtest"), "md") {
        let page = std::fs::read_to_string(&path).expect("a page");
        for (at, (language, block)) in blocks(&page).into_iter().enumerate() {
            let kind = match language {
                "python" | "py" => FileKind::Python,
                "rx" => FileKind::Rx,
                _ => continue,
            };
            texts.push((format!("{}, block {at}", path.display()), kind, block));
        }
    }
    assert!(texts.len() > 50, "the texts are there");
    texts
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}

/// Returns the fenced blocks of a page, each with its language.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in page.split_inclusive('\n') {
        match (&mut open, line.trim_end().strip_prefix("```")) {
            (None, Some(info)) => open = Some((info.split([' ', ',']).next().unwrap_or_default(), String::new())),
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some((_, text)), _) => text.push_str(line),
            (None, None) => {}
        }
    }
    blocks
}
