//! Runs `test/corpus` of the grammar: texts and their trees. `UPDATE_EXPECT=1` rewrites the trees.

use expect_test::expect_file;
use rx_grammar_tests::{folder, parse};
use std::fmt::Write;

/// A test of a corpus file: its name and its text.
struct Case {
    name: String,
    text: String,
}

const HEAD: &str = "================================================================================";
const TREE: &str = "--------------------------------------------------------------------------------";

fn cases(file: &str) -> Vec<Case> {
    let mut parts = file.split(HEAD).skip(1);
    let mut cases = Vec::new();
    while let (Some(name), Some(rest)) = (parts.next(), parts.next()) {
        let (text, _) = rest.split_once(TREE).unwrap_or((rest, ""));
        cases.push(Case { name: name.trim().to_owned(), text: text_of(text).to_owned() });
    }
    cases
}

/// Removes one newline after the heading and one before the line of dashes, as tree-sitter does.
fn text_of(part: &str) -> &str {
    let part = part.strip_prefix('\n').unwrap_or(part);
    part.strip_suffix('\n').unwrap_or(part)
}

/// Formats a tree with one node per line.
fn drawn(sexp: &str) -> String {
    let mut out = String::new();
    let mut depth = 0;
    let mut quoted = false;
    for (at, c) in sexp.char_indices() {
        let before = sexp.get(..at).unwrap_or_default();
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => {
                // A field name precedes its node on the same line.
                if depth > 0 && !before.ends_with(": ") {
                    let _ = write!(out, "\n{}", "  ".repeat(depth));
                }
                depth += 1;
            }
            ')' if !quoted => depth -= 1,
            ' ' if !quoted => {
                let rest = sexp.get(at + 1..).unwrap_or_default();
                let word = rest.split(['(', ' ']).next().unwrap_or_default();
                if !word.is_empty()
                    && rest.get(word.len()..).is_some_and(|rest| rest.starts_with(' '))
                    && !before.ends_with("MISSING")
                {
                    let _ = write!(out, "\n{}", "  ".repeat(depth));
                } else if before.ends_with(':') || before.ends_with("MISSING") {
                    out.push(' ');
                } else if rest.starts_with('(') {
                    continue;
                } else {
                    out.push(' ');
                }
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

#[test]
fn trees_are_as_written() {
    let mut count = 0;
    for path in rx_tests::cases::files(&folder().join("test/corpus"), "txt") {
        let file = std::fs::read_to_string(&path).expect("INVARIANT: the file was just listed");
        let mut written = String::new();
        for case in cases(&file) {
            count += 1;
            let tree = drawn(&parse(&case.text).expect("INVARIANT: no time limit is set").root_node().to_sexp());
            let _ = write!(
                written,
                "{HEAD}\n{}\n{HEAD}\n\n{}\n{TREE}\n\n{tree}\n\n",
                case.name,
                case.text.trim_start_matches('\n')
            );
        }
        expect_file![path].assert_eq(&(written.trim_end().to_owned() + "\n"));
    }
    println!("{count} trees");
    assert!(count > 30, "the corpus is there");
}
