//! Tests of single operators: compares rx's inferred types with TVM's, and requires errors in calls that TVM rejects.

use super::{Tally, findings};
use rx_base::Code;
use rx_db::{FileKind, RowKind};
use rx_tests::cases::{self, CaseSet};
use rx_tests::check::{Checked, Found, check};
use rx_tests::types::same_text;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the operators that at least one model calls. For example, the text `R.nn.relu(x)` has `relax.nn.relu`.
fn operators_of_models(folder: &std::path::Path) -> BTreeSet<String> {
    let mut paths = cases::files(&folder.join("models"), "rx");
    paths.extend(cases::files(&folder.join("models"), "py"));
    let mut operators = BTreeSet::new();
    for path in paths {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        for (at, _) in text.match_indices("R.") {
            let rest = text.get(at + 2..).unwrap_or_default();
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
            operators.insert(format!("relax.{}", rest.get(..end).unwrap_or_default()));
        }
    }
    operators
}

/// Returns the type of the last binding, or of the returned value if there is none; `R.Any` after a mistake does not
/// count.
fn asked(checked: &Checked) -> Option<&str> {
    let of_kind = |kind: RowKind| checked.types.iter().rev().find(move |row| row.kind == kind);
    let row = of_kind(RowKind::Binding).or_else(|| of_kind(RowKind::Return))?;
    let mistaken = row.ty == "R.Any" && checked.errors().any(|error| error.line == row.line);
    (!mistaken).then_some(row.ty.as_str())
}

/// Returns the calls of a set that TVM rejects (`negative`), or those that it accepts.
fn calls(set: &CaseSet, negative: bool) -> Vec<Value> {
    let rows = set.rows("op_inference").into_iter().filter(|row| cases::is_true(row, "negative") == negative);
    let rows: Vec<Value> = rows.collect();
    assert!(!rows.is_empty(), "op_inference has no rows");
    rows
}

#[test]
fn inferred_types_are_tvms() {
    cases::sets().iter().for_each(types_are_tvms);
}

fn types_are_tvms(set: &CaseSet) {
    let argued = findings::argued();
    let of_models = operators_of_models(&set.folder.join(".."));
    let mut all = Tally::new(set.figure("inference, all operators"));
    let mut used = Tally::new(set.figure("inference, operators of models"));
    let mut by_operator: BTreeMap<String, usize> = BTreeMap::new();
    for row in calls(set, false) {
        let (Some(text), Some(wanted)) = (cases::text(&row, "text_bare"), cases::text(&row, "out_ty")) else {
            continue;
        };
        let operator = cases::text(&row, "op").unwrap_or_default();
        let id = cases::text(&row, "id").unwrap_or_default();
        let checked = check(text, FileKind::Rx);
        let got = asked(&checked);
        let right = got.is_some_and(|got| same_text(got, wanted) == Some(true));
        let says = || {
            let errors: Vec<String> = checked.errors().map(Found::to_string).collect();
            let call = cases::text(&row, "call").unwrap_or_default();
            format!(
                "{id} {call}\n    wanted {wanted}\n    got    {}\n    {}",
                got.unwrap_or("-"),
                errors.join("\n    ")
            )
        };
        all.count(right || argued.contains(id), says);
        if !right {
            *by_operator.entry(operator.to_owned()).or_default() += 1;
        }
        if of_models.contains(operator) {
            used.count(right || argued.contains(id), says);
        }
    }
    let mut worst: Vec<_> = by_operator.into_iter().collect();
    worst.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    println!("  wrong by operator: {worst:?}");
    if !of_models.is_empty() {
        used.publish();
    }
    all.must_be_complete();
}

#[test]
fn calls_that_tvm_rejects() {
    cases::sets().iter().for_each(rejected_calls_have_an_error);
}

