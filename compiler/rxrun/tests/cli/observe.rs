//! Tests of `--values` and `--profile`.

use rx_tensor::{Scalar, Tensor, npz};
use serde_json::{Value, json};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A convolution and a relu, of which one channel is kept.
const CONV: &str = r#"from tvm.script import ir as I
from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 1, 3, 3), "float32"), w: R.Tensor((2, 1, 2, 2), "float32")):
        with R.dataflow():
            lv = R.nn.conv2d(x, w)
            漢 = R.nn.relu(lv); parts = R.split(漢, 2, axis=1)
            gv = R.negative(R.add(parts[1], parts[1]))
            R.output(gv)
        return gv
"#;

struct Folder(TempDir);

impl Folder {
    /// Creates a folder with the program and its inputs.
    fn new(program: &str, inputs: &[(&str, &Tensor)]) -> Folder {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("net.rx"), program).expect("written");
        npz::write(&folder.path().join("in.npz"), inputs).expect("written");
        Folder(folder)
    }

    fn conv() -> Folder {
        let x = floats(&[1, 1, 3, 3], &[1.0, -2.0, 3.0, 0.0, 4.0, -1.0, 2.0, 1.0, -3.0]);
        let w = floats(&[2, 1, 2, 2], &[1.0, 0.0, 0.0, -1.0, 0.5, 0.5, 0.5, 0.5]);
        Folder::new(CONV, &[("x", &x), ("w", &w)])
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxrun"));
        command.current_dir(self.0.path()).args(["net.rx", "--inputs", "in.npz"]).args(args);
        command.output().expect("it starts")
    }

    /// Runs the program, which must succeed, and returns the JSON events.
    #[track_caller]
    fn events(&self, args: &[&str]) -> Vec<Value> {
        let run = self.run(&[&["--format", "json"], args].concat());
        assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stdout));
        events(&run)
    }
}

fn events(run: &Output) -> Vec<Value> {
    let lines = String::from_utf8_lossy(&run.stdout).into_owned();
    lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

fn floats(shape: &[i64], values: &[f32]) -> Tensor {
    Tensor::from_f32s(shape, values).expect("a tensor")
}

fn of<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

/// The name, line, and range of values of each event.
fn reported(values: &[&Value]) -> Vec<(String, u64, [f64; 3])> {
    let number = |value: &Value, field: &str| value[field].as_f64().unwrap_or(f64::NAN);
    let one = |value: &&Value| {
        let name = value["name"].as_str().expect("a name").to_owned();
        let line = value["line"].as_u64().expect("a line");
        (name, line, ["min", "mean", "max"].map(|field| number(value, field)))
    };
    values.iter().map(one).collect()
}

fn devices() -> Vec<&'static str> {
    match rx_cuda::simulator::compiler() {
        Ok(_) => vec!["cpu", "interp", "cuda-sim"],
        Err(missing) => {
            println!("skipped: cuda-sim: {missing}");
            vec!["cpu", "interp"]
        }
    }
}

/// The expected numbers are exact: NumPy computes the same.
#[test]
fn observed_values_equal_numpys() {
    let folder = Folder::conv();
    for device in devices() {
        let events = folder.events(&["--values", "--device", device]);
        let values = of(&events, "value");
        let wanted = [
            ("lv", 9, [-3.0, 1.1875, 7.0]),
            ("漢", 10, [0.0, 1.8125, 7.0]),
            ("parts.0", 10, [0.0, 1.75, 7.0]),
            ("parts.1", 10, [0.5, 1.875, 3.5]),
            ("gv", 11, [-7.0, -3.75, -1.0]),
        ];
        assert_eq!(reported(&values), wanted.map(|(name, line, range)| (name.to_owned(), line, range)), "{device}");
        assert_eq!((&values[0]["dtype"], &values[0]["shape"]), (&json!("float32"), &json!([1, 2, 2, 2])));
        assert_eq!(
            (&values[0]["function"], &values[0]["text"], &values[0]["nan"]),
            (&json!("main"), &Value::Null, &json!(0))
        );
        let place = |value: &Value| ["column", "end_line", "end_column"].map(|field| value[field].as_u64());
        assert_eq!(place(values[1]), [Some(13), Some(10), Some(14)]);
        // The time of a statement is reported once.
        let timed: Vec<bool> = values.iter().map(|value| value["seconds"].is_f64()).collect();
        assert_eq!(timed, [true, true, true, false, true]);
        // A normal run gives the same output.
        for field in ["dtype", "shape", "min", "mean", "max", "nan"] {
            assert_eq!(values[4][field], of(&events, "output")[0][field], "{device}: {field}");
        }
    }
}

