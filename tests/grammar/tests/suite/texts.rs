//! Tests that every text which rx parses without a diagnostic is parsed by the grammar without an error node: the
//! project's texts, and those of `RX_CASES` and `RX_MODELS`.

use rx_grammar_tests::{first_error, parse, workspace};
use rx_syntax::{Document, FileKind, ItemKind, numbered_names, syntax_diagnostics};
use rx_tests::{cases, mdtest};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Whether rx finds no mistake of syntax or indentation in the text, and no names that begin with a digit.
fn rx_reads(text: &str, kind: FileKind) -> bool {
    let document = Document::new(text, kind);
    document.items().iter().filter(|item| item.kind != ItemKind::Foreign).all(|item| {
        item.indentation_diagnostics().next().is_none()
            && numbered_names(item).is_empty()
            && item.segments.iter().all(|segment| syntax_diagnostics(segment).is_empty())
    })
}

#[derive(Default)]
struct Tally {
    texts: usize,
    bytes: usize,
    broken: usize,
    failures: Vec<String>,
}

impl Tally {
    /// Parses a text; one that rx reports mistakes in is not counted.
    fn read(&mut self, name: &str, text: &str, kind: FileKind) {
        if !rx_reads(text, kind) {
            self.broken += 1;
            return;
        }
        self.texts += 1;
        self.bytes += text.len();
        match parse(text) {
            Err(error) => self.failures.push(format!("{name}: {error}")),
            Ok(tree) => {
                if let Some((line, title)) = first_error(&tree) {
                    self.failures.push(format!("{name}:{line}: {}", title.chars().take(300).collect::<String>()));
                }
            }
        }
    }

    fn read_files(&mut self, folder: &Path) {
        for (extension, kind) in [("rx", FileKind::Rx), ("py", FileKind::Python)] {
            for path in cases::files(folder, extension) {
                if let Ok(text) = std::fs::read_to_string(&path) {
                    self.read(&path.display().to_string(), &text, kind);
                }
            }
        }
    }

    fn finish(self, title: &str) {
        println!("{title}: {} texts, {} bytes; {} broken for rx, too", self.texts, self.bytes, self.broken);
        let shown = self.failures.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
        assert!(self.failures.is_empty(), "{} of {}:\n{shown}", self.failures.len(), self.texts);
    }
}

#[test]
fn examples_and_test_documents() {
    let root = workspace();
    let mut tally = Tally::default();
    tally.read_files(&root.join("examples"));
    tally.read_files(&root.join("tests/fuzz/seeds"));
    for path in cases::files(&root.join("tests/mdtest"), "md") {
        let document = std::fs::read_to_string(&path).expect("INVARIANT: the file was just listed");
        for block in mdtest::blocks(&document) {
            let mdtest::Language::File(kind) = block.language else { continue };
            tally.read(&format!("{}:{}", path.display(), block.line), &block.code, kind);
        }
    }
    assert!(tally.texts > 100, "the project has texts");
    tally.finish("project");
}

#[test]
fn conformance_cases() {
    let Some(folder) = cases::folder() else { return };
    let mut tally = Tally::default();
    let files = ["modules", "modules_noroundtrip", "tir_modules", "op_inference", "mutants"];
    for file in files {
        let Ok(rows) = cases::rows(&folder.join(format!("cases/{file}.jsonl"))) else { continue };
        for (line, row) in rows.iter().enumerate() {
            for field in ["text", "text_pep695", "text_min", "text_meta", "text_bare"] {
                if let Some(text) = cases::text(row, field) {
                    tally.read(&format!("{file}:{}:{field}", line + 1), text, FileKind::Rx);
                }
            }
        }
    }
    tally.finish("cases");
}

#[test]
fn models() {
    let named = [std::env::var_os("RX_MODELS").map(PathBuf::from), cases::folder().map(|folder| folder.join("models"))];
    // Both variables may name the same folder.
    let folders: BTreeSet<PathBuf> =
        named.into_iter().flatten().filter_map(|folder| folder.canonicalize().ok()).collect();
    let mut tally = Tally::default();
    for folder in folders {
        tally.read_files(&folder);
    }
    if tally.texts == 0 {
        return println!("skipped: no models; RX_MODELS names a folder of some");
    }
    tally.finish("models");
}
