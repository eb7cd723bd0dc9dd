//! Fixes or annotates a block and compares the result.

use super::expectation::without_expectations;
use super::markdown::{After, Block, Language, Rewrite};
use rx_base::fix::{apply, fix_all};
use rx_db::{Annotate, Workspace};

/// Returns the first difference between the rewritten text of a block and the expected one.
pub fn difference(block: &Block, after: &After) -> Option<String> {
    let got = without_expectations(&rewritten(block, after.rewrite));
    if got == after.code {
        return None;
    }
    let lines = got.lines().zip(after.code.lines()).enumerate();
    let first = lines.clone().find(|(_, (got, wanted))| got != wanted);
    Some(match first {
        Some((at, (got, wanted))) => format!("line {}: expected `{wanted}`, got `{got}`", after.line + at + 1),
        None => format!("line {}: expected another number of lines, got:\n{got}", after.line),
    })
}

fn rewritten(block: &Block, rewrite: Rewrite) -> String {
    let Language::File(kind) = block.language else { return block.code.clone() };
    match rewrite {
        Rewrite::Fix { with_unsafe } => {
            let mut check = |text: &str| {
                let mut workspace = Workspace::new();
                let file = workspace.add(text, kind);
                workspace.set_tvm(file, block.tvm);
                workspace.diagnostics(file)
            };
            fix_all(&block.code, with_unsafe, &mut check).text
        }
        Rewrite::Annotate => {
            let mut workspace = Workspace::new();
            let file = workspace.add(&block.code, kind);
            apply(&block.code, &workspace.annotations(file, Annotate::Missing, None))
        }
    }
}
