//! Stages of a function in an editor, computed by the server itself, by the mock of `rxrun`, and by the real `rxrun`.

use crate::client::{Client, change};
use crate::run::{Bench, ENDINGS, TEXT, URI};
use serde_json::{Value, json};
use std::path::Path;

fn stage(arguments: Value) -> Value {
    json!({"command": "rx.stage", "arguments": arguments})
}

fn at(line: u32) -> Value {
    json!({"line": line, "character": 4})
}

impl Bench {
    fn stage(&mut self, arguments: Value) -> i64 {
        self.client.ask("workspace/executeCommand", stage(arguments))
    }
}

#[test]
fn a_stage_is_of_the_module_around_the_position() {
    let mut bench = Bench::plain("emit");
    let (head, class) = TEXT.split_once("@I.ir_module").expect("a module");
    let text = format!("{head}@I.ir_module{class}\n@I.ir_module{}", class.replace("Module", "Other"));
    bench.client.open(URI, 1, &text);
    let lines = text.lines().count() as u32;
    for (line, stage) in [(lines - 1, "ptx"), (lines - 1, "cpu")] {
        let id = bench.stage(json!([URI, at(line), stage]));
        let report = bench.running().report;
        let arguments = report["arguments"].as_array().expect("a list");
        assert!(arguments.contains(&json!("--module=Other")), "{arguments:?}");
        assert_eq!(bench.client.answer(id).expect("an answer")["module"], "Other");
    }
    bench.goes_on();
}

