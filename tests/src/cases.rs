//! Conformance cases: those of `tests/conformance`, and those of the folder given by `RX_CASES` (by default `../shared`
//! next to the workspace).

use serde_json::Value;
use std::path::{Path, PathBuf};

/// A set of cases: `modules.jsonl`, `op_inference.jsonl` and `defects/` in one folder.
pub struct CaseSet {
    /// The folder of the set.
    pub folder: PathBuf,
    /// Whether this is `tests/conformance`, whose cases must all pass.
    pub own: bool,
}

impl CaseSet {
    /// Returns the project's own set.
    pub fn own() -> CaseSet {
        CaseSet { folder: Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance"), own: true }
    }

    /// Returns the rows of a file of JSON lines; none if the set has no such file.
    ///
    /// # Panics
    /// If the file contains anything but JSON lines.
    pub fn rows(&self, file: &str) -> Vec<Value> {
        let path = self.folder.join(format!("{file}.jsonl"));
        match path.is_file() {
            true => rows(&path).unwrap_or_else(|error| panic!("{error}")),
            false => Vec::new(),
        }
    }

    /// Returns the name of a figure over this set.
    pub fn figure(&self, name: &str) -> String {
        if self.own { format!("{name}, tests/conformance") } else { name.to_owned() }
    }
}

/// Returns the sets of cases: the project's own, then that of `RX_CASES` if it exists.
pub fn sets() -> Vec<CaseSet> {
    let given = folder().map(|folder| CaseSet { folder: folder.join("cases"), own: false });
    std::iter::once(CaseSet::own()).chain(given).collect()
}

/// Returns the folder given by `RX_CASES`, if it has cases; otherwise prints why a test is skipped.
pub fn folder() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = std::env::var_os("RX_CASES").map_or_else(|| workspace.join("../shared"), PathBuf::from);
    let there = folder.join("cases").is_dir();
    if !there {
        println!("skipped: no cases at {}; RX_CASES names another folder", folder.display());
    }
    there.then_some(folder)
}

/// Returns the rows of a file of JSON lines.
///
/// # Errors
/// A message about the file.
pub fn rows(path: &Path) -> Result<Vec<Value>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.lines()
        .map(|line| serde_json::from_str(line).map_err(|error| format!("{}: {error}", path.display())))
        .collect()
}

/// Returns a string field of a row.
pub fn text<'a>(row: &'a Value, field: &str) -> Option<&'a str> {
    row.get(field)?.as_str()
}

/// Whether a row's field is `true`.
pub fn is_true(row: &Value, field: &str) -> bool {
    row.get(field).and_then(Value::as_bool) == Some(true)
}

/// Returns every file with this extension in a folder and below it, in order of path.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => open.push(path),
                false if path.extension().is_some_and(|it| it == extension) => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// Writes the findings of a test to `conformance/NAME` in `folder`, for people to read.
///
/// # Errors
/// Errors of the file system.
pub fn write_list(folder: &Path, name: &str, lines: &[String]) -> std::io::Result<()> {
    let folder = folder.join("conformance");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(name), lines.join("\n") + "\n")
}

/// Returns the words of a message, without backquotes and surrounding punctuation.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let around = |c: char| matches!(c, '`' | ',' | ':' | ';' | '(' | ')' | '[' | ']' | '.');
    text.split([' ', '=', '[', '(']).map(move |word| word.trim_matches(around)).filter(|word| !word.is_empty())
}
