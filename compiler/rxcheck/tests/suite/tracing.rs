//! Tests of `--why`, `--stats` and `--sequence` on difficult texts: positions without a value, recursion, long chains.

use std::fmt::Write;
use std::fs;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Functions that call one another in a cycle, one that calls itself, and a closure that does.
const CIRCLES: &str = "\
@I.ir_module
class Module:
    @R.function
    def f(x: R.Tensor((\"n\", 4), \"float32\")) -> R.Tensor((\"n\", 4), \"float32\"):
        y = Module.g(x)
        return y

    @R.function
    def g(x: R.Tensor((\"n\", 4), \"float32\")) -> R.Tensor((\"n\", 4), \"float32\"):
        y = Module.f(x)
        return y

    @R.function
    def main(x: R.Tensor((3, 4), \"float32\")):
        @R.function
        def inner(z: R.Tensor((3, 4), \"float32\")) -> R.Tensor((3, 4), \"float32\"):
            w = inner(z)
            return w
        a = inner(x)
        b = Module.f(a)
        return b
";

fn rxcheck(text: &str, arguments: &[&str]) -> Output {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("a.rx"), text).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxcheck"));
    command.current_dir(folder.path()).args(arguments).output().expect("rxcheck runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn positions_that_are_nowhere_have_no_answer() {
    for position in ["a.rx:1", "a.rx:2:3", "a.rx:99999", "a.rx:99999:1", "a.rx:3:99999", "a.rx:7", "b.rx:1"] {
        let output = rxcheck(CIRCLES, &["--why", position]);
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(2), ""), "{position}");
    }
    for position in ["a.rx", "a.rx:0", "a.rx:x", ":1", "a.rx:4294967296"] {
        let output = rxcheck(CIRCLES, &["--why", position]);
        assert!(output.status.code() == Some(2) && stdout(&output).is_empty(), "{position}");
    }
    for part in ["7", "-3", "0.1", "rank.0"] {
        let output = rxcheck(CIRCLES, &["--why", "a.rx:19", "--dim", part]);
        assert!(output.status.code() == Some(2) && stdout(&output).is_empty(), "{part}");
    }
}

#[test]
fn every_position_has_an_answer_or_none_and_none_fails() {
    for (line, text) in CIRCLES.lines().enumerate() {
        for column in (0..=text.len() + 1).step_by(3) {
            let output = rxcheck(CIRCLES, &["--why", &format!("a.rx:{}:{}", line + 1, column + 1)]);
            assert!(matches!(output.status.code(), Some(0 | 2)), "{}:{}", line + 1, column + 1);
        }
    }
}

#[test]
fn circles_end_at_a_declared_type() {
    let output = rxcheck(CIRCLES, &["--why", "a.rx:20", "--dim", "1", "--format", "concise"]);
    let wanted = "\
a.rx:20:9: axis 1 of `b` is 4
a.rx:20:13: `f` returns it
a.rx:5:13: `g` returns it
a.rx:4:63: `f` is declared to return it
";
    assert_eq!(stdout(&output), wanted);
    let output = rxcheck(CIRCLES, &["--stats", "a.rx"]);
    assert!(stdout(&output).contains("1 call not counted"), "{}", stdout(&output));
}

#[test]
fn a_chain_of_a_hundred_thousand_bindings_is_followed_to_its_end() {
    let count = 100_000;
    let mut text =
        "@R.function\ndef main(x: R.Tensor((1, 64), \"float32\")):\n    with R.dataflow():\n        v0 = R.exp(x)\n"
            .to_owned();
    for at in 1..count {
        writeln!(text, "        v{at} = R.nn.relu(v{})", at - 1).expect("memory");
    }
    writeln!(text, "        R.output(v{})\n    return v{}", count - 1, count - 1).expect("memory");
    let position = format!("a.rx:{}", count + 5);
    let output = rxcheck(&text, &["--why", &position, "--dim", "-1"]);
    let report = stdout(&output);
    assert!(report.contains("lines 100003 to 4: 100000 steps change nothing (R.nn.relu, R.exp)"), "{report}");
    assert!(report.contains("line 2: parameter `x: R.Tensor((1, 64), dtype=\"float32\")` of `main`"), "{report}");
    let output = rxcheck(&text, &["--stats", "--format", "json", "a.rx"]);
    let stats: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("an object");
    assert_eq!(stats["operations"]["expression"], "6400000");
    // Two values of 64 floats are live at the same time.
    assert_eq!(stats["peak"]["bytes"]["upper"], 512);
}

#[test]
fn peak_memory_of_an_if_counts_one_branch() {
    let peak = |then: &str, otherwise: &str| {
        let text = format!(
            "\
@R.function
def main(x: R.Tensor((64,), \"float32\"), c: R.Tensor((), \"bool\")):
    if c:
        y = {then}
    else:
        a = {otherwise}
        y = R.exp(a)
    z = R.exp(y)
    return z
"
        );
        let output = rxcheck(&text, &["--stats", "--format", "json", "a.rx"]);
        let stats: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("an object");
        stats["peak"]["bytes"]["upper"].clone()
    };
    // Two values of 64 floats, also in the second branch, in which the value of the first one is not allocated.
    assert_eq!(peak("R.exp(x)", "R.nn.relu(x)"), 512);
    // The parameter is not counted, and the value of the second branch is live with `z`.
    assert_eq!(peak("x", "x"), 512);
}

#[test]
fn dtype_of_a_call_tir_leads_to_the_buffer() {
    let text = "\
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def cast(A: T.Buffer((4,), \"float32\"), B: T.Buffer((4,), \"float16\")):
        for i in range(4):
            with T.sblock(\"cast\"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.Cast(\"float16\", A[vi])

    @R.function
    def main(x: R.Tensor((4,), \"float32\")):
        cls = Module
        y = R.call_tir(cls.cast, (x,), out_ty=R.Tensor((4,), \"float16\"))
        z = R.astype(y, dtype=\"float32\")
        return z
";
    let output = rxcheck(text, &["--why", "a.rx:13", "--dim", "dtype", "--format", "json"]);
    let report = stdout(&output);
    assert!(report.contains("buffer `B` of prim_func `cast` has dtype float16"), "{report}");
    let output = rxcheck(text, &["--why", "a.rx:14", "--dim", "dtype", "--format", "concise"]);
    let wanted = "a.rx:14:9: the dtype of `z` is float32\na.rx:14:31: R.astype: the dtype is float32, from `dtype`\n";
    assert_eq!(stdout(&output), wanted);
}

#[test]
fn an_error_is_new_once_wherever_its_line_goes() {
    let folder = TempDir::new().expect("a temporary folder");
    let phase = |name: &str, blank: &str, call: &str| {
        let text = format!(
            "@R.function\ndef main(x: R.Tensor((4,), \"float32\")):{blank}\n    y = {call}\n    z = R.nn.rellu(y)\n    return z\n"
        );
        fs::write(folder.path().join(name), text).expect("a file");
    };
    phase("p1.rx", "", "R.exp(x)");
    phase("p2.rx", "\n\n    # moved", "R.exp(x)");
    phase("p10.rx", "", "R.expp(x)");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxcheck"));
    let arguments = ["--sequence", "--format", "json", "p10.rx", "p1.rx", "p2.rx"];
    let output = command.current_dir(folder.path()).args(arguments).output().expect("rxcheck runs");
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<serde_json::Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let first = &lines[1]["first_new_error"];
    assert_eq!((first["phase"].as_u64(), first["binding"].as_str()), (Some(1), Some("z")));
    assert_eq!((lines[2]["file"].as_str(), lines[2]["old_errors"].as_u64()), (Some("p2.rx"), Some(1)));
    assert_eq!(lines[2]["changed"], serde_json::json!([]), "a comment is no change");
    assert_eq!(lines[3]["new_errors"][0]["binding"], "y");
    assert_eq!(lines[3]["new_errors"].as_array().map(Vec::len), Some(1));
}

/// Runs `rxcheck --sequence --format json` over files `p1.rx`, `p2.rx`, … and returns its objects.
fn phases(texts: &[&str]) -> Vec<serde_json::Value> {
    let folder = TempDir::new().expect("a temporary folder");
    for (number, text) in (1..).zip(texts) {
        fs::write(folder.path().join(format!("p{number}.rx")), text).expect("a file");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxcheck"));
    let output = command.current_dir(folder.path()).args(["--sequence", "--format", "json", "."]).output();
    let output = output.expect("rxcheck runs");
    stdout(&output).lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// Returns a class with a function `main` that returns a call of an operator.
fn class(name: &str, call: &str) -> String {
    format!(
        "@I.ir_module\nclass {name}:\n    @R.function\n    def main(x: R.Tensor((4,), \"float32\")):\n        y = {call}\n        return y\n\n"
    )
}

#[test]
fn sequence_modules_that_share_names_are_compared_by_module() {
    let [exp, log, wrong] = ["R.exp(x)", "R.log(x)", "R.expp(x)"];
    let first = class("A", exp) + &class("B", log);
    let swapped = class("B", log) + &class("A", exp);
    let changed = class("A", exp) + &class("B", exp);
    let broken = class("A", wrong) + &class("B", wrong);
    let both = class("A", exp) + &class("A", wrong);
    let lines = phases(&[&first, &swapped, &changed, &broken, &both]);
    let empty = serde_json::json!([]);
    assert_eq!(lines[0]["functions"], 2);
    assert_eq!((&lines[1]["changed"], &lines[1]["appeared"]), (&empty, &empty), "the order of modules is no change");
    assert_eq!(lines[2]["changed"], serde_json::json!(["B.main"]));
    let functions = lines[3]["new_errors"].as_array().map(|errors| {
        errors.iter().map(|error| error["function"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(functions, Some(vec!["A.main".to_owned(), "B.main".to_owned()]));
    assert_eq!(lines[4]["first_new_error"]["function"], "A.main");
    assert_eq!(
        (&lines[5]["appeared"], &lines[5]["vanished"]),
        (&serde_json::json!(["A#2.main"]), &serde_json::json!(["B.main"]))
    );
}

#[test]
fn sequence_only_modules_of_files_are_compared_whatever_their_names() {
    let lines = phases(&[
        &class("A", "R.exp(x)"),
        &class("B", "R.log(x)"),
        &(class("B", "R.log(x)") + &class("C", "R.exp(x)")),
    ]);
    let (empty, main) = (serde_json::json!([]), serde_json::json!(["main"]));
    assert_eq!((&lines[1]["changed"], &lines[1]["appeared"]), (&main, &empty));
    assert_eq!((&lines[2]["changed"], &lines[2]["appeared"]), (&empty, &serde_json::json!(["C.main"])));
}