#[test]
fn function_at_a_position_is_shown_with_the_text_of_the_editor() {
    let mut bench = Bench::plain("emit");
    bench.client.open(URI, 1, TEXT);
    bench.client.change(URI, 2, json!([change((21, 8), (21, 13), "last")]));
    let id = bench.stage(json!([URI, at(22), "cpu"]));
    let report = bench.running().report;
    assert!(report["text"].as_str().is_some_and(|text| text.contains("def last(")), "{report}");
    let arguments: Vec<&str> =
        report["arguments"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert!(arguments.contains(&"--entry=last") && arguments.contains(&"--emit=cpu"), "{arguments:?}");
    let shown = bench.client.answer(id).expect("an answer");
    assert_eq!(
        (&shown["function"], &shown["stage"], &shown["language"]),
        (&json!("last"), &json!("cpu"), &json!("rx-cpu"))
    );
    // The text of a stage may be longer than any event of a run.
    assert_eq!(shown["text"].as_str().map(str::len), Some((3 << 20) + 1));
    let range = json!({"start": {"line": 22, "character": 8}, "end": {"line": 22, "character": 24}});
    assert_eq!(shown["parts"], json!([{"name": "relu", "lines": [0, 2], "ranges": [range]}]));
    assert_eq!(shown["message"], Value::Null);
    // Outside functions, and in documents that are not open, there is no stage.
    assert_eq!(bench.client.request("workspace/executeCommand", stage(json!([URI, at(0), "cpu"]))), Ok(Value::Null));
    // Passes show the whole module, at any position.
    let passes = bench.client.request("workspace/executeCommand", stage(json!([URI, at(0), "passes"])));
    assert_eq!(passes.expect("an answer")["function"], "copy");
    bench.client.open("untitled:empty", 1, "# nothing\n");
    let empty = stage(json!(["untitled:empty", at(0), "passes"]));
    assert_eq!(bench.client.request("workspace/executeCommand", empty), Ok(Value::Null));
    let other = stage(json!(["untitled:other", at(0), "cpu"]));
    assert_eq!(bench.client.request("workspace/executeCommand", other), Ok(Value::Null));
    for strange in [json!([]), json!([URI]), json!([URI, at(0)]), json!([URI, at(0), "relax"]), json!([URI, 3, "tir"])]
    {
        let id = bench.stage(strange);
        assert_eq!(bench.client.answer(id).expect_err("strange")["code"], -32602);
    }
    bench.goes_on();
}

#[test]
fn failure_of_the_child_is_the_message_of_the_answer() {
    for (behave, _, expected) in ENDINGS {
        let mut bench = Bench::plain(behave);
        bench.client.open(URI, 1, TEXT);
        let id = bench.stage(json!([URI, at(16), "ptx"]));
        bench.running();
        let shown = bench.client.answer(id).expect("an answer");
        let message = shown["message"].as_str().expect("a message");
        assert!(message.contains(expected) && message.len() < 2000, "{behave}: {message}");
        assert_eq!((&shown["text"], &shown["parts"]), (&Value::Null, &json!([])));
        bench.goes_on();
    }
    let mut client = Client::start(&[]);
    client.initialize_with(json!({}), json!({"run": {"program": "/no/such/rxrun"}}));
    client.open(URI, 1, TEXT);
    let shown = client.request("workspace/executeCommand", stage(json!([URI, at(16), "cpu"]))).expect("an answer");
    let message = shown["message"].as_str().expect("a message");
    assert!(message.starts_with("/no/such/rxrun cannot be started: "), "{message}");
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn a_newer_request_ends_an_older_one_and_no_run() {
    let mut bench = Bench::plain("hang");
    bench.client.open(URI, 1, TEXT);
    let run = bench.run(json!([URI, "main"]));
    let mut running = bench.running();
    let first = bench.stage(json!([URI, at(16), "ptx"]));
    let mut first_child = bench.running();
    let second = bench.stage(json!([URI, at(16), "cpu"]));
    let shown = bench.client.answer(first).expect("an answer");
    assert_eq!(shown["message"], "`main` was cancelled: another stage of this file started");
    first_child.is_gone();
    let mut second_child = bench.running();
    bench.client.notify("$/cancelRequest", json!({"id": second}));
    assert_eq!(bench.client.answer(second).expect_err("cancelled")["code"], -32800);
    second_child.is_gone();
    // The run continues until the client shuts the server down, and so does the child that shows a stage.
    let third = bench.stage(json!([URI, at(16), "cpu"]));
    let mut third_child = bench.running();
    assert_eq!(bench.client.request("shutdown", Value::Null), Ok(Value::Null));
    assert_eq!(bench.client.answer(run).expect("a result")["cancelled"], true);
    assert!(bench.client.answer(third).expect("an answer")["message"].is_string());
    running.is_gone();
    third_child.is_gone();
    bench.client.notify("exit", Value::Null);
    assert_eq!(bench.client.status(), Some(0));
}

/// Starts a server whose `rxrun` does not exist.
fn without_rxrun(arguments: &[&str]) -> Client {
    let mut client = Client::start(&[]);
    client.initialize_with(json!({}), json!({"run": {"program": "/no/such/rxrun", "arguments": arguments}}));
    client
}

fn shown(client: &mut Client, line: u32, name: &str) -> Value {
    client.request("workspace/executeCommand", stage(json!([URI, at(line), name]))).expect("an answer")
}

#[test]
fn stages_without_foreign_code_need_no_rxrun() {
    let mut client = without_rxrun(&["--dim", "n=4"]);
    client.open(URI, 1, TEXT);
    for (name, language) in [("tir", "python"), ("cuda", "cuda-cpp")] {
        // A Relax function, a private one and a prim_func: each has the line that its kernel is compiled from.
        for (line, function, origin) in [(22, "other", 22), (11, "twice", 11), (4, "copy", 7)] {
            let shown = shown(&mut client, line, name);
            assert_eq!((&shown["function"], &shown["language"]), (&json!(function), &json!(language)), "{shown}");
            assert_eq!((&shown["module"], &shown["message"]), (&json!("Module"), &Value::Null), "{shown}");
            assert_eq!(shown["parts"][0]["ranges"][0]["start"]["line"], origin, "{shown}");
            let lines = shown["text"].as_str().expect("a text").lines().count();
            assert_eq!(shown["parts"][0]["lines"][1], lines, "{shown}");
        }
    }
    let passes = shown(&mut client, 22, "passes");
    assert_eq!((&passes["language"], &passes["passes"][0]["pass"]), (&json!("python"), &Value::Null), "{passes}");
    let names = passes["passes"].as_array().expect("passes").iter().filter_map(|pass| pass["pass"].as_str());
    assert!(names.clone().any(|pass| pass == "FuseProducers"), "{:?}", names.collect::<Vec<_>>());
    let first = passes["passes"][0]["lines"][0].as_u64().expect("a line") as usize;
    let text = passes["text"].as_str().expect("a text");
    assert!(text.lines().skip(first).any(|line| line.contains("def other(")), "{text}");
    assert!(passes["parts"].as_array().is_some_and(|parts| !parts.is_empty()), "{passes}");
    // The text is not saved and has an error.
    client.change(URI, 2, json!([change((22, 22), (22, 23), "z")]));
    for (name, subject) in [("tir", "`other`"), ("passes", "passes")] {
        let shown = shown(&mut client, 22, name);
        let message = shown["message"].as_str().expect("a message");
        assert!(message.starts_with(&format!("{subject} cannot be shown: net:23: ")), "{message}");
    }
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn stages_are_made_for_the_device_of_the_arguments() {
    let text = |arguments: &[&str], name: &str| {
        let mut client = without_rxrun(arguments);
        client.open(URI, 1, TEXT);
        let shown = shown(&mut client, 22, name);
        assert_eq!(client.quit(), Some(0));
        shown
    };
    let passes = |device: &str| text(&["--device", device], "passes")["passes"].as_array().expect("passes").len();
    assert!(passes("interp") < passes("cuda"), "the reference has fewer steps");
    // Only `rxrun` can read constants from files.
    let message = text(&["--constants=c.npz"], "tir")["message"].as_str().map(str::to_owned);
    assert!(
        message.as_deref().is_some_and(|message| message.starts_with("/no/such/rxrun cannot be started")),
        "{message:?}"
    );
}

/// A function that calls a packed function of TVM.
const FOREIGN: &str = "@R.function
def f(x: R.Tensor((3,), \"float32\")):
    y = R.call_dps_packed(\"lib.f\", (x,), out_ty=R.Tensor((3,), \"float32\"))
    return y
";

#[test]
fn errors_of_lowering_are_diagnostics_until_the_text_changes() {
    let mut client = without_rxrun(&[]);
    client.open(URI, 1, FOREIGN);
    assert_eq!(client.diagnostics(URI, Some(1)), Vec::<Value>::new());
    let shown = shown(&mut client, 2, "tir");
    let message = shown["message"].as_str().expect("a message");
    assert!(message.starts_with("`f` cannot be shown: net:3: "), "{message}");
    assert_eq!((&shown["text"], &shown["parts"]), (&Value::Null, &json!([])));
    let found = client.diagnostics(URI, Some(1));
    assert_eq!((&found[0]["code"], &found[0]["source"]), (&json!("RX0801"), &json!("rx")), "{found:?}");
    assert_eq!(found[0]["range"]["start"], json!({"line": 2, "character": 4}), "{found:?}");
    client.change(URI, 2, json!([change((3, 11), (3, 12), "x")]));
    let found = client.diagnostics(URI, Some(2));
    assert!(found.iter().all(|diagnostic| diagnostic["code"] != "RX0801"), "{found:?}");
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn an_edit_during_a_stage_is_followed_by_the_new_text() {
    let mut client = without_rxrun(&[]);
    client.open(URI, 1, TEXT);
    let asked: Vec<i64> = (0..8)
        .map(|step| {
            let id = client.ask("workspace/executeCommand", stage(json!([URI, at(22), "passes"])));
            client.change(URI, step + 2, json!([change((23, 0), (23, 0), "        # a comment\n")]));
            id
        })
        .collect();
    for id in asked {
        let shown = client.answer(id).expect("an answer");
        assert_eq!((&shown["function"], &shown["message"]), (&json!("other"), &Value::Null), "{shown}");
        assert!(shown["text"].as_str().is_some_and(|text| text.contains("def other(")), "{shown}");
    }
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn the_real_rxrun_shows_machine_code() {
    let beside =
        Path::new(env!("CARGO_BIN_EXE_rx-lsp")).with_file_name(format!("rxrun{}", std::env::consts::EXE_SUFFIX));
    if !beside.is_file() {
        println!("skipped: rxrun is not built beside rx-lsp");
        return;
    }
    let mut client = Client::start(&[]);
    client.initialize_with(json!({}), json!({}));
    client.open(URI, 1, TEXT);
    // A Relax function, a private one and a prim_func: each has the line that its kernel is compiled from.
    for (line, function, origin) in [(22, "other", 22), (11, "twice", 11), (4, "copy", 7)] {
        let shown = shown(&mut client, line, "cpu");
        assert_eq!((&shown["function"], &shown["language"]), (&json!(function), &json!("rx-cpu")), "{shown}");
        assert_eq!(shown["parts"][0]["ranges"][0]["start"]["line"], origin, "{shown}");
        let lines = shown["text"].as_str().expect("a text").lines().count();
        assert_eq!(shown["parts"][0]["lines"][1], lines, "{shown}");
    }
    let ptx = shown(&mut client, 22, "ptx");
    assert_eq!(ptx["language"], "ptx", "{ptx}");
    match ptx["text"].as_str() {
        Some(text) => assert!(text.contains(".visible .entry") && text.contains(" registers, "), "{text}"),
        // PTX requires NVRTC.
        None => assert!(ptx["message"].as_str().is_some_and(|message| message.contains("NVRTC not found")), "{ptx}"),
    }
    assert_eq!(client.quit(), Some(0));
}
