//! Tests of Jupyter notebooks: places, suppression and fixes in cells.

use crate::harness::{command, folder, rxcheck, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::Stdio;

/// A notebook whose third cell has a shape without its comma, which has a safe fix, and a misspelt operator.
const NOTEBOOK: &str = r##"{
 "cells": [
  {"cell_type": "markdown", "metadata": {}, "source": ["def main(:"]},
  {
   "cell_type": "code", "execution_count": 3, "metadata": {"tags": ["é"]}, "outputs": [{"text": "\u00e9"}],
   "source": [
    "%matplotlib inline\n",
    "!pip list (\n",
    "from tvm.script import ir as I, relax as R\n",
    "R?"
   ]
  },
  {
   "cell_type": "code",
   "outputs": [],
   "source": [
    "@R.function\n",
    "def main(x: R.Tensor((4), \"float32\")):\n",
    "    y = R.nn.rellu(x)\n",
    "    return y"
   ]
  },
  {"cell_type": "code", "source": "%%bash\necho (\n"},
  {"cell_type": "code", "source": "main.show()"}
 ],
 "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}

"##;

const PLACE: &str = "net.ipynb:cell 3, line 3, column 9: ";

#[test]
fn notebook_places_are_cells_and_lines_in_every_format() {
    let folder = folder(&[("net.ipynb", NOTEBOOK)]);
    let said = |format: &str| stdout(&rxcheck(&folder, &["--format", format, "net.ipynb"])).to_owned();
    let concise = said("concise");
    assert!(concise.contains(&format!("{PLACE}error[RX0202]")), "{concise}");
    assert!(concise.lines().all(|line| line.starts_with("net.ipynb:cell 3, line ")), "{concise}");
    let text = said("text");
    assert!(text.contains("[ net.ipynb:cell 3, line 3, column 9 ]") && text.contains("3 │     y = R.nn"), "{text}");
    let github = said("github");
    assert!(github.contains("::error file=net.ipynb,title=RX0202 unknown-operator::cell 3, line 3: "), "{github}");
    let gitlab = said("gitlab");
    assert!(gitlab.contains("RX0202: cell 3, line 3: "), "{gitlab}");
    let junit = said("junit");
    assert!(junit.contains(PLACE) && !junit.contains(" line=\""), "{junit}");
    let sarif = said("sarif");
    assert!(sarif.contains(r#""fullyQualifiedName":"cell 3, line 3""#) && !sarif.contains("startLine"), "{sarif}");
}

#[test]
fn notebook_json_has_cells() {
    let folder = folder(&[("net.ipynb", NOTEBOOK)]);
    let output = rxcheck(&folder, &["--format", "json", "net.ipynb"]);
    let objects = stdout(&output).lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let found: Vec<Value> = objects.filter(|object| object["code"] == "RX0202").collect();
    let place = |object: &Value| [&object["cell"], &object["line"], &object["column"]].map(Value::as_u64);
    assert_eq!(found.len(), 1);
    assert_eq!(place(&found[0]), [Some(3), Some(3), Some(9)]);
    assert_eq!(found[0]["fixes"][0]["edits"][0]["cell"], 3);
    let output = rxcheck(&folder, &["--types", "--format", "json", "net.ipynb"]);
    assert!(stdout(&output).contains(r#""cell":3,"line":2,"#), "{output:?}");
    assert!(
        stdout(&rxcheck(&folder, &["--types", "net.ipynb"])).contains("net.ipynb:cell 3, line 2, column 10: param")
    );
}

#[test]
fn folders_include_notebooks_with_tvmscript() {
    let folder = folder(&[
        ("nets/net.ipynb", NOTEBOOK),
        ("nets/.ipynb_checkpoints/net.ipynb", NOTEBOOK),
        ("nets/other.ipynb", "{\"worksheets\": []}"),
        ("nets/rust.ipynb", &NOTEBOOK.replace("\"python\"", "\"rust\"")),
    ]);
    let output = rxcheck(&folder, &["--select", "RX0202", "--format", "concise", "nets"]);
    assert!(stdout(&output).contains("net.ipynb:cell 3, line 3, column 9: error[RX0202]"), "{output:?}");
    assert!(stderr(&output).contains("in 1 file (1 checked)"), "{output:?}");
    let output = rxcheck(&folder, &["nets/other.ipynb"]);
    assert!(stderr(&output).contains("rxcheck: nets/other.ipynb: requires a notebook with `cells` of format 4"));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn notebook_suppression_applies_in_its_cell() {
    let fixed = NOTEBOOK.replace("(4)", "(4,)");
    let ignored = fixed.replace("rellu(x)\\n", "rellu(x)  # rx: ignore[RX0202]\\n");
    let file = fixed.replace("%matplotlib inline\\n", "# rx: ignore-file[RX0202]\\n");
    let folder = folder(&[("line.ipynb", &ignored), ("file.ipynb", &file)]);
    for name in ["line.ipynb", "file.ipynb"] {
        let output = rxcheck(&folder, &[name]);
        assert_eq!((stdout(&output), output.status.code()), ("", Some(0)));
    }
}

#[test]
fn fix_changes_nothing_of_a_notebook_but_the_source() {
    let folder = folder(&[("net.ipynb", NOTEBOOK)]);
    let fixed = NOTEBOOK.replace("(4)", "(4,)");
    let output = rxcheck(&folder, &["--diff", "net.ipynb"]);
    let diff = stdout(&output);
    assert!(diff.contains("-    \"def main(x: R.Tensor((4), \\\"float32\\\")):\\n\",\n"), "{diff}");
    assert!(diff.contains("+    \"def main(x: R.Tensor((4,), \\\"float32\\\")):\\n\",\n"), "{diff}");
    assert_eq!(fs::read_to_string(folder.path().join("net.ipynb")).ok().as_deref(), Some(NOTEBOOK));
    let output = rxcheck(&folder, &["--fix", "net.ipynb"]);
    assert!(stderr(&output).starts_with("fixed 1 mistake in 1 file"), "{output:?}");
    assert_eq!(fs::read_to_string(folder.path().join("net.ipynb")).ok(), Some(fixed));
}

#[test]
fn fix_of_a_notebook_on_standard_input_prints_the_notebook() {
    let folder = folder(&[]);
    let mut command = command(folder.path(), &["--fix", "--stdin-name", "net.ipynb", "-"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("rxcheck runs");
    child.stdin.take().expect("a pipe").write_all(NOTEBOOK.as_bytes()).expect("a reader");
    let output = child.wait_with_output().expect("rxcheck ends");
    assert_eq!(stdout(&output), NOTEBOOK.replace("(4)", "(4,)"));
    assert!(stderr(&output).contains("net.ipynb:cell 3, line 3, column 9"), "{output:?}");
}

#[test]
fn why_takes_and_shows_cells() {
    let folder = folder(&[("net.ipynb", &NOTEBOOK.replace("(4)", "(4,)").replace("rellu", "relu"))]);
    let output = rxcheck(&folder, &["--format", "concise", "--why", "net.ipynb:cell 3, line 3, column 5"]);
    assert!(stdout(&output).starts_with("net.ipynb:cell 3, line 3, column 5: "), "{output:?}");
    for wrong in ["net.ipynb:3", "net.ipynb:cell 1, line 1", "net.ipynb:cell 3, line 9"] {
        let output = rxcheck(&folder, &["--why", wrong]);
        assert!(stderr(&output).contains("requires a line of a code cell of Python"), "{output:?}");
    }
    let output = rxcheck(&folder, &["--why", ":cell 3, line 3"]);
    assert!(stderr(&output).contains("is no FILE:LINE"), "{output:?}");
}

#[test]
fn string_without_end_hides_no_other_cells() {
    let notebook = NOTEBOOK.replace("R?\"", "x = '''abc\"");
    let inside = NOTEBOOK.replace("    y = R.nn.rellu(x)\\n", "    '''Why?\\n");
    let folder = folder(&[("net.ipynb", &notebook), ("inside.ipynb", &inside)]);
    let output = rxcheck(&folder, &["--format", "concise", "net.ipynb"]);
    assert!(stdout(&output).contains(&format!("{PLACE}error[RX0202]")), "{output:?}");
    let output = rxcheck(&folder, &["--format", "concise", "inside.ipynb"]);
    assert!(stdout(&output).contains("inside.ipynb:cell 3, line 3, column 5: error[RX0105]"), "{output:?}");
}

#[test]
fn sequence_shows_cells() {
    let good = NOTEBOOK.replace("(4)", "(4,)").replace("rellu", "relu");
    let changed = NOTEBOOK.replace("(4)", "(5,)");
    let folder = folder(&[("p1.ipynb", &good), ("p2.ipynb", &changed)]);
    let output = rxcheck(&folder, &["--sequence", "p1.ipynb", "p2.ipynb"]);
    assert!(stdout(&output).contains("[ p2.ipynb:cell 3, line 3, column 9 ]"), "{output:?}");
    let output = rxcheck(&folder, &["--sequence", "--format", "json", "p1.ipynb", "p2.ipynb"]);
    let phases: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let places = [&phases[1]["signatures"][0], &phases[1]["new_errors"][0]["diagnostic"]];
    let places = places.map(|object| (object["cell"].as_u64(), object["line"].as_u64()));
    assert_eq!(places, [(Some(3), Some(2)), (Some(3), Some(3))]);
}
