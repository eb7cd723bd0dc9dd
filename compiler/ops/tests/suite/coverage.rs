//! Tests that every operator, and every choice of its attributes, has reference values that are independent of this
//! project.
//!
//! The values are in `tests/operators`: calls in `*.jsonl`, and programs in `programs`, each with an `.npz`. Scripts in
//! `tests/scripts` computed them with NumPy, PyTorch and ONNX.

use rx_base::name::name;
use rx_ops::{AttrKind, ParamKind, Schema};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Operators without reference values, with the reason.
const WITHOUT: &[(&str, &str)] = &[
    ("call_dps_packed", "what it calls is a library's: rx knows no packed function that writes into its last argument"),
    ("call_py_func", "what it calls is Python"),
];

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/operators").join(folder);
    let paths = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// Returns the calls that have reference values.
fn calls() -> Vec<Value> {
    let texts = files("", "jsonl").into_iter().map(|path| std::fs::read_to_string(path).unwrap());
    texts.flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>()).collect()
}

/// Returns the operators that are called by programs with reference values.
fn called() -> BTreeSet<String> {
    let mut called = BTreeSet::new();
    for path in files("programs", "rx") {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(path.with_extension("npz").exists(), "{} has no values", path.display());
        let calls = text.split("R.").skip(1).filter_map(|rest| rest.split_once('('));
        called.extend(calls.map(|(operator, _)| operator.to_owned()).filter(|it| rx_ops::find(name(it)).is_some()));
    }
    called
}

/// Returns the possible values of a parameter, if they can be listed.
fn offered(kind: ParamKind) -> Vec<Value> {
    match kind {
        ParamKind::Attr(AttrKind::Bool) => vec![json!(false), json!(true)],
        ParamKind::Attr(AttrKind::Choice(choices)) => choices.iter().map(|choice| json!(choice)).collect(),
        _ => Vec::new(),
    }
}

/// Returns the values that a call gives to its parameters; an omitted one has its default.
fn chosen(schema: &Schema, call: &Value) -> Vec<(&'static str, Value)> {
    let default = |param: &rx_ops::Param| match param.default {
        rx_ops::Default::Bool(value) => json!(value),
        rx_ops::Default::Str(value) => json!(value),
        _ => Value::Null,
    };
    let of = |param: &rx_ops::Param| {
        let given = call["args"].get(param.name).and_then(|arg| arg.get("attr"));
        (param.name, given.cloned().unwrap_or_else(|| default(param)))
    };
    schema.params.iter().map(of).collect()
}

#[test]
fn every_operator_has_values() {
    let called = called();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for call in calls() {
        *counts.entry(call["operator"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let has = |schema: &Schema| counts.contains_key(schema.name) || called.contains(schema.name);
    let missing: BTreeSet<&str> = rx_ops::all().filter(|schema| !has(schema)).map(|schema| schema.name).collect();
    let reported: BTreeSet<&str> = WITHOUT.iter().map(|(operator, _)| *operator).collect();
    println!("{} operators, {} without values: {missing:?}", rx_ops::all().count(), missing.len());
    assert_eq!(missing, reported);
}

#[test]
fn every_choice_has_values() {
    let mut seen: BTreeSet<(String, &str, String)> = BTreeSet::new();
    for call in calls() {
        let operator = call["operator"].as_str().unwrap();
        let schema = rx_ops::find(name(operator)).unwrap_or_else(|| panic!("{operator}"));
        for (param, value) in chosen(schema, &call) {
            seen.insert((operator.to_owned(), param, value.to_string()));
        }
    }
    let mut missing = Vec::new();
    for schema in rx_ops::all().filter(|schema| seen.iter().any(|(operator, ..)| operator == schema.name)) {
        for param in schema.params {
            let values = offered(param.kind).into_iter();
            let without =
                values.filter(|value| !seen.contains(&(schema.name.to_owned(), param.name, value.to_string())));
            missing.extend(without.map(|value| format!("R.{}({}={value})", schema.name, param.name)));
        }
    }
    assert!(missing.is_empty(), "{} choices have no values:\n{}", missing.len(), missing.join("\n"));
}
