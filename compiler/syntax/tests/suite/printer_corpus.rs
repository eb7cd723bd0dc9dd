//! Tests of the printer's properties with the conformance texts: those of `tests/conformance` and those of `RX_CASES`
//! (by default `../shared` beside the workspace).
//!
//! - The printed text has the same trees, in every dialect.
//! - Printing is idempotent.
//! - Comments are preserved.
//! - Output of TVM 0.27 is already formatted.

use std::path::{Path, PathBuf};

use rx_syntax::dialect::Dialect;
use rx_syntax::format::format;
use rx_syntax::printer::{print, print_as, tree_eq, tree_eq_as};
use rx_syntax::{Document, FileKind};

/// The folders with the cases: the project's own, and that of `RX_CASES` if it exists.
fn cases() -> Vec<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = std::env::var_os("RX_CASES").map_or_else(|| workspace.join("../shared"), PathBuf::from);
    let given = root.join("cases");
    if !given.is_dir() {
        println!("skipped: no conformance cases at {}", root.display());
    }
    [workspace.join("tests/conformance"), given].into_iter().filter(|folder| folder.is_dir()).collect()
}

/// Whether TVM 0.27 printed a row. Rows of other releases have a `tvm` field that names the release.
fn is_current(row: &serde_json::Value) -> bool {
    row["tvm"].as_str().is_none_or(|tvm| tvm.starts_with("0.27"))
}

/// Returns the texts in `field` of the wanted rows of a JSON-lines file, each with a name.
fn rows(cases: &Path, file: &str, field: &str, wanted: fn(&serde_json::Value) -> bool) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(cases.join(file)).unwrap_or_default();
    let rows = text.lines().enumerate().filter_map(|(at, line)| {
        let row: serde_json::Value = serde_json::from_str(line).ok().filter(wanted)?;
        Some((format!("{file}:{} {field}", at + 1), row.get(field)?.as_str()?.to_owned()))
    });
    rows.collect()
}

/// Collects all `.rx` and `.py` texts in a folder.
fn files(folder: &Path, out: &mut Vec<(String, String, FileKind)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let kind = match path.extension().and_then(|ext| ext.to_str()) {
            Some("rx") => FileKind::Rx,
            Some("py") => FileKind::Python,
            _ if path.is_dir() => {
                files(&path, out);
                continue;
            }
            _ => continue,
        };
        if let Ok(text) = std::fs::read_to_string(&path) {
            out.push((path.display().to_string(), text, kind));
        }
    }
}

fn texts(cases: &Path) -> Vec<(String, String, FileKind)> {
    let mut all = Vec::new();
    for (file, field) in [
        ("modules.jsonl", "text"),
        ("modules.jsonl", "text_pep695"),
        ("modules.jsonl", "text_min"),
        ("modules.jsonl", "text_meta"),
        ("modules_noroundtrip.jsonl", "text"),
        ("tir_modules.jsonl", "text"),
    ] {
        all.extend(rows(cases, file, field, |_| true).into_iter().map(|(name, text)| (name, text, FileKind::Rx)));
    }
    files(&cases.join("../models"), &mut all);
    files(&cases.join("defects"), &mut all);
    all
}

/// Returns the comments of a document, sorted, without imports and root blocks, whose spelling depends on the dialect.
fn comments(document: &Document) -> Vec<String> {
    let segments = document.items().iter().flat_map(|item| item.segments.iter());
    let comments = segments.flat_map(|segment| {
        segment.comments().map(|span| segment.text()[span.range()].trim_end().to_owned()).collect::<Vec<_>>()
    });
    let mut kept: Vec<String> = comments.filter(|c| !c.starts_with("# from ") && !c.starts_with("# with T.")).collect();
    kept.sort();
    kept
}

/// Checks the first three properties for the text printed in each of the dialects.
fn check_laws(name: &str, text: &str, kind: FileKind, dialects: &[Dialect]) -> Result<(), String> {
    let document = Document::new(text, kind);
    for dialect in dialects.iter().copied() {
        let printed = print(&document, dialect);
        let read = Document::new(&printed, kind);
        tree_eq_as((&document, Dialect::detect(&document)), (&read, dialect))
            .map_err(|difference| format!("{name} as {dialect}: {difference}"))?;
        let again = print_as(&read, dialect, dialect);
        if again != printed {
            let first = again.lines().zip(printed.lines()).find(|(a, b)| a != b);
            return Err(format!("{name} as {dialect}: printed twice differs: {first:?}"));
        }
        if comments(&document) != comments(&read) {
            return Err(format!("{name} as {dialect}: comments differ"));
        }
    }
    Ok(())
}

/// The size in bytes of texts that the usual tests print in one dialect only, each in another than the one before.
const LARGE: usize = 20_000;

#[test]
fn printing_keeps_trees_and_comments_in_every_dialect() {
    printing_keeps_trees_and_comments(LARGE);
}

#[test]
#[ignore = "sweep: .ci/full"]
fn printing_of_large_texts_keeps_trees_and_comments_in_every_dialect() {
    printing_keeps_trees_and_comments(usize::MAX);
}

