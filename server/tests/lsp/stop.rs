//! The end of runs that the user stops, with the mock of `rxrun` of [`crate::run`].

use crate::run::{Bench, TEXT, URI};
use serde_json::{Value, json};

impl Bench {
    /// Accepts the server's request to refresh lenses.
    fn accept_refresh(&mut self) {
        let refresh = self.client.message("workspace/codeLens/refresh");
        self.client.respond(&refresh["id"], Value::Null);
    }

    /// Returns the titles of the lenses that run and stop functions.
    fn lens_titles(&mut self) -> Vec<String> {
        let lenses = self.client.request("textDocument/codeLens", json!({"textDocument": {"uri": URI}}));
        let lenses = lenses.expect("lenses");
        let titles = lenses.as_array().expect("a list").iter().filter_map(|lens| lens["command"]["title"].as_str());
        titles.map(str::to_owned).collect()
    }

    fn stop(&mut self, arguments: Value) -> Result<Value, Value> {
        let stop = json!({"command": "rx.stop", "arguments": arguments});
        self.client.request("workspace/executeCommand", stop)
    }
}

#[test]
fn run_in_progress_has_a_lens_that_stops_it() {
    let mut bench = Bench::new("hang", json!({"workspace": {"codeLens": {"refreshSupport": true}}}), 600.0);
    let text = format!("from tvm.script import ir as I, relax as R, tir as T\n\n{TEXT}");
    let idle = ["▶ Run `main`", "▶ Run `other`"];
    for language in ["relax", "python"] {
        let item = json!({"uri": URI, "languageId": language, "version": 1, "text": text});
        bench.client.notify("textDocument/didOpen", json!({"textDocument": item}));
        assert_eq!(bench.lens_titles(), idle);
        // Without a name, `main` is run.
        for (function, titles) in
            [(json!("other"), ["▶ Run `main`", "■ Stop `other`"]), (Value::Null, ["■ Stop `main`", "▶ Run `other`"])]
        {
            let id = bench.run(json!([URI, function]));
            let mut running = bench.running();
            bench.accept_refresh();
            assert_eq!(bench.lens_titles(), titles);
            assert_eq!(bench.stop(json!([URI])), Ok(Value::Null));
            let result = bench.client.answer(id).expect("a result");
            assert_eq!((&result["ok"], &result["cancelled"]), (&json!(false), &json!(true)));
            running.is_gone();
            bench.accept_refresh();
            assert_eq!(bench.lens_titles(), idle);
        }
        bench.client.close(URI);
    }
    bench.client.open(URI, 1, TEXT);
    bench.goes_on();
}

#[test]
fn run_has_no_stop_lens_if_the_client_cannot_refresh_lenses() {
    let mut bench = Bench::plain("hang");
    bench.client.open(URI, 1, TEXT);
    let idle = bench.lens_titles();
    assert_eq!(idle.len(), 2);
    let id = bench.run(json!([URI, "main"]));
    let mut running = bench.running();
    assert_eq!(bench.lens_titles(), idle);
    assert_eq!(bench.stop(json!([URI])), Ok(Value::Null));
    assert_eq!(bench.client.answer(id).expect("a result")["cancelled"], true);
    running.is_gone();
    bench.goes_on();
}

#[test]
fn stop_ends_the_runs_of_one_document_or_of_all() {
    let mut bench = Bench::plain("hang");
    let other = "untitled:b";
    bench.client.open(URI, 1, TEXT);
    bench.client.open(other, 1, TEXT);
    let first = bench.run(json!([URI, "main"]));
    let mut running = bench.running();
    let second = bench.run(json!([other, "main"]));
    let mut other_running = bench.running();
    assert_eq!(bench.stop(json!(["untitled:c"])), Ok(Value::Null));
    assert_eq!(bench.stop(json!([URI])), Ok(Value::Null));
    assert_eq!(bench.client.answer(first).expect("a result")["message"], "`main` was cancelled");
    running.is_gone();
    assert_eq!(bench.stop(json!([])), Ok(Value::Null));
    assert_eq!(bench.client.answer(second).expect("a result")["cancelled"], true);
    other_running.is_gone();
    assert_eq!(bench.stop(json!([7])).expect_err("no URI")["code"], -32602);
    bench.goes_on();
}

#[test]
fn closed_document_run_is_stopped() {
    let mut bench = Bench::plain("hang");
    let other = "untitled:b";
    bench.client.open(URI, 1, TEXT);
    bench.client.open(other, 1, TEXT);
    let id = bench.run(json!([other, "main"]));
    let mut running = bench.running();
    let place = json!({"line": 16, "character": 4});
    let stage = json!({"command": "rx.stage", "arguments": [other, place, "cpu"]});
    let stage = bench.client.ask("workspace/executeCommand", stage);
    let mut stage_running = bench.running();
    bench.client.close(URI);
    bench.client.close(other);
    assert_eq!(bench.client.answer(stage).expect("an answer")["message"], "`main` was cancelled");
    stage_running.is_gone();
    let result = bench.client.answer(id).expect("a result");
    assert_eq!((&result["cancelled"], &result["message"]), (&json!(true), &json!("`main` was cancelled")));
    running.is_gone();
    bench.client.open(URI, 1, TEXT);
    bench.goes_on();
}
