//! The page of diagnostic codes.

use rx_base::Code;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

const HEAD: &str = "# Diagnostic codes

<!-- Written by `cargo run -p rx-docs` from compiler/base/src/diagnostic/code.rs and docs/codes; a test compares. -->

Every diagnostic has a number and a name that never change their meaning. The severity is the usual one. A comment in an
example says what rx reports of its line.

| code | name | severity | |
|---|---|---|---|
";

/// The groups of codes, by their first two digits.
const GROUPS: &[(u16, &str)] = &[
    (1, "Syntax"),
    (2, "Names"),
    (3, "Types and shapes"),
    (4, "Operators and their arguments"),
    (5, "Calls between functions"),
    (6, "Ranges of indices"),
    (7, "Effects"),
    (8, "Building"),
    (9, "Passes"),
];

/// What people wrote about codes, by file name without extension: `rx0501`.
pub type Snippets = BTreeMap<String, String>;

/// Reads the snippets of a folder.
///
/// # Errors
/// What the file system says.
pub fn snippets(folder: &Path) -> io::Result<Snippets> {
    let mut snippets = Snippets::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if let (Some(name), true) = (path.file_stem(), path.extension().is_some_and(|it| it == "md")) {
            snippets.insert(name.to_string_lossy().into_owned(), fs::read_to_string(&path)?);
        }
    }
    Ok(snippets)
}

/// The anchor of a code, which is also its snippet's name: `rx0501`.
pub fn anchor(code: Code) -> String {
    code.to_string().to_lowercase()
}

/// The page as Markdown.
pub fn page(snippets: &Snippets) -> String {
    let mut page = HEAD.to_owned();
    for code in Code::ALL {
        let (anchor, slug, severity, summary) = (anchor(*code), code.slug(), code.severity(), code.summary());
        // INVARIANT: writing to a string does not fail.
        let _ = writeln!(page, "| [{code}](#{anchor}) | `{slug}` | {severity} | {summary} |");
    }
    for (group, title) in GROUPS {
        let codes: Vec<Code> = Code::ALL.iter().copied().filter(|code| code.number() / 100 == *group).collect();
        if codes.is_empty() {
            continue;
        }
        let _ = write!(page, "\n# {title}\n");
        for code in codes {
            let (slug, severity, summary) = (code.slug(), code.severity(), code.summary());
            let _ = write!(page, "\n## {code}\n\n`{slug}`, {severity}. {summary}\n");
            if let Some(snippet) = snippets.get(&anchor(code)) {
                let _ = write!(page, "\n{}\n", snippet.trim());
            }
        }
    }
    page
}
