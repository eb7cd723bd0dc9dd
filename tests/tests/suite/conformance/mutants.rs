//! Tests of modules with one inserted mistake.

use super::{Tally, findings};
use rx_db::FileKind;
use rx_tests::cases;
use rx_tests::check::{Checked, Found, check};
use serde_json::Value;
use std::collections::BTreeMap;

/// Mutations whose mistake may be reported anywhere in the function.
const ANYWHERE: [&str; 5] = ["param_ann_", "drop_", "output_drop", "rebind_", "if_branch_"];

/// Wrong declared return types, which TVM accepts.
const WRONG_RETURNS: [&str; 4] = ["ret_ann_dim", "ret_ann_dtype", "ret_ann_rank", "ret_ann_rank_up"];

#[test]
fn mistakes_that_tvm_rejects() {
    let Some(folder) = cases::folder() else { return };
    let argued = findings::argued();
    let mut rejected = Tally::new("mutants rejected");
    let mut placed = Tally::new("mutants placed");
    let mut returns = Tally::new("wrong returns rejected");
    let mut missed: BTreeMap<String, usize> = BTreeMap::new();
    for row in cases::rows(&folder.join("cases/mutants.jsonl")).unwrap_or_default() {
        let Some(text) = cases::text(&row, "text") else { continue };
        let (id, mutation) =
            (cases::text(&row, "id").unwrap_or_default(), cases::text(&row, "mutation").unwrap_or_default());
        let checked = check(text, FileKind::Rx);
        let right = checked.is_rejected() || argued.contains(id);
        let says = || {
            let field = |name| cases::text(&row, name).unwrap_or_default();
            let line = row.get("mutated_line").and_then(Value::as_u64).unwrap_or_default();
            let found: Vec<String> = checked.found.iter().map(Found::to_string).collect();
            format!(
                "{id} {mutation} line {line}: {} -> {}\n    TVM: {}\n    rx: {}\n{text}\n",
                field("old"),
                field("new"),
                field("message"),
                found.join("\n        ")
            )
        };
        if WRONG_RETURNS.contains(&mutation) {
            returns.count(right, says);
        }
        if row.get("accepts").and_then(Value::as_bool) != Some(false) {
            continue;
        }
        rejected.count(right, says);
        if !right {
            *missed.entry(mutation.to_owned()).or_default() += 1;
        }
        if checked.is_rejected() && !ANYWHERE.iter().any(|prefix| mutation.starts_with(prefix)) {
            placed.count(on_line(&row, &checked), says);
        }
    }
    println!("  missed by mutation: {missed:?}");
    // The limits of issue 4.
    rejected.must_be_mostly_right(99);
    placed.must_be_mostly_right(95);
    returns.must_be_complete();
}

/// Whether an error is on the mutated line or on the line that TVM reports.
fn on_line(row: &Value, checked: &Checked) -> bool {
    let line = |field| row.get(field).and_then(Value::as_u64);
    let lines = [line("mutated_line"), line("line").filter(|line| *line > 1)];
    checked.errors().any(|error| lines.contains(&Some(error.line as u64)))
}
