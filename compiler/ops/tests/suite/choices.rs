//! Tests that every call that an operator's struct-info rule accepts can be lowered to loops.
//!
//! The calls are those of `tests/operators`. Each attribute is set to each value that its schema suggests, choices are
//! tried in all combinations, and tensors in all dtypes.

use crate::values::Outcome;
use rx_base::name::name;
use rx_ops::{AttrKind, Compute, ParamKind, Schema, usual_layouts};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const DTYPES: &[&str] =
    &["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "uint32", "bool"];

/// The number of cases per operator for which all combinations of choices are tried.
const COMBINED: usize = 3;

/// The maximum number of combinations: an attribute whose values would exceed it is not varied.
const MOST_COMBINATIONS: usize = 5000;

/// Calls that are accepted, as in TVM, although they have no meaning: operators, a part of the reason, and an
/// explanation.
const ARGUED: &[(&str, &str, &str)] = &[
    ("bitwise_", "is not defined for", "floats have no bits to combine"),
    ("bitwise_not", "has no bits to flip", "floats have none"),
    ("_shift", "is not defined for", "floats and truth values cannot be shifted"),
    ("divide", "is not defined for bool", "truth values cannot be divided"),
    ("mod", "is not defined for bool", "truth values cannot be divided"),
    ("grad.", "must be at least 1", "a pooling that `nn.*_pool2d` refuses has no gradient"),
    ("grad.", " values, it takes ", "a pooling that `nn.*_pool2d` refuses has no gradient"),
    ("grad.", "the dimensions of its layout", "a pooling that `nn.*_pool2d` refuses has no gradient"),
    ("grad.take_backward", "is out of range", "`take` refuses such an axis"),
    ("image.grid_sample", "bicubic", "neither TVM nor PyTorch samples volumes so"),
    ("meshgrid", "does not fit its values", "TVM infers the shape of \"ij\" for \"xy\""),
];

/// Returns the cases that have results.
fn cases() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/operators");
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")) {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy();
        for (line, text) in text.lines().enumerate() {
            let case: Value = serde_json::from_str(text).unwrap();
            if case.get("error").is_none() {
                cases.push((format!("{name}:{}", line + 1), case));
            }
        }
    }
    cases
}

/// Returns values to try for an attribute; lists have the length of the case's list.
fn values_of(kind: AttrKind, given: Option<&Value>) -> Vec<Value> {
    let length = given.and_then(Value::as_array).map_or(1, Vec::len);
    match kind {
        AttrKind::Bool => vec![json!(false), json!(true)],
        AttrKind::Choice(choices) => choices.iter().map(|choice| json!(choice)).collect(),
        AttrKind::Int => [-2, -1, 0, 1, 2, 3].map(|value| json!(value)).to_vec(),
        AttrKind::IntOrNone => [json!(null)].into_iter().chain([-1, 0, 1, 2].map(|value| json!(value))).collect(),
        AttrKind::Float => [0.0, 0.5, 1.0, -1.0].map(|value| json!(value)).to_vec(),
        AttrKind::Ints | AttrKind::IntList => {
            let lists = [0, 1, 2, 3, -1].map(|value| json!(vec![value; length]));
            let singles = [0, 1, 2].map(|value| json!(value));
            let ranges = [json!((0..length).collect::<Vec<_>>()), json!([0, 1]), json!([])];
            lists.into_iter().chain(singles).chain(ranges).collect()
        }
        AttrKind::Floats => vec![json!(vec![0.5; length])],
        AttrKind::DType => DTYPES.iter().map(|dtype| json!(dtype)).collect(),
        AttrKind::Layout => {
            let like = given.and_then(Value::as_str).unwrap_or("NCHW");
            usual_layouts(like).into_iter().map(Value::String).collect()
        }
        AttrKind::Str | AttrKind::Strs | AttrKind::VDevice | AttrKind::Dict | AttrKind::Any => Vec::new(),
    }
}

/// Returns the values to try for each attribute of a case.
fn attributes(schema: &'static Schema, case: &Value) -> Vec<(&'static str, AttrKind, Vec<Value>)> {
    let of = |param: &rx_ops::Param| match param.kind {
        ParamKind::Attr(kind) => {
            let default = param.default.text().and_then(|text| serde_json::from_str(&text).ok());
            let given = case["args"].get(param.name).and_then(|arg| arg.get("attr")).or(default.as_ref()).cloned();
            Some((param.name, kind, values_of(kind, given.as_ref())))
        }
        _ => None,
    };
    schema.params.iter().filter_map(of).collect()
}

