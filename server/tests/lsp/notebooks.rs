//! Notebooks: sync, and requests about their cells.

use crate::client::{Client, change, everything};
use crate::run::Bench;
use serde_json::{Value, json};

const NOTEBOOK: &str = "file:///nets/net.ipynb";
const IMPORTS: &str = "vscode-notebook-cell:/nets/net.ipynb#imports";
const NET: &str = "vscode-notebook-cell:/nets/net.ipynb#net";
const LAST: &str = "vscode-notebook-cell:/nets/net.ipynb#last";

const IMPORTS_TEXT: &str = "%matplotlib inline\n!ls (\nfrom tvm.script import relax as R";
const NET_TEXT: &str = "@R.function
def main(x: R.Tensor((4,), \"float32\")) -> R.Tensor((4,), \"float32\"):
    y = R.nn.rellu(x)
    return y";

fn client() -> Client {
    let mut client = Client::start(&["--stdio"]);
    let mut capabilities = everything("utf-16");
    capabilities["notebookDocument"] = json!({"synchronization": {"executionSummarySupport": true}});
    let result = client.initialize(capabilities);
    let sync = &result["capabilities"]["notebookDocumentSync"];
    let selector = json!([{"notebook": "jupyter-notebook", "cells": [{"language": "python"}]}]);
    assert_eq!(sync, &json!({"notebookSelector": selector}));
    client
}

fn listed(uri: &str) -> Value {
    json!({"kind": 2, "document": uri})
}

fn document(uri: &str, text: &str) -> Value {
    json!({"uri": uri, "languageId": "python", "version": 1, "text": text})
}

/// Opens a notebook of three cells; the texts come in another order than the cells.
fn open(client: &mut Client, net: &str) {
    let notebook = json!({
        "uri": NOTEBOOK, "notebookType": "jupyter-notebook", "version": 1,
        "cells": [listed(IMPORTS), listed(NET), listed(LAST)],
    });
    let texts = [document(LAST, "print(main)?"), document(NET, net), document(IMPORTS, IMPORTS_TEXT)];
    let params = json!({"notebookDocument": notebook, "cellTextDocuments": texts});
    client.notify("notebookDocument/didOpen", params);
}

fn change_notebook(client: &mut Client, version: i32, cells: Value) {
    let notebook = json!({"uri": NOTEBOOK, "version": version});
    client.notify("notebookDocument/didChange", json!({"notebookDocument": notebook, "change": {"cells": cells}}));
}

fn change_text(client: &mut Client, version: i32, changes: Value) {
    let text = json!({"document": {"uri": NET, "version": version}, "changes": changes});
    change_notebook(client, version, json!({"textContent": [text]}));
}

fn at(line: u32, character: u32) -> Value {
    json!({"textDocument": {"uri": NET}, "position": {"line": line, "character": character}})
}

#[test]
fn cells_have_diagnostics_at_their_own_lines() {
    let mut client = client();
    open(&mut client, NET_TEXT);
    let found = client.diagnostics(NET, Some(1));
    assert_eq!((found.len(), &found[0]["code"]), (1, &json!("RX0202")), "{found:?}");
    assert_eq!(found[0]["range"]["start"], json!({"line": 2, "character": 8}));
    assert_eq!(found[0]["data"]["fixes"][0]["edits"][0]["range"]["start"]["line"], 2);
    for other in [IMPORTS, LAST] {
        assert_eq!(client.diagnostics(other, Some(1)), Vec::<Value>::new());
    }
    change_text(&mut client, 2, json!([change((2, 15), (2, 16), "")]));
    assert_eq!(client.diagnostics(NET, Some(2)), Vec::<Value>::new());
    client.notify("notebookDocument/didSave", json!({"notebookDocument": {"uri": NOTEBOOK}}));
    change_text(&mut client, 3, json!([{"text": NET_TEXT}]));
    assert_eq!(client.diagnostics(NET, Some(3)).len(), 1);
    client.notify(
        "notebookDocument/didClose",
        json!({"notebookDocument": {"uri": NOTEBOOK}, "cellTextDocuments": [{"uri": NET}]}),
    );
    assert_eq!(client.diagnostics(NET, None), Vec::<Value>::new());
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn cells_are_inserted_moved_and_removed() {
    const NEW: &str = "vscode-notebook-cell:/nets/net.ipynb#new";
    let mut client = client();
    open(&mut client, &NET_TEXT.replace("rellu", "relu"));
    // A cell is inserted before the net, which moves, and the last one is removed.
    let array = json!({"start": 1, "deleteCount": 2, "cells": [listed(NEW), listed(NET)]});
    let opened = json!([document(NEW, "x = 1\ny = 2\n")]);
    let structure = json!({"array": array, "didOpen": opened, "didClose": [{"uri": LAST}]});
    change_notebook(&mut client, 2, json!({"structure": structure}));
    assert_eq!(client.diagnostics(LAST, None), Vec::<Value>::new());
    assert_eq!(client.diagnostics(NEW, Some(1)), Vec::<Value>::new());
    let hover = client.request("textDocument/hover", at(2, 14)).expect("a hover");
    assert_eq!(hover["range"]["start"]["line"], 2, "{hover}");
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn requests_about_a_cell_have_its_lines_and_its_uri() {
    let mut client = client();
    open(&mut client, &NET_TEXT.replace("rellu", "relu"));
    let hover = client.request("textDocument/hover", at(2, 14)).expect("a hover");
    assert_eq!(hover["range"]["start"]["line"], 2, "{hover}");
    let definition = client.request("textDocument/definition", at(3, 11)).expect("a definition");
    assert_eq!(definition[0]["uri"], NET);
    assert_eq!(definition[0]["range"]["start"], json!({"line": 2, "character": 4}));
    let completion = client.request("textDocument/completion", at(2, 13)).expect("completions");
    assert_eq!(completion["items"][0]["textEdit"]["range"]["start"]["line"], 2, "{completion}");
    let hints = |uri: &str| {
        let end = json!({"line": 99, "character": 0});
        json!({"textDocument": {"uri": uri}, "range": {"start": {"line": 0, "character": 0}, "end": end}})
    };
    let found = client.request("textDocument/inlayHint", hints(NET)).expect("hints");
    assert_eq!(found[0]["position"]["line"], 2, "{found}");
    assert_eq!(client.request("textDocument/inlayHint", hints(LAST)), Ok(json!([])));
    let of = |uri: &str| json!({"textDocument": {"uri": uri}});
    let lenses = client.request("textDocument/codeLens", of(NET)).expect("lenses");
    assert_eq!(lenses[0]["command"]["arguments"], json!([NET, "main"]), "{lenses}");
    assert_eq!(lenses[0]["range"]["start"]["line"], 1);
    assert_eq!(client.request("textDocument/codeLens", of(IMPORTS)), Ok(json!([])));
    let tokens = client.request("textDocument/semanticTokens/full", of(NET)).expect("tokens");
    assert_eq!(tokens["data"][0], 0, "the first token is on the first line: {tokens}");
    let symbols = client.request("textDocument/documentSymbol", of(NET)).expect("symbols");
    assert_eq!((&symbols[0]["name"], &symbols[0]["selectionRange"]["start"]["line"]), (&json!("main"), &json!(1)));
    let symbols = client.request("workspace/symbol", json!({"query": "main"})).expect("symbols");
    assert_eq!(symbols[0]["location"]["uri"], NET);
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn fixes_and_renames_edit_cells() {
    let mut client = client();
    open(&mut client, NET_TEXT);
    client.diagnostics(NET, Some(1));
    let mut params = at(2, 10);
    let place = params["position"].take();
    params["range"] = json!({"start": place, "end": place});
    params["context"] = json!({"diagnostics": [], "only": ["quickfix"]});
    let actions = client.request("textDocument/codeAction", params).expect("actions");
    let edit = &actions[0]["edit"]["documentChanges"][0];
    assert_eq!(edit["textDocument"], json!({"uri": NET, "version": 1}), "{actions}");
    assert_eq!(edit["edits"][0]["range"]["start"]["line"], 2);
    let mut params = at(2, 4);
    params["newName"] = json!("z");
    let edit = client.request("textDocument/rename", params).expect("an edit");
    let change = &edit["documentChanges"][0];
    assert_eq!((&change["textDocument"]["uri"], edit["documentChanges"][1].is_null()), (&json!(NET), true));
    let lines: Vec<_> =
        change["edits"].as_array().expect("edits").iter().map(|it| &it["range"]["start"]["line"]).collect();
    assert_eq!(lines, [2, 3]);
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn clients_that_pull_get_the_diagnostics_of_the_cell() {
    let mut client = Client::start(&["--stdio"]);
    client.initialize(json!({"textDocument": {"diagnostic": {}}, "notebookDocument": {"synchronization": {}}}));
    open(&mut client, NET_TEXT);
    let mut pull = |uri: &str| {
        client.request("textDocument/diagnostic", json!({"textDocument": {"uri": uri}})).expect("a report")["items"]
            .clone()
    };
    assert_eq!(pull(NET)[0]["range"]["start"]["line"], 2);
    assert_eq!(pull(IMPORTS), json!([]));
}

#[test]
fn client_that_pulls_is_asked_to_pull_all_cells_after_a_change() {
    let mut client = Client::start(&["--stdio"]);
    client.initialize(json!({
        "textDocument": {"diagnostic": {}}, "notebookDocument": {"synchronization": {}},
        "workspace": {"diagnostics": {"refreshSupport": true}},
    }));
    open(&mut client, NET_TEXT);
    let pull = |client: &mut Client, previous: &Value| {
        let params = json!({"textDocument": {"uri": LAST}, "previousResultId": previous});
        client.request("textDocument/diagnostic", params).expect("a report")
    };
    let first = pull(&mut client, &Value::Null);
    // A change of metadata is no change of the text.
    let notebook = json!({"uri": NOTEBOOK, "version": 2});
    let change = json!({"metadata": {"kernel": "python3"}, "cells": {"data": [listed(NET)]}});
    client.notify("notebookDocument/didChange", json!({"notebookDocument": notebook, "change": change}));
    assert_eq!(pull(&mut client, &first["resultId"])["kind"], "unchanged");
    change_text(&mut client, 3, json!([{"text": "x = 1"}]));
    let refresh = client.message("workspace/diagnostic/refresh");
    client.respond(&refresh["id"], Value::Null);
    assert_eq!(pull(&mut client, &first["resultId"])["kind"], "full");
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn unchanged_cells_are_not_published_again() {
    let mut client = client();
    open(&mut client, NET_TEXT);
    client.diagnostics(NET, Some(1));
    client.diagnostics(IMPORTS, Some(1));
    change_text(&mut client, 2, json!([change((2, 15), (2, 16), "")]));
    client.diagnostics(NET, Some(2));
    assert_eq!(client.quit(), Some(0));
    let is_again = |message: &&Value| message["params"]["uri"] == IMPORTS;
    assert_eq!(client.unread().find(is_again), None);
}

#[test]
fn reopened_notebook_removes_the_diagnostics_of_the_old_cells() {
    let mut client = client();
    open(&mut client, NET_TEXT);
    assert_eq!(client.diagnostics(NET, Some(1)).len(), 1);
    let notebook =
        json!({"uri": NOTEBOOK, "notebookType": "jupyter-notebook", "version": 1, "cells": [listed(IMPORTS)]});
    let params = json!({"notebookDocument": notebook, "cellTextDocuments": [document(IMPORTS, IMPORTS_TEXT)]});
    client.notify("notebookDocument/didOpen", params);
    assert_eq!(client.diagnostics(NET, None), Vec::<Value>::new());
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn closed_notebook_stage_of_a_cell_is_stopped() {
    let mut bench = Bench::plain("hang");
    open(&mut bench.client, &NET_TEXT.replace("rellu", "relu"));
    let place = json!({"line": 2, "character": 4});
    let stage = json!({"command": "rx.stage", "arguments": [NET, place, "cpu"]});
    let id = bench.client.ask("workspace/executeCommand", stage);
    let mut running = bench.running();
    bench.client.notify(
        "notebookDocument/didClose",
        json!({"notebookDocument": {"uri": NOTEBOOK}, "cellTextDocuments": [{"uri": NET}]}),
    );
    assert_eq!(bench.client.answer(id).expect("an answer")["message"], "`main` was cancelled");
    running.is_gone();
    assert_eq!(bench.client.quit(), Some(0));
}

#[test]
fn run_of_a_cell_gets_the_text_of_the_notebook() {
    let mut bench = Bench::plain("run");
    open(&mut bench.client, &NET_TEXT.replace("rellu", "relu"));
    bench.run(json!([NET, "main"]));
    let report = bench.running().report;
    let text = report["text"].as_str().expect("a text");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with('#') && lines[1].starts_with('#'), "{text}");
    assert_eq!((lines[2], lines[4]), ("from tvm.script import relax as R", "@R.function"));
    assert!(report["arguments"].as_array().expect("a list").iter().any(|it| it == "--stdin-name=/nets/net.ipynb"));
}
