//! Tests as documents: Markdown whose code blocks are annotated with the diagnostics that rx must report.
//!
//! A block fenced as `rx` is a separate `.rx` file, one fenced as `py` a Python file; with `rx tvm=0.27` it is meant
//! for that release of TVM. A block fenced as `toml rx.toml` contains the settings of the files below it. Comments give
//! the expected diagnostics:
//!
//! ```text
//! x = R.add(a, b)  # error: [broadcast-mismatch] 15 "axis 1"
//! ```
//!
//! The column and the quoted part of the message are optional; `warning`, `info` and `hint` are written like `error`. A
//! comment on a separate line applies to the next line that is not such a comment. `# revealed: R.Tensor((2,))` gives
//! the type of the line's name; `# note: "…"` and `# help: "…"` give a part of a note or help message of a diagnostic.
//! A block fenced as `rx fixed`, `rx fixed --unsafe-fixes` or `rx annotated` gives the text of the previous block after
//! fixing or annotating, without such comments. Every error and warning must be expected; infos and hints may be.

mod expectation;
mod markdown;
mod rewrite;

pub use expectation::Expectation;
pub use markdown::{After, Block, Language, Rewrite, blocks};

use crate::check::{Checked, check_settings, check_with};
use rx_base::Severity;
use std::sync::Arc;

/// Runs every block of a document; each returned entry describes the differences in one block.
pub fn run(name: &str, markdown: &str) -> Vec<String> {
    let mut failures = Vec::new();
    for (block, checked) in checked(markdown) {
        let differences = match expectation::expectations(&block.code) {
            Ok(expected) => compare(&block, &expected, &checked),
            Err(mistake) => vec![mistake],
        };
        let rewritten = block.after.iter().filter_map(|after| rewrite::difference(&block, after));
        let differences: Vec<String> = differences.into_iter().chain(rewritten).collect();
        if !differences.is_empty() {
            failures.push(format!("{name}:{} {}\n    {}", block.line, block.heading, differences.join("\n    ")));
        }
    }
    failures
}

/// Checks the blocks of a document; a settings block applies to the files below it.
pub fn checked(markdown: &str) -> Vec<(Block, Checked)> {
    let mut operators = Arc::default();
    let check = |block: Block| {
        let checked = match block.language {
            Language::File(kind) => check_with(&block.code, kind, block.tvm, &operators),
            Language::Settings => {
                let checked;
                (checked, operators) = check_settings(&block.code);
                checked
            }
        };
        (block, checked)
    };
    blocks(markdown).into_iter().map(check).collect()
}

/// Returns the differences between a block's diagnostics and the expected ones, with line numbers of the document.
fn compare(block: &Block, expected: &[Expectation], checked: &Checked) -> Vec<String> {
    let mut open: Vec<&Expectation> = expected.iter().collect();
    let mut differences = Vec::new();
    for found in &checked.found {
        match open.iter().position(|expectation| expectation.accepts(found)) {
            Some(at) => {
                open.remove(at);
            }
            None if found.severity <= Severity::Warning => differences.push(format!(
                "line {}: unexpected {}: [{}] {} \"{}\"",
                block.line + found.line,
                found.severity,
                found.code.slug(),
                found.column,
                found.message
            )),
            None => {}
        }
    }
    for found in &checked.found {
        open.retain(|expectation| !expectation.is_remark_of(found));
    }
    for row in &checked.types {
        open.retain(|expectation| !expectation.reveals(row));
    }
    for expectation in open {
        let here = checked.types.iter().filter(|row| row.line == expectation.line);
        let types: Vec<String> = here.map(|row| format!("{}: {}", row.name, row.ty)).collect();
        let types = if expectation.is_type() { format!("; the line has {}", types.join(", ")) } else { String::new() };
        differences.push(format!("line {}: expected {expectation}, not found{types}", block.line + expectation.line));
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::run;

    const MARKDOWN: &str = "# Addition\n\n```rx\n@R.function\ndef f(x: R.Tensor((2,), \"int8\")):\n    y = R.add(x, x)  # revealed: R.Tensor((2,), dtype=\"int8\")\n    return R.add(x, z)  # error: [undefined-name] 21 \"`z`\"\n```\n";

    #[test]
    fn expected_diagnostics_are_found() {
        assert_eq!(run("add.md", MARKDOWN), Vec::<String>::new());
    }

    #[test]
    fn differences_name_the_line_and_the_finding() {
        let wrong = MARKDOWN.replace("undefined-name] 21", "undefined-name] 20").replace("(2,), dtype", "(3,), dtype");
        let wanted = "add.md:3 Addition\n    \
            line 7: unexpected error: [undefined-name] 21 \"`z` is not defined\"\n    \
            line 6: expected revealed: R.Tensor((3,), dtype=\"int8\"), not found; the line has y: R.Tensor((2,), dtype=\"int8\")\n    \
            line 7: expected error: [undefined-name] 20 \"`z`\", not found";
        assert_eq!(run("add.md", &wrong), [wanted]);
    }

    #[test]
    fn comment_on_its_own_line_applies_to_the_next_line() {
        let own_line = MARKDOWN.replace("R.add(x, z)  #", "R.add(x, z)\n    #").replace("    # error", "    # hint");
        assert_eq!(run("add.md", &own_line).len(), 1);
        let text = "```py\n@R.function\ndef f(x: R.Tensor):\n    # error: [undefined-name]\n    # error: [undefined-name]\n    return R.add(y, z)\n```";
        assert_eq!(run("add.md", text), Vec::<String>::new());
    }

    #[test]
    fn a_misspelt_expectation_is_a_failure() {
        let failures = run("add.md", &MARKDOWN.replace("undefined-name", "undefind-name"));
        assert_eq!(failures, ["add.md:3 Addition\n    no diagnostic is called `undefind-name`"]);
    }
}
