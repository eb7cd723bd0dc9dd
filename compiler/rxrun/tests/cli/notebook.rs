//! Tests of Jupyter notebooks: the cells are one program, and places name the cell.

use super::{DEVICES, Folder, floats, ints, table};
use rx_tensor::npz;
use serde_json::{Value, json};

/// A notebook whose third cell is a module that takes rows of a table and applies relu.
const NOTEBOOK: &str = r#"{
 "cells": [
  {"cell_type": "markdown", "metadata": {}, "source": ["def main(:"]},
  {"cell_type": "code", "metadata": {}, "outputs": [], "source": [
    "%matplotlib inline\n",
    "from tvm.script import ir as I, relax as R"
  ]},
  {"cell_type": "code", "metadata": {}, "outputs": [], "source": [
    "@I.ir_module\n",
    "class Module:\n",
    "    @R.function\n",
    "    def main(table: R.Tensor((4, 2), \"float32\"), indices: R.Tensor((\"n\",), \"int64\")):\n",
    "        rows = R.take(table, indices, axis=0)\n",
    "        y = R.nn.relu(rows)\n",
    "        return y, rows"
  ]},
  {"cell_type": "code", "metadata": {}, "outputs": [], "source": "%time Module.show()\nModule.show()"}
 ],
 "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("net.ipynb", NOTEBOOK);
    folder.arrays("in.npz", &[("table", &table()), ("indices", &ints(&[3, 1]))]);
    folder.arrays("bad.npz", &[("table", &table()), ("indices", &ints(&[0, 7]))]);
    folder
}

/// The cell and line of a JSON object.
fn place(object: &Value) -> [Option<u64>; 2] {
    ["cell", "line"].map(|field| object[field].as_u64())
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

#[test]
fn cells_of_a_notebook_run_as_one_program() {
    let folder = folder();
    for device in DEVICES {
        folder.run(&["net.ipynb", "--inputs", "in.npz", "--output", "out.npz", "--device", device]).succeeds();
        let out = npz::read(&folder.path("out.npz")).expect("written");
        assert_eq!(out[0].1.as_slice::<f32>(), Some(&[6.0, 0.0, 0.0, 3.0][..]));
        folder.run(&["net.ipynb", "--inputs", "in.npz", "--check", "out.npz", "--device", device]).succeeds();
    }
    folder.run(&["net.ipynb", "--entry", "other"]).fails(2, "no Relax function `other`; it has `main`");
    assert_eq!(std::fs::read_to_string(folder.path("net.ipynb")).ok().as_deref(), Some(NOTEBOOK));
}

#[test]
fn errors_in_a_notebook_name_cell_and_line() {
    let folder = folder();
    folder.write("wrong.ipynb", NOTEBOOK.replace("relu(rows)", "relu(row)"));
    let run = folder.run(&["wrong.ipynb", "--dim", "n=2"]);
    assert!(run.stderr().contains("wrong.ipynb:cell 3, line 6, column "), "{}", run.stderr());
    run.fails(1, "`row` is not defined");
    let run = folder.run(&["net.ipynb", "--inputs", "bad.npz", "--device", "interp"]);
    assert!(run.stderr().contains("net.ipynb:cell 3, line 5, column 9"), "{}", run.stderr());
    run.fails(1, "index 7 is out of range");
    let run = folder.run(&["net.ipynb", "--inputs", "bad.npz", "--device", "interp", "--format", "json"]);
    let events = events(&run.stdout());
    let last = events.last().expect("events");
    assert_eq!((&last["event"], place(last)), (&json!("run-failed"), [Some(3), Some(5)]));
    folder.arrays("rank.npz", &[("table", &floats(&[4], &[0.0; 4]))]);
    let run = folder.run(&["net.ipynb", "--dim", "n=2", "--inputs", "rank.npz"]);
    assert!(run.stderr().contains("net.ipynb:cell 3, line 4, column "), "{}", run.stderr());
    run.fails(2, "it must have 2 dims");
    folder.write("other.ipynb", "{\"worksheets\": []}");
    folder.run(&["other.ipynb"]).fails(2, "other.ipynb: requires a notebook with `cells` of format 4");
}

#[test]
fn observed_statements_of_a_notebook_name_cell_and_line() {
    let folder = folder();
    let observe = |args: &[&str]| {
        let args = [&["net.ipynb", "--inputs", "in.npz", "--device", "interp"], args].concat();
        folder.run(&args).succeeds().stdout()
    };
    for option in ["--values", "--profile"] {
        let text = observe(&[option]);
        assert!(text.contains("cell 3, line 5") && text.contains("cell 3, line 6"), "{text}");
    }
    let values = events(&observe(&["--values", "--format", "json"]));
    let values: Vec<_> = values.iter().filter(|event| event["event"] == "value").map(place).collect();
    assert_eq!(values, [[Some(3), Some(5)], [Some(3), Some(6)]]);
    observe(&["--trace", "trace.json"]);
    let trace = std::fs::read_to_string(folder.path("trace.json")).expect("written");
    assert!(trace.contains("\"cell 3, line 5\""), "{trace}");
}

#[test]
fn stages_of_a_notebook_are_those_of_its_module() {
    let folder = folder();
    let relax = folder.run(&["net.ipynb", "--emit", "relax"]).succeeds().stdout();
    assert!(relax.contains("def main(") && !relax.contains("show"), "{relax}");
    assert!(!relax.contains(['\u{1c}', '\u{1d}']), "{relax}");
    let stage = folder.run(&["net.ipynb", "--emit", "tir", "--entry", "main", "--format", "json"]).succeeds();
    let events = events(&stage.stdout());
    let places = events.last().expect("events")["parts"][0]["places"].as_array().expect("places");
    assert_eq!(place(&places[0])[0], Some(3));
    let passes = ["net.ipynb", "--emit", "passes", "--passes", "DeadCodeElimination"];
    assert!(folder.run(&passes).succeeds().stdout().contains("def main("));
}

#[test]
fn comments_for_cells_and_commands_are_not_printed() {
    let folder = Folder::new();
    let function = |name: &str| format!("@R.function\ndef {name}(x: R.Tensor((2,), \"float32\")):\n    return x");
    let cells = [
        "from tvm.script import relax as R".to_owned(),
        function("main"),
        format!("%matplotlib inline\n{}", function("other")),
    ];
    let cells = cells.map(|source| json!({ "cell_type": "code", "source": source }));
    folder.write("net.ipynb", json!({ "nbformat": 4, "cells": cells }).to_string());
    let relax = folder.run(&["net.ipynb", "--emit", "relax"]).succeeds().stdout();
    assert!(relax.contains("def main(") && relax.contains("def other("), "{relax}");
    assert!(!relax.contains(['\u{1c}', '\u{1d}']) && !relax.contains("plotlib"), "{relax}");
}
