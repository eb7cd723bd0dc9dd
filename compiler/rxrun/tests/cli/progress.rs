//! Tests of the progress reports of a run.

use super::Folder;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// A thousand matrix products, which take the interpreter too long to wait for.
const LONG: &str = r#"@I.ir_module
class Module:
    @R.function(private=True)
    def one(x: R.Tensor((128, 128), "float32")) -> R.Tensor((128, 128), "float32"):
        y = R.matmul(x, x)
        return y

    @R.function(private=True)
    def ten(x: R.Tensor((128, 128), "float32")) -> R.Tensor((128, 128), "float32"):
        cls = Module
CALLS_one
    @R.function(private=True)
    def hundred(x: R.Tensor((128, 128), "float32")) -> R.Tensor((128, 128), "float32"):
        cls = Module
CALLS_ten
    @R.function
    def main(x: R.Tensor((128, 128), "float32")) -> R.Tensor((128, 128), "float32"):
        cls = Module
CALLS_hundred
"#;

/// Ten calls of a function, each with the result of the previous one.
fn calls(function: &str) -> String {
    let call = |at: usize| match at {
        0 => format!("        y0 = cls.{function}(x)\n"),
        at => format!("        y{at} = cls.{function}(y{})\n", at - 1),
    };
    format!("{}        return y9\n", (0..10).map(call).collect::<String>())
}

#[test]
fn long_run_reports_how_many_kernels_are_done() {
    let text = ["one", "ten", "hundred"]
        .iter()
        .fold(LONG.to_owned(), |text, function| text.replace(&format!("CALLS_{function}\n"), &calls(function)));
    let folder = Folder::new();
    folder.write("long.rx", &text);
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxrun"));
    command.current_dir(folder.path(".")).args(["long.rx", "--device", "interp", "--format", "json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let events = said.map(|line| serde_json::from_str::<Value>(&line.expect("text")).expect("an event"));
    let running: Vec<Value> = events.filter(|event| event["event"] == "running").take(2).collect();
    child.kill().expect("it ends");
    child.wait().expect("it ended");
    let [first, second] = &running[..] else { panic!("it goes on without a word: {running:?}") };
    assert_eq!((&first["what"], &first["run"], &first["total"]), (&"run".into(), &1.into(), &1000.into()));
    let done = [first, second].map(|event| event["done"].as_u64().expect("a number"));
    assert!(0 < done[0] && done[0] < done[1] && done[1] <= 1000, "{done:?}");
}