/// Returns the case with each attribute set to each of its values, one at a time.
fn one_changed(schema: &'static Schema, case: &Value) -> Vec<Value> {
    let mut changed = Vec::new();
    for (name, _, values) in attributes(schema, case) {
        for value in values {
            let mut case = case.clone();
            case["args"][name] = json!({ "attr": value });
            changed.push(case);
        }
    }
    changed
}

/// Returns the case with all combinations of the attributes that are booleans or choices.
fn all_combined(schema: &'static Schema, case: &Value) -> Vec<Value> {
    let mut changed = vec![case.clone()];
    for (name, kind, values) in attributes(schema, case) {
        if !matches!(kind, AttrKind::Bool | AttrKind::Choice(_)) || changed.len() * values.len() > MOST_COMBINATIONS {
            continue;
        }
        let with = |case: &Value, value: &Value| {
            let mut case = case.clone();
            case["args"][name] = json!({ "attr": value });
            case
        };
        changed = changed.iter().flat_map(|case| values.iter().map(move |value| with(case, value))).collect();
    }
    changed
}

/// Returns the case with the dtype of its first tensor replaced by each other dtype, in all tensors that have it.
fn other_dtypes(case: &Value) -> Vec<Value> {
    let mut dtypes = BTreeSet::new();
    visit(&mut case["args"].clone(), &mut |tensor| {
        dtypes.extend(tensor["dtype"].as_str().map(str::to_owned));
    });
    let mut changed = Vec::new();
    for own in dtypes {
        for dtype in DTYPES.iter().filter(|dtype| **dtype != own) {
            let mut case = case.clone();
            visit(&mut case["args"], &mut |tensor| {
                if tensor["dtype"] == json!(own) {
                    tensor["dtype"] = json!(dtype);
                    // The elements are not used.
                    tensor["data"] = json!([]);
                }
            });
            changed.push(case);
        }
    }
    changed
}

/// Calls `visitor` on each tensor.
fn visit(value: &mut Value, visitor: &mut impl FnMut(&mut Value)) {
    if value.get("tensor").is_some() {
        visitor(value);
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, visitor)),
        Value::Object(fields) => fields.values_mut().for_each(|field| visit(field, visitor)),
        _ => {}
    }
}

#[test]
fn calls_that_a_rule_accepts_have_loops() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut failures: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let (mut lowered, mut refused) = (0, 0);
    let mut used = BTreeSet::new();
    for (place, case) in cases() {
        let operator = case["operator"].as_str().unwrap().to_owned();
        let schema = rx_ops::find(name(&operator)).unwrap();
        // The runtime computes the operator from values.
        if matches!(schema.compute, Some(Compute::Host)) {
            continue;
        }
        let count = seen.entry(operator.clone()).or_default();
        *count += 1;
        let mut changed = one_changed(schema, &case);
        changed.extend(other_dtypes(&case));
        if *count <= COMBINED {
            changed.extend(all_combined(schema, &case));
        }
        for case in changed {
            match crate::values::outcome(&case).unwrap_or_else(|error| panic!("{place}: {error}")) {
                Outcome::Refused => refused += 1,
                Outcome::Lowered => lowered += 1,
                Outcome::Failed(why) => {
                    let args = case["args"].as_object().unwrap().iter();
                    let attrs: Vec<String> =
                        args.filter_map(|(name, arg)| Some(format!("{name}={}", arg.get("attr")?))).collect();
                    let example = || (0, format!("{place} {}", attrs.join(" ")));
                    let argued = |(of, words, _): &(&str, &str, &str)| operator.contains(of) && why.contains(words);
                    match ARGUED.iter().position(argued) {
                        Some(at) => drop(used.insert(at)),
                        None => failures.entry(format!("R.{operator}: {why}")).or_insert_with(example).0 += 1,
                    }
                }
            }
        }
    }
    println!("{lowered} calls lowered, {refused} refused by their rules");
    let text: Vec<String> = failures.iter().map(|(why, (count, place))| format!("{count} {why} ({place})")).collect();
    assert!(lowered > 1000 && failures.is_empty(), "{lowered} calls have loops; these do not:\n{}", text.join("\n"));
    let idle: Vec<_> = (0..ARGUED.len()).filter(|at| !used.contains(at)).map(|at| ARGUED[at]).collect();
    assert!(idle.is_empty(), "argued and not seen: {idle:?}");
}
