//! Checks that the default pipeline preserves the values of every operator: the calls of `tests/operators`, and
//! variants with every value that a schema suggests for an attribute. Tensors are passed as parameters and as
//! constants.

use rx_base::Severity;
use rx_base::name::name;
use rx_build::pipeline::{Pipeline, Unapplied, checked};
use rx_db::Operators;
use rx_driver::values::{File, Verdict, compare_functions};
use rx_ops::{AttrKind, ParamKind, Schema, usual_layouts};
use rx_transform::pipeline::steps;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// The stack size of threads for recursive visitors, in bytes.
const STACK: usize = 256 << 20;

/// The number of functions of a module: the module is printed and checked after each pass.
const FUNCTIONS: usize = 60;

/// Operators that are not compared, with the reason: their results are random or depend on the way they are computed.
const NOT_COMPARED: &[(&str, &str)] = &[];

/// Returns the cases that have results, by operator.
pub(crate) fn cases() -> BTreeMap<String, Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/operators");
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    paths.sort();
    let mut cases: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for path in paths {
        for line in std::fs::read_to_string(path).expect("a text").lines() {
            let case: Value = serde_json::from_str(line).expect("a case");
            if case.get("error").is_none() {
                cases.entry(case["operator"].as_str().expect("a name").to_owned()).or_default().push(case);
            }
        }
    }
    cases
}