#[test]
fn kernels_are_reported_with_their_statements() {
    let folder = Folder::conv();
    for device in devices() {
        let events = folder.events(&["--profile", "--repeat", "3", "--device", device]);
        let kernels = of(&events, "kernel");
        let mut lines = Vec::new();
        for kernel in &kernels {
            assert_eq!(kernel["calls"], 1, "of one run: {kernel}");
            let places = kernel["places"].as_array().expect("a list");
            assert!(!places.is_empty(), "{kernel}");
            lines.extend(places.iter().filter_map(|place| place["line"].as_u64()));
        }
        let seconds: Vec<f64> = kernels.iter().filter_map(|kernel| kernel["seconds"].as_f64()).collect();
        assert!(seconds.len() == kernels.len() && seconds.is_sorted_by(|a, b| a >= b), "{seconds:?}");
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines, [9, 10, 11], "{device}");
        let kinds: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
        let position = |kind: &str| kinds.iter().position(|known| *known == kind);
        assert!(position("output") < position("observing") && position("observing") < position("kernel"), "{kinds:?}");
        assert_eq!(of(&events, "ran")[0]["seconds"].as_array().map(Vec::len), Some(3));
    }
}

/// A product of `n` rows with a matrix, and a sum.
const PRODUCT: &str = r#"from tvm.script import ir as I
from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            lv = R.matmul(x, w)
            gv = R.sum(lv, axis=[0])
            R.output(gv)
        return gv
"#;

#[test]
fn kernels_are_reported_with_operations_and_bytes() {
    let folder = Folder::new(PRODUCT, &[]);
    for device in ["cpu", "interp"] {
        let events = folder.events(&["--profile", "--dim", "n=3", "--device", device]);
        let work = |line: u64| {
            let kernels = of(&events, "kernel");
            let kernel =
                kernels.iter().find(|kernel| kernel["places"][0]["line"] == line).expect("a kernel of the line");
            (kernel["operations"].as_u64(), kernel["bytes"].as_u64())
        };
        // One multiplication and one addition for each of 3 · 8 · 4 products; 4-byte floats in 3 · 8, 8 · 4 and 3 · 4
        // elements.
        assert_eq!(work(10), (Some(2 * 3 * 8 * 4), Some(4 * (3 * 8 + 8 * 4 + 3 * 4))), "{device}");
        assert_eq!(work(11), (Some(3 * 4), Some(4 * (3 * 4 + 4))), "{device}");
    }
}

#[test]
fn a_trace_has_every_call_in_order() {
    let folder = Folder::new(PRODUCT, &[]);
    let run = folder.run(&["--trace", "trace.json", "--dim", "n=3", "--device", "cpu", "--repeat", "2"]);
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let text = std::fs::read_to_string(folder.0.path().join("trace.json")).expect("a trace");
    let trace: Value = serde_json::from_str(&text).expect("an object");
    let events = trace["traceEvents"].as_array().expect("a list");
    let calls: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
    let lines: Vec<&Value> = calls.iter().map(|call| &call["args"]["lines"]).collect();
    assert_eq!(lines, [&json!([10]), &json!([11])], "of one run: {trace}");
    let end = |call: &Value| call["ts"].as_f64().zip(call["dur"].as_f64()).map(|(start, time)| start + time);
    assert!(end(calls[0]) <= end(calls[1]) && calls[1]["ts"].as_f64() >= end(calls[0]), "{trace}");

    let run = folder.run(&["--trace", "no/such/folder/trace.json", "--dim", "n=3"]);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.code() == Some(2) && said.contains("no/such/folder/trace.json: no such file"), "{said}");
}

#[test]
fn text_output_is_tables() {
    let folder = Folder::conv();
    let run = folder.run(&["--values", "--profile", "--profile", "--device", "interp"]);
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let starts = |start: &str| text.lines().filter(|line| line.trim_start().starts_with(start)).count();
    assert_eq!((starts("kernel  "), starts("conv2d  "), starts("line  name ")), (1, 1, 1), "{text}");
    let row = text.lines().find(|line| line.contains("parts.1")).expect("a row");
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells, ["10", "parts.1", "float32", "(1, 1, 2, 2)", "0.500000", "1.875000", "3.500000", "0"]);
}

