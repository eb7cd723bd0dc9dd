//! The pages of diagnostic codes: the index `docs/codes.md`, and a page for each code in `docs/codes`.
//!
//! The middle of a page is written by hand: the meaning, a wrong and a right example, the fix. Its head and the section
//! on suppression are generated from the table of codes.

use rx_base::{Code, Severity};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

const HEAD: &str = "# Diagnostic codes

<!-- Written by `cargo run -p rx-docs` from compiler/base/src/diagnostic/code.rs; a test compares. -->

The code and the name of a diagnostic never change their meaning. The severity is the default; `rx.toml` can change it. `rxcheck
--explain RX0402` prints the page of a code. In the examples, a comment states what rx reports for its line.
";

/// The comment below the title of each page.
const REMARK: &str = "<!-- `cargo run -p rx-docs` writes this head and the last section; a test compares. -->";

/// The sections of a page about a mistake in a text, in order.
pub const SECTIONS: [&str; 5] = ["Meaning", "Wrong", "Right", "How to fix it", SILENCE];

/// The sections of a page about a mistake that is not in a text, such as a failed run or a file that is not text.
pub const ELSEWHERE: [&str; 4] = ["Meaning", "Where it occurs", "How to fix it", SILENCE];

const SILENCE: &str = "How to silence it";

/// The titles of the groups of codes, by their first two digits.
const GROUPS: &[(u16, &str)] = &[
    (0, "The checker itself"),
    (1, "Syntax"),
    (2, "Names"),
    (3, "Types and shapes"),
    (4, "Operators and their arguments"),
    (5, "Calls between functions"),
    (6, "Ranges of indices"),
    (7, "Effects"),
    (8, "Building"),
    (9, "Passes"),
    (10, "Building with a given TVM"),
    (12, "Kernels"),
];

/// The pages in the folder, by file name without extension: `rx0501`.
pub type Pages = BTreeMap<String, String>;

/// Reads the pages of a folder.
///
/// # Errors
/// Errors of the file system.
pub fn read(folder: &Path) -> io::Result<Pages> {
    let mut pages = Pages::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if let (Some(name), true) = (path.file_stem(), path.extension().is_some_and(|it| it == "md")) {
            pages.insert(name.to_string_lossy().into_owned(), fs::read_to_string(&path)?);
        }
    }
    Ok(pages)
}

/// Returns the name of a code's page: `rx0501`.
pub fn file_stem(code: Code) -> String {
    code.to_string().to_lowercase()
}

/// Returns the titles of a page's sections, in order.
pub fn sections(page: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut titles = Vec::new();
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        titles.extend(line.strip_prefix("## ").filter(|_| !fenced).map(str::trim));
    }
    titles
}

/// Whether the page is about a mistake that is not in a text.
pub fn is_elsewhere(page: &str) -> bool {
    sections(page).contains(&ELSEWHERE[1])
}

/// Generates a code's page: the text in the folder, with head and last section from the table of codes.
pub fn page(code: Code, written: &str) -> String {
    let start = written.find("## ").unwrap_or(written.len());
    let middle = written.get(start..).unwrap_or_default();
    let middle = middle.split_once(&format!("## {SILENCE}")).map_or(middle, |(middle, _)| middle).trim();
    let (slug, summary) = (code.slug(), code.summary());
    let severity = match code.severity() {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
        Severity::Info => "Info",
        Severity::Hint => "Hint",
    };
    let silence = silence(code, is_elsewhere(middle));
    format!("# {code} {slug}\n\n{REMARK}\n\n**{severity}.** {summary}\n\n{middle}\n\n## {SILENCE}\n\n{silence}\n")
}

/// Generates the section on suppression.
fn silence(code: Code, elsewhere: bool) -> String {
    let slug = code.slug();
    let toml = format!("`rx.toml` sets the severity:\n\n```toml\n[severity]\n{code} = \"off\"\n```");
    match code.number() {
        0..50 => return "It cannot be silenced: settings with mistakes are not applied.".to_owned(),
        50..100 => return format!("Comments cannot silence it. In a project, {toml}"),
        _ if elsewhere => {
            return "It cannot be silenced by a comment, because it is not about a place in a text.".to_owned();
        }
        _ if !code.is_choosable() => {
            return "It cannot be silenced: rx cannot know the meaning of a text that it cannot parse.".to_owned();
        }
        _ => {}
    }
    let shown = match code.severity() {
        Severity::Hint => "Hints are shown only by editors and by `rxcheck --hints`. ",
        _ => "",
    };
    format!("{shown}On one line: end it with `# rx: ignore[{code}]` or `# rx: ignore[{slug}]`. In a project, {toml}")
}

/// Generates the index as Markdown.
pub fn index() -> String {
    let mut index = HEAD.to_owned();
    for (group, title) in GROUPS {
        let mut codes = Code::ALL.iter().filter(|code| code.number() / 100 == *group).peekable();
        if codes.peek().is_none() {
            continue;
        }
        // INVARIANT: writing to a string does not fail.
        let _ = write!(index, "\n## {title}\n\n| code | name | severity | |\n|---|---|---|---|\n");
        for code in codes {
            let (stem, slug, severity, summary) = (file_stem(*code), code.slug(), code.severity(), code.summary());
            let _ = writeln!(index, "| [{code}](codes/{stem}.md) | `{slug}` | {severity} | {summary} |");
        }
    }
    index
}
