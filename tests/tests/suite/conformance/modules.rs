//! Tests of whole modules: infers every type from minimal annotations, and reports no error in modules that TVM
//! accepts.

use super::{Tally, findings};
use rx_db::FileKind;
use rx_tests::cases::{self, CaseSet};
use rx_tests::check::{Checked, Found, check};
use rx_tests::types::same_text;
use serde_json::Value;
use std::collections::BTreeMap;

fn rows(set: &CaseSet) -> Vec<Value> {
    let rows = set.rows("modules");
    assert!(!rows.is_empty(), "modules has no rows");
    rows
}

/// For each (function, name) the types of its bindings, in order.
type ByName = BTreeMap<(String, String), Vec<String>>;

fn wanted_types(row: &Value) -> Vec<(String, String, String)> {
    let vars = row.get("vars").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let fields = vars.iter().filter_map(|var| {
        let field = |at: usize| var.get(at).and_then(Value::as_str);
        let (function, name, ty, how) = (field(0)?, field(1)?, field(2)?, field(3)?);
        // Leave out the types of nested expressions, and the function that a nested `def` binds.
        (how != "expr" && how != "def").then(|| (function.to_owned(), name.to_owned(), ty.to_owned()))
    });
    fields.collect()
}

fn inferred_types(checked: &Checked) -> ByName {
    let mut types = ByName::new();
    for row in &checked.types {
        types.entry((row.function.clone(), row.name.clone())).or_default().push(row.ty.clone());
    }
    types
}

/// Returns the first variable whose type differs from the expected one.
fn difference(row: &Value, checked: &Checked) -> Option<String> {
    let inferred = inferred_types(checked);
    let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (function, name, wanted) in wanted_types(row) {
        let key = (function.clone(), name.clone());
        let turn = seen.entry(key.clone()).or_default();
        let got = inferred.get(&key).and_then(|types| types.get(*turn));
        *turn += 1;
        if got.is_none_or(|got| same_text(got, &wanted) != Some(true)) {
            return Some(format!(
                "{function}.{name}\n    wanted {wanted}\n    got    {}",
                got.map_or("-", String::as_str)
            ));
        }
    }
    None
}

#[test]
fn types_from_the_least_annotations() {
    cases::sets().iter().for_each(types_are_those_of_the_annotated_text);
}

fn types_are_those_of_the_annotated_text(set: &CaseSet) {
    let argued = findings::argued();
    let mut tally = Tally::new(set.figure("modules inferred from text_min"));
    for row in &rows(set) {
        let Some(text) = cases::text(row, "text_min") else { continue };
        let id = cases::text(row, "id").unwrap_or_default();
        let checked = check(text, FileKind::Rx);
        let difference = difference(row, &checked);
        tally.count(difference.is_none() || argued.contains(id), || {
            let error = checked.errors().next().map(Found::to_string);
            format!("{id} {}\n    {}", difference.unwrap_or_default(), error.unwrap_or_default())
        });
    }
    tally.must_be_complete();
}

#[test]
fn modules_that_tvm_accepts_have_no_error() {
    cases::sets().iter().for_each(accepted_modules_have_no_error);
}

fn accepted_modules_have_no_error(set: &CaseSet) {
    let argued = findings::argued();
    let mut tally = Tally::new(set.figure("well-formed modules without an error"));
    for row in rows(set).iter().filter(|row| cases::is_true(row, "well_formed") && cases::is_true(row, "roundtrip")) {
        let Some(text) = cases::text(row, "text") else { continue };
        let id = cases::text(row, "id").unwrap_or_default();
        let checked = check(text, FileKind::Rx);
        tally.count(!checked.is_rejected() || argued.contains(id), || {
            let errors: Vec<String> = checked.errors().take(3).map(Found::to_string).collect();
            format!("{id}\n    {}", errors.join("\n    "))
        });
    }
    tally.must_be_complete();
}

/// rx's verdict on the own modules must be TVM's, even on those that TVM prints but cannot read.
#[test]
fn own_modules_have_tvms_verdict() {
    let argued = findings::argued();
    let mut tally = Tally::new("modules with TVM's verdict, tests/conformance");
    for row in rows(&CaseSet::own()) {
        let (Some(id), Some(text)) = (cases::text(&row, "id"), cases::text(&row, "text")) else { continue };
        let (checked, well_formed) = (check(text, FileKind::Rx), cases::is_true(&row, "well_formed"));
        tally.count(checked.is_rejected() != well_formed || argued.contains(id), || {
            format!("{id}: TVM says {well_formed}, rx {:?}", checked.errors().next().map(Found::to_string))
        });
    }
    tally.must_be_complete();
}

#[test]
fn ill_formed_modules() {
    let Some(folder) = cases::folder() else { return };
    let rows = cases::rows(&folder.join("cases/well_formed.jsonl")).unwrap_or_default();
    let argued = findings::argued();
    let mut tally = Tally::new("well_formed verdicts");
    let mut of_test: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &rows {
        let test = cases::text(row, "test").and_then(|test| test.rsplit("::").next()).unwrap_or_default();
        let nth = of_test.entry(test).or_default();
        *nth += 1;
        let id = format!("{test} #{nth}");
        let Some(text) = cases::text(row, "text") else { continue };
        let checked = check(text, FileKind::Rx);
        let well_formed = cases::is_true(row, "well_formed");
        tally.count(checked.is_rejected() != well_formed || argued.contains(&id), || {
            let reason = cases::text(row, "reason").unwrap_or_default();
            let first = checked.errors().next().map(Found::to_string);
            format!("{id} {well_formed} {reason} {first:?}\n{text}")
        });
    }
    tally.must_be_complete();
}
