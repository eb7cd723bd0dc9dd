//! Tests of `--annotate`: annotating a text from which all possible annotations were removed must restore their types.

use super::{Tally, findings};
use rx_base::fix::{apply, new_error};
use rx_base::{Diagnostic, Span};
use rx_db::{Annotate, FileKind, RowKind, Workspace};
use rx_tests::cases::{self, CaseSet};
use rx_tests::check::{TypeFound, check};
use rx_tests::types::same_text;
use serde_json::Value;

/// The result of annotating a text: the new text, the diagnostics before and after, and the number of annotations.
struct Annotated {
    text: String,
    before: Vec<Diagnostic<Span>>,
    after: Vec<Diagnostic<Span>>,
    edits: usize,
}

fn annotate(text: &str, which: Annotate) -> Annotated {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, FileKind::Rx);
    let edits = workspace.annotations(file, which, None);
    let before = workspace.diagnostics(file);
    let annotated = apply(text, &edits);
    let file = workspace.add(&annotated, FileKind::Rx);
    let after = workspace.diagnostics(file);
    Annotated { text: annotated, before, after, edits: edits.len() }
}

/// Returns the fault of `text`, annotated: a new error, a changed type, or a missing annotation.
fn fault(text: &str, annotated: &Annotated) -> Option<String> {
    if let Some(error) = new_error(&annotated.before, &annotated.after) {
        return Some(format!("a new error: {} {}", error.code, error.message));
    }
    let again = annotate(&annotated.text, Annotate::Missing);
    if again.text != annotated.text {
        let line = again.text.lines().zip(annotated.text.lines()).find(|(a, b)| a != b);
        return Some(format!("annotated again: {line:?}"));
    }
    let types = |text: &str| check(text, FileKind::Rx).types;
    let bound: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_suffix(" = T.int64()")).collect();
    let (before, after) = (types(text), types(&annotated.text));
    let differ = |(a, b): (&TypeFound, &TypeFound)| {
        // A signature cannot name a shape variable or a dim that the body binds, so such a return type is declared by
        // its rank.
        let widened = a.kind == RowKind::Return
            && (a.ty.split("R.Tensor(").skip(1).any(|shape| !shape.starts_with(['(', 'd', 'n', 'v']))
                || bound.iter().any(|symbol| cases::words(&a.ty).any(|word| word == *symbol)));
        let same = widened || same_text(&a.ty, &b.ty) == Some(true);
        (a.name != b.name || !same).then(|| format!("line {}: {}: {} became {}", b.line, a.name, a.ty, b.ty))
    };
    if before.len() != after.len() {
        return Some("another number of values".to_owned());
    }
    before.iter().zip(&after).find_map(differ)
}

#[test]
fn annotations_of_some_modules_are_the_inferred_types() {
    cases::sets().iter().for_each(|set| annotations_are_those_inferred(set, 2));
}

#[test]
#[ignore = "sweep: .ci/full"]
fn annotations_are_the_inferred_types() {
    cases::sets().iter().for_each(|set| annotations_are_those_inferred(set, 1));
}

/// Annotates every `each`-th module of a set.
fn annotations_are_those_inferred(set: &CaseSet, each: usize) {
    let mut tally = Tally::new(set.figure("modules annotated"));
    let mut all = Tally::new(set.figure("modules annotated anew"));
    let mut count = 0;
    for row in set.rows("modules").into_iter().step_by(each) {
        let Some(text) = cases::text(&row, "text_min") else { continue };
        let id = cases::text(&row, "id").unwrap_or_default();
        let annotated = annotate(text, Annotate::Missing);
        count += annotated.edits;
        let says = |fault: Option<String>| format!("{id} {}", fault.unwrap_or_default());
        let missing = fault(text, &annotated);
        tally.count(missing.is_none(), || says(missing));
        let more = cases::text(&row, "text").and_then(|text| {
            let annotated = annotate(text, Annotate::All);
            new_error(&annotated.before, &annotated.after).map(|error| format!("a new error: {}", error.message))
        });
        all.count(more.is_none(), || says(more));
    }
    println!("{count} annotations");
    tally.must_be_complete();
    all.must_be_complete();
}

/// Returns the annotations of a text: the names and types of bindings `name: type`. For example, the line
/// `lv: R.Tensor((2,), dtype="float32") = R.exp(x)` gives `lv` and `R.Tensor((2,), dtype="float32")`.
fn annotations(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| {
        let (head, _) = line.trim().split_once(" = ")?;
        let (name, ty) = head.split_once(": ")?;
        name.chars().all(|c| c.is_alphanumeric() || c == '_').then(|| (name.to_owned(), ty.to_owned()))
    });
    lines.collect()
}

#[test]
fn annotations_are_tvms() {
    cases::sets().iter().for_each(annotations_are_those_of_tvm);
}

fn annotations_are_those_of_tvm(set: &CaseSet) {
    let argued = findings::argued();
    let mut tally = Tally::new(set.figure("annotations as TVM prints them"));
    for row in set.rows("modules") {
        let (Some(least), Some(full)) = (cases::text(&row, "text_min"), cases::text(&row, "text")) else { continue };
        let id = cases::text(&row, "id").unwrap_or_default();
        if argued.contains(id) || row.get("kind").and_then(Value::as_str) == Some("prim_func") {
            continue;
        }
        let (got, wanted) = (annotations(&annotate(least, Annotate::Missing).text), annotations(full));
        if got.len() != wanted.len() {
            continue;
        }
        for ((name, got), (_, wanted)) in got.iter().zip(&wanted).filter(|((a, _), (b, _))| a == b) {
            let right = same_text(got, wanted) == Some(true);
            tally.count(right, || format!("{id} {name}\n    wanted {wanted}\n    got    {got}"));
        }
    }
    tally.must_be_mostly_right(if set.own { 100 } else { 99 });
}

#[test]
fn operators_annotated() {
    cases::sets().iter().for_each(annotated_operators_keep_their_types);
}

fn annotated_operators_keep_their_types(set: &CaseSet) {
    let argued = findings::argued();
    let mut tally = Tally::new(set.figure("operators annotated"));
    for row in set.rows("op_inference") {
        let Some(text) = cases::text(&row, "text_bare").filter(|_| !cases::is_true(&row, "negative")) else { continue };
        let (id, fault) =
            (cases::text(&row, "id").unwrap_or_default(), fault(text, &annotate(text, Annotate::Missing)));
        tally.count(fault.is_none() || argued.contains(id), || format!("{id} {}", fault.unwrap_or_default()));
    }
    tally.must_be_complete();
}