/// Prints each text in every dialect, and those of `large` bytes and more in one of them.
fn printing_keeps_trees_and_comments(large: usize) {
    let texts: Vec<_> = cases().iter().flat_map(|folder| texts(folder)).collect();
    println!("{} texts", texts.len());
    let mut next = Dialect::ALL.into_iter().cycle();
    let mut check = |(name, text, kind): &(String, String, FileKind)| {
        let one = next.next().filter(|_| text.len() >= large);
        check_laws(name, text, *kind, one.as_ref().map_or(&Dialect::ALL, std::slice::from_ref)).err()
    };
    let failures: Vec<String> = texts.iter().filter_map(&mut check).collect();
    let shown: Vec<&String> = failures.iter().take(20).collect();
    assert!(failures.is_empty(), "{} of {}: {shown:#?}", failures.len(), texts.len());
}

#[test]
fn text_printed_by_tvm_is_formatted() {
    let mut failures = Vec::new();
    let mut count = 0;
    let files = [
        ("modules.jsonl", "text"),
        ("modules.jsonl", "text_pep695"),
        ("modules_noroundtrip.jsonl", "text"),
        ("tir_modules.jsonl", "text"),
    ];
    for folder in cases() {
        for (name, text) in files.iter().flat_map(|(file, field)| rows(&folder, file, field, is_current)) {
            let document = Document::new(&text, FileKind::Rx);
            let printed = format(&document, Dialect::detect(&document));
            count += 1;
            // TVM prints trailing blanks on an empty line before a nested function, and prints infinities in a form
            // that it cannot parse.
            let lines = text.lines().map(str::trim_end).filter(|line| !line.contains("R.const(\""));
            let printed = printed.lines().filter(|line| !line.contains("R.const(float("));
            let (lines, printed): (Vec<_>, Vec<_>) = (lines.collect(), printed.collect());
            if lines != printed {
                let first = lines.iter().zip(&printed).find(|(a, b)| a != b);
                failures.push(format!("{name}: {first:?} {} {}", lines.len(), printed.len()));
            }
        }
    }
    println!("{count} texts");
    let shown: Vec<&String> = failures.iter().take(20).collect();
    assert!(failures.is_empty(), "{} of {count}: {shown:#?}", failures.len());
}

#[test]
fn python_3_12_text_is_the_same_module() {
    let mut failures = Vec::new();
    let texts: Vec<String> =
        cases().iter().filter_map(|folder| std::fs::read_to_string(folder.join("modules.jsonl")).ok()).collect();
    for (at, line) in texts.iter().flat_map(|text| text.lines()).enumerate() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        let (Some(old), Some(new)) = (row["text"].as_str(), row["text_pep695"].as_str()) else { continue };
        let wanted = Document::new(new, FileKind::Rx);
        let printed = print(&Document::new(old, FileKind::Rx), Dialect::Tvm027Py312);
        if let Err(difference) = tree_eq(&Document::new(&printed, FileKind::Rx), &wanted) {
            failures.push(format!("row {}: {difference}", at + 1));
        }
        let back = print(&wanted, Dialect::Tvm027);
        if let Err(difference) = tree_eq(&Document::new(&back, FileKind::Rx), &Document::new(old, FileKind::Rx)) {
            failures.push(format!("row {} back: {difference}", at + 1));
        }
    }
    let shown: Vec<&String> = failures.iter().take(20).collect();
    assert!(failures.is_empty(), "{}: {shown:#?}", failures.len());
}

/// Removes, inserts and duplicates a few pieces of a text.
fn mangled(text: &str, seed: &mut u64) -> String {
    let mut next = |below: usize| {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        (*seed % below.max(1) as u64) as usize
    };
    const PIECES: [&str; 24] = [
        "(",
        ")",
        "[",
        "]",
        ",",
        "\n",
        "    ",
        "\"",
        "'n'",
        ":",
        "=",
        "# x\n",
        "\\\n",
        ";",
        " if ",
        "lambda: ",
        "\"n + 1\"",
        "\r\n",
        "n",
        "T.int32()",
        "else:",
        "\"\"\"",
        "-",
        "é",
    ];
    let mut text = text.to_owned();
    for _ in 0..=next(4) {
        let mut at = next(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let mut end = (at + next(12)).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        let piece = match next(3) {
            0 => String::new(),
            1 => PIECES[next(PIECES.len())].to_owned(),
            _ => format!("{}{}", &text[at..end], &text[at..end]),
        };
        text.replace_range(at..end, &piece);
    }
    text
}

#[test]
fn mangled_text_prints_and_valid_text_round_trips() {
    let mut texts: Vec<_> = cases().iter().flat_map(|folder| texts(folder)).collect();
    texts.retain(|(_, text, _)| text.len() < 3000);
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    let mut failures = Vec::new();
    for (name, text, kind) in texts.iter().step_by(7) {
        let text = mangled(text, &mut seed);
        let document = Document::new(&text, *kind);
        let valid = document.items().iter().all(|item| {
            item.indentation_diagnostics().next().is_none()
                && item.segments.iter().all(|segment| rx_syntax::syntax_diagnostics(segment).is_empty())
        });
        if valid {
            failures.extend(
                check_laws(name, &text, *kind, &Dialect::ALL).err().map(|failure| format!("{failure}\n{text}")),
            );
        } else {
            Dialect::ALL.into_iter().for_each(|dialect| drop(print(&document, dialect)));
        }
    }
    assert!(failures.is_empty(), "{} failures, the first: {}", failures.len(), failures[0]);
}