fn rejected_calls_have_an_error(set: &CaseSet) {
    let argued = findings::argued();
    let mut rejected = Tally::new(set.figure("negatives rejected"));
    let mut placed = Tally::new(set.figure("negatives on the call's line"));
    for row in &calls(set, true) {
        let Some(text) = cases::text(row, "text") else { continue };
        let id = cases::text(row, "id").unwrap_or_default();
        let message = cases::text(row, "message").unwrap_or_default();
        let call = cases::text(row, "call").unwrap_or_default();
        let checked = check(text, FileKind::Rx);
        let right = checked.is_rejected() || argued.contains(id);
        rejected.count(right, || format!("{id} {call}\n    {message}\n{text}"));
        let line = text.lines().position(|line| line.contains(call)).map(|at| at + 1);
        if let (true, Some(line)) = (checked.is_rejected(), line) {
            let there = checked.errors().any(|error| error.line == line);
            placed.count(there || argued.contains(id), || {
                format!("{id} {call} line {line}: {:?}", checked.errors().next())
            });
        }
    }
    rejected.must_be_complete();
    placed.must_be_complete();
}

/// The codes of mistakes in which two values conflict, so that the message must name both.
const CLASHES: [Code; 18] = [
    Code::DtypeMismatch,
    Code::TensorNdimMismatch,
    Code::BroadcastMismatch,
    Code::MatmulReductionMismatch,
    Code::ReshapeCountMismatch,
    Code::ConcatShapeMismatch,
    Code::ShapeMismatch,
    Code::VDeviceMismatch,
    Code::ArgumentType,
    Code::ConvInChannelsMismatch,
    Code::ConvGroupsNotDivisible,
    Code::ConvOutputPaddingTooLarge,
    Code::AttrOutOfRange,
    Code::AxisOutOfRange,
    Code::IndexDtype,
    Code::AnnotationShapeMismatch,
    Code::ReturnShapeMismatch,
    Code::TooManyArguments,
];

/// Returns the words that the message for a rejected call lacks: the operator, the argument, one of two values.
fn unnamed(operator: &str, found: &Found, text: &str) -> Vec<&'static str> {
    let said: Vec<&str> = std::iter::once(&found.message).chain(&found.remarks).map(String::as_str).collect();
    let has = |word: &str| said.iter().any(|text| cases::words(text).any(|part| part == word));
    let short = operator.rsplit('.').next().unwrap_or(operator);
    let params = rx_ops::find(rx_base::name::name(operator)).map_or(&[][..], |schema| schema.params);
    let argument = params.iter().any(|param| has(param.name)) || has("argument") || has("arguments");
    let is_symbol =
        |word: &str| text.contains(&format!(" {word} = T.int64()")) || text.contains(&format!("{word} = TypeVar("));
    let values = cases::words(&found.message).filter(|word| is_value(word) || is_symbol(word)).count();
    let all = [
        ("the operator", has(short)),
        ("the argument", argument),
        ("both values", values >= 2 || !CLASHES.contains(&found.code)),
    ];
    all.into_iter().filter(|(_, named)| !named).map(|(subject, _)| subject).collect()
}

/// Whether a word of a message is a value: a number, a dtype, a type, a quoted text, a number in words.
fn is_value(word: &str) -> bool {
    let in_words = [
        "no", "one", "scalar", "tensor", "tuple", "float", "integer", "integers", "string", "shape", "positive",
        "variable", "known", "unknown",
    ];
    word.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        || word.starts_with(['"', '\''])
        || word.starts_with("R.")
        || word.starts_with("T.")
        || rx_base::DType::parse(word).is_some()
        || in_words.contains(&word)
}

#[test]
fn messages_name_what_clashes() {
    let Some(folder) = cases::folder() else { return };
    let rows = cases::rows(&folder.join("cases/op_inference.jsonl")).unwrap_or_default();
    let argued = findings::argued();
    let mut named = Tally::new("negatives that name operator, argument and values");
    for row in rows.iter().filter(|row| cases::is_true(row, "negative")) {
        let Some(text) = cases::text(row, "text") else { continue };
        let (id, call) = (cases::text(row, "id").unwrap_or_default(), cases::text(row, "call").unwrap_or_default());
        let operator = cases::text(row, "op").unwrap_or_default().trim_start_matches("relax.").to_owned();
        let line = text.lines().position(|line| line.contains(call)).map(|at| at + 1);
        let checked = check(text, FileKind::Rx);
        let Some(error) = checked.errors().find(|error| Some(error.line) == line) else { continue };
        let missing = unnamed(&operator, error, text);
        named.count(missing.is_empty() || argued.contains(id), || {
            format!(
                "{id} {call}: {} is not named\n    {error}\n    {}",
                missing.join(", "),
                error.remarks.join("\n    ")
            )
        });
    }
    named.must_be_complete();
}