#[test]
fn calls_branches_and_recursion_are_seen() {
    let program = r#"from tvm.script import ir as I
from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(i: R.Tensor((), "int64"), x: R.Tensor(("n", 2), "float32")):
        cls = Module
        n = T.int64()
        size = R.shape([n, 2])
        _ = R.add(x, x)
        @R.function
        def moved(y: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
            z = R.add(x, y)
            return z
        out = moved(x)
        end = cls.count(i)
        return out, end

    @R.function
    def count(i: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        more = R.less(i, R.const(3, "int64"))
        if more:
            one = R.const(1, "int64")
            after = R.add(i, one)
            r = cls.count(after)
        else:
            r = i
        return r
"#;
    let start = Tensor::from_scalar(rx_base::DType::INT64, Scalar::Int(0)).expect("a tensor");
    let folder = Folder::new(program, &[("i", &start), ("x", &floats(&[1, 2], &[1.0, 2.0]))]);
    for device in ["cpu", "interp"] {
        let events = folder.events(&["--values", "--device", device]);
        let values = of(&events, "value");
        let seen: Vec<(&str, u64, f64)> = values
            .iter()
            .map(|value| {
                let name = value["name"].as_str().expect("a name");
                (name, value["line"].as_u64().expect("a line"), value["max"].as_f64().unwrap_or(-1.0))
            })
            .collect();
        let wanted = [
            ("size", 10, -1.0),
            ("z", 14, 4.0),
            ("out", 16, 4.0),
            ("end", 17, 3.0),
            // In the last iteration 3 is not less than 3, so the sum keeps its value of the iteration before.
            ("more", 23, 0.0),
            ("one", 25, 1.0),
            ("after", 26, 3.0),
            ("r", 27, 3.0),
            ("r", 29, 3.0),
        ];
        assert_eq!(seen, wanted, "{device}");
        assert_eq!((&values[0]["text"], &values[0]["dtype"]), (&json!("R.shape([1, 2])"), &Value::Null));
        assert_eq!(
            (&values[3]["function"], &values[3]["seconds"]),
            (&json!("main"), &Value::Null),
            "a call has no kernel"
        );
        let kernels = folder.events(&["--profile", "--device", device]);
        let less = of(&kernels, "kernel").into_iter().find(|kernel| kernel["name"] == "less").cloned();
        assert_eq!(less.map(|kernel| kernel["calls"].clone()), Some(json!(4)));
    }
}

#[test]
fn a_comparison_that_fails_is_observed_too_and_still_fails() {
    let folder = Folder::conv();
    npz::write(&folder.0.path().join("wrong.npz"), &[("out0", &floats(&[1, 1, 2, 2], &[0.0; 4]))]).expect("written");
    let run = folder.run(&["--format", "json", "--check", "wrong.npz", "--values", "--output", "out.npz"]);
    assert_eq!(run.status.code(), Some(1));
    let events = events(&run);
    assert_eq!((of(&events, "compared").len(), of(&events, "value").len()), (1, 5));
    assert_eq!(npz::read(&folder.0.path().join("out.npz")).map(|out| out.len()).ok(), Some(1));
}

#[test]
fn failure_of_an_observed_run_is_a_remark() {
    // In a fused run an unused value is not computed; in an observed run it is.
    let program = r#"@R.function
def main(table: R.Tensor((4, 2), "float32"), indices: R.Tensor((1,), "int64")):
    y = R.nn.relu(table)
    rows = R.take(table, indices, axis=0)
    return y
"#;
    let (table, indices) = (floats(&[4, 2], &[-1.0; 8]), Tensor::from_i64s(&[1], [7]).expect("a tensor"));
    let folder = Folder::new(program, &[("table", &table), ("indices", &indices)]);
    let events = folder.events(&["--values", "--profile", "--device", "cpu"]);
    let remark = of(&events, "remark")[0];
    assert_eq!((&remark["what"], &remark["line"], &remark["column"]), (&json!("values"), &json!(4), &json!(5)));
    assert!(remark["message"].as_str().is_some_and(|message| message.contains("index 7 is out of range")), "{remark}");
    assert_eq!((of(&events, "output").len(), of(&events, "kernel").len()), (1, 1));
    assert_eq!(reported(&of(&events, "value")), [("y".to_owned(), 3, [0.0; 3])]);
    let run = folder.run(&["--values", "--device", "cpu"]);
    assert_eq!(run.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&run.stderr).contains("rxrun: not all values: net.rx:4:5: take: index 7"));
}