/// Returns values to try for an attribute.
fn values_of(kind: AttrKind, given: Option<&Value>) -> Vec<Value> {
    match kind {
        AttrKind::Bool => vec![json!(false), json!(true)],
        AttrKind::Choice(choices) => choices.iter().map(|choice| json!(choice)).collect(),
        AttrKind::Int => [-1, 0, 1, 2].map(|value| json!(value)).to_vec(),
        AttrKind::IntOrNone => vec![json!(null), json!(-1), json!(0), json!(1)],
        AttrKind::Float => [0.0, 0.5, 1.0].map(|value| json!(value)).to_vec(),
        AttrKind::Ints | AttrKind::IntList => {
            let length = given.and_then(Value::as_array).map_or(1, Vec::len);
            [0, 1, 2].map(|value| json!(vec![value; length])).to_vec()
        }
        AttrKind::DType => ["float16", "float64", "int32"].map(|dtype| json!(dtype)).to_vec(),
        AttrKind::Layout => {
            let like = given.and_then(Value::as_str).unwrap_or("NCHW");
            usual_layouts(like).into_iter().map(Value::String).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns variants of a case, each with one attribute set to another value.
fn one_changed(schema: &'static Schema, case: &Value) -> Vec<Value> {
    let mut changed = Vec::new();
    for param in schema.params {
        let ParamKind::Attr(kind) = param.kind else { continue };
        let given = case["args"].get(param.name).and_then(|arg| arg.get("attr"));
        for value in values_of(kind, given) {
            let mut case = case.clone();
            case["args"][param.name] = json!({ "attr": value });
            changed.push(case);
        }
    }
    changed
}

/// Formats a value in Python syntax.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Value::Array(items) => format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("\"{key}\": {}", python(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// Writes a function that calls an operator as in a case.
struct Writer<'c> {
    case: &'c Value,
    /// Whether tensors are passed as constants.
    constant: bool,
    params: Vec<String>,
}

impl Writer<'_> {
    /// Returns the text of the function, or `None` for a case that has none: an extent computed from symbols, or a
    /// number that JSON cannot represent.
    fn function(mut self, own: &str) -> Option<String> {
        let operator = self.case["operator"].as_str()?;
        let schema = rx_ops::find(name(operator))?;
        let mut arguments = Vec::new();
        for param in schema.params {
            let Some(given) = self.case["args"].get(param.name) else { continue };
            let text = self.argument(given)?;
            arguments.push(match (param.kind, given.get("attr")) {
                (ParamKind::Variadic, _) => text.trim_start_matches('(').trim_end_matches([')', ',']).to_owned(),
                _ => format!("{}={text}", param.name),
            });
        }
        let (params, call) = (self.params.join(", "), arguments.join(", "));
        Some(format!(
            "    @R.function\n    def {own}({params}):\n        with R.dataflow():\n            y = R.{operator}({call})\n            \
             R.output(y)\n        return y\n\n"
        ))
    }

    fn argument(&mut self, given: &Value) -> Option<String> {
        if let Some(items) = given.get("tuple").and_then(Value::as_array) {
            let items: Vec<String> = items.iter().map(|item| self.argument(item)).collect::<Option<_>>()?;
            return Some(format!("({},)", items.join(", ")));
        }
        if given.get("tensor").is_some() {
            return self.tensor(given);
        }
        if let Some(shape) = given.get("shape") {
            return Some(format!("R.shape({})", python(&self.extents(shape)?)));
        }
        if let Some(value) = given.get("const") {
            return Some(format!("R.const({}, {})", python(value), given["dtype"]));
        }
        if let Some(value) = given.get("prim") {
            let value = self.extent(value)?;
            return Some(match given.get("dtype").and_then(Value::as_str) {
                Some(dtype) => format!("R.prim_value(T.{dtype}({}))", python(&value)),
                None => format!("R.prim_value({})", python(&value)),
            });
        }
        match given.get("opaque") {
            Some(text) => text.as_str().map(str::to_owned),
            None => given.get("attr").map(python),
        }
    }

    fn extent(&self, extent: &Value) -> Option<Value> {
        match extent {
            Value::String(symbol) => self.case["symbols"].get(symbol).cloned(),
            other => Some(other.clone()),
        }
    }

    fn extents(&self, extents: &Value) -> Option<Value> {
        extents.as_array()?.iter().map(|extent| self.extent(extent)).collect::<Option<Vec<_>>>().map(Value::Array)
    }

    fn tensor(&mut self, given: &Value) -> Option<String> {
        let extents = self.extents(&given["tensor"])?;
        let dtype = given["dtype"].as_str()?;
        let elements = given["data"].as_array()?;
        let shape: Vec<usize> =
            extents.as_array()?.iter().map(|extent| Some(extent.as_u64()? as usize)).collect::<Option<_>>()?;
        let is_plain = elements.iter().all(|element| element.is_number() || element.is_boolean());
        if self.constant && is_plain && !elements.is_empty() && !shape.is_empty() {
            return Some(format!("R.const({}, \"{dtype}\")", python(&nested(elements, &shape))));
        }
        let own = format!("p{}", self.params.len());
        let dims: Vec<String> = shape.iter().map(usize::to_string).collect();
        let comma = if dims.len() == 1 { "," } else { "" };
        self.params.push(format!("{own}: R.Tensor(({}{comma}), dtype=\"{dtype}\")", dims.join(", ")));
        Some(own)
    }
}

fn nested(elements: &[Value], shape: &[usize]) -> Value {
    let Some((_, inner)) = shape.split_first() else { return elements.first().cloned().unwrap_or_default() };
    let size = inner.iter().product::<usize>().max(1);
    Value::Array(elements.chunks(size).map(|row| nested(row, inner)).collect())
}

/// Returns a module of these functions, without those that have errors.
pub(crate) fn module(functions: &[String]) -> String {
    let text = |functions: &[String]| {
        let mut text = "@I.ir_module\nclass Module:\n".to_owned();
        functions.iter().for_each(|function| text.push_str(function));
        text
    };
    let all = text(functions);
    let (workspace, file) = checked(&all, Arc::new(Operators::default()));
    let mut ends = Vec::new();
    let mut end = all.len() - functions.iter().map(String::len).sum::<usize>();
    for function in functions {
        end += function.len();
        ends.push(end);
    }
    let mut good = vec![true; functions.len()];
    for found in workspace.diagnostics(file) {
        let at = ends.partition_point(|end| *end <= found.primary.start as usize);
        if found.severity == Severity::Error
            && let Some(good) = good.get_mut(at)
        {
            *good = false;
        }
    }
    let kept: Vec<String> =
        functions.iter().zip(good).filter(|(_, good)| *good).map(|(text, _)| text.clone()).collect();
    text(&kept)
}

/// The counts of outcomes.
#[derive(Default)]
struct Tally {
    same: usize,
    not_run: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

/// The reason why a module does not reach the end of the pipeline.
enum Untransformed {
    /// A pass refuses the module.
    Refused(String),
    /// The checker finds errors in the result of a pass: for example, an index of a loop is out of range.
    Broken(String),
}

/// Runs the default pipeline on a module.
fn transformed(text: &str, operators: Arc<Operators>) -> Result<Pipeline, Untransformed> {
    let (workspace, file) = checked(text, operators.clone());
    let pipeline = Pipeline::new(&workspace, workspace.first_module(file), operators);
    let mut pipeline = pipeline.map_err(Untransformed::Refused)?;
    for step in steps("default").map_err(|error| Untransformed::Refused(error.to_string()))? {
        pipeline.apply(&step, rx_driver::evaluate).map_err(|why| match why {
            Unapplied::Refused(error) => Untransformed::Refused(error.to_string()),
            Unapplied::Broken(_, errors) => {
                let message = errors.first().map_or("", |error| &error.message);
                Untransformed::Broken(format!("{} breaks it: {message}", step.pass.name))
            }
        })?;
    }
    Ok(pipeline)
}

/// Compares the functions of a module separately, after a pass reported an error in one of them. A function may cause
/// an error only if it also fails when the original is run.
fn compare_apart(text: &str, why: &str, operators: Arc<Operators>, tally: &mut Tally) {
    let functions: Vec<String> =
        text.split("    @R.function\n").skip(1).map(|function| format!("    @R.function\n{function}")).collect();
    if functions.len() > 1 {
        return functions.iter().for_each(|function| compare(&module(std::slice::from_ref(function)), tally));
    }
    let (before, file) = checked(text, operators);
    let before = || File { workspace: &before, file };
    match compare_functions(before(), before(), None, 0).as_slice() {
        [(_, Verdict::NotRun(why))] => *tally.not_run.entry(why.clone()).or_default() += 1,
        _ => tally.wrong.push(format!("{why}\n{text}")),
    }
}

/// Runs the default pipeline on a module, and compares its functions before and after.
fn compare(text: &str, tally: &mut Tally) {
    let operators = Arc::new(Operators::default());
    let pipeline = match transformed(text, operators.clone()) {
        Ok(pipeline) => pipeline,
        Err(Untransformed::Refused(why)) => return tally.wrong.push(format!("{why}\n{text}")),
        Err(Untransformed::Broken(why)) => return compare_apart(text, &why, operators, tally),
    };
    let ((before, file), (after, new)) = (checked(text, operators), pipeline.checked());
    for (function, verdict) in
        compare_functions(File { workspace: &before, file }, File { workspace: &after, file: new }, None, 0)
    {
        match verdict {
            Verdict::Same(_) => tally.same += 1,
            Verdict::NotRun(why) => *tally.not_run.entry(why).or_default() += 1,
            Verdict::Differs(why) => {
                let own = text.split("    @R.function\n").find(|part| part.contains(&format!("def {function}(")));
                tally.wrong.push(format!("{why}\n{}", own.unwrap_or_default()));
            }
        }
    }
}

/// Returns functions that call an operator as in its cases.
pub(crate) fn functions(operator: &str, cases: &[Value]) -> Vec<String> {
    let Some(schema) = rx_ops::find(name(operator)) else { return Vec::new() };
    let mut all: Vec<Value> = cases.to_vec();
    all.extend(cases.first().into_iter().flat_map(|case| one_changed(schema, case)));
    let mut found: Vec<String> = Vec::new();
    for case in &all {
        for constant in [false, true] {
            let mut own = String::new();
            let _ = write!(own, "f{}", found.len());
            found.extend(Writer { case, constant, params: Vec::new() }.function(&own));
        }
    }
    found
}

fn all_operators() -> Tally {
    let mut tally = Tally::default();
    let skipped = |operator: &str| NOT_COMPARED.iter().any(|(known, _)| *known == operator);
    for (operator, cases) in cases().iter().filter(|(operator, _)| !skipped(operator)) {
        for functions in functions(operator, cases).chunks(FUNCTIONS) {
            compare(&module(functions), &mut tally);
        }
    }
    tally
}

#[test]
#[ignore = "sweep: .ci/full"]
fn default_pipeline_on_every_operator_keeps_values() {
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(all_operators).expect("a thread");
    let Tally { same, not_run, wrong } = worker.join().expect("every operator is tried");
    println!("{same} functions agree, {} are not run", not_run.values().sum::<usize>());
    not_run.iter().for_each(|(why, count)| println!("    {count} not run: {why}"));
    let shown: Vec<&str> = wrong.iter().take(8).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), shown.join("\n"));
    assert!(same > 1500, "{same} agree");
}
