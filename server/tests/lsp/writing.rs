//! Sessions with requests for reading and writing. The real server responds to every request, and the edits it returns
//! are applied.

use crate::client::Client;
use crate::text;
use serde_json::{Value, json};

const URI: &str = "file:///net.rx";

const NET: &str = "n = TypeVar(\"n\")
@R.function
def main(x: R.Tensor((n, 8), \"float32\"), w: R.Tensor((8, 4), \"float32\")):
    é = R.matmul(x, w)
    y = R.nn.relo(é)
    return y
";

/// Starts a client with all capabilities.
fn client() -> Client {
    Client::initialized("utf-16")
}

/// Starts a client whose only capability is code action literals.
fn plain() -> Client {
    start(json!({"textDocument": {"codeAction": {
        "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}},
    }}}))
}

fn start(capabilities: Value) -> Client {
    let mut client = Client::start(&["--stdio"]);
    client.initialize(capabilities);
    client
}

/// Opens a text and waits for its diagnostics.
fn open(client: &mut Client, text: &str) -> Vec<Value> {
    client.open(URI, 1, text);
    client.diagnostics(URI, Some(1))
}

fn at(line: u32, column: u32) -> Value {
    json!({"textDocument": {"uri": URI}, "position": {"line": line, "character": column}})
}

fn range(from: (u32, u32), to: (u32, u32)) -> Value {
    let position = |(line, column)| json!({"line": line, "character": column});
    json!({"start": position(from), "end": position(to)})
}

/// Applies edits in UTF-16 positions, which every client supports.
fn apply(text: &str, edits: &Value) -> String {
    text::apply(text, edits, "utf-16")
}

fn actions(client: &mut Client, range: Value, only: Value) -> Vec<Value> {
    let mut context = json!({"diagnostics": []});
    if !only.is_null() {
        context["only"] = only;
    }
    let params = json!({"textDocument": {"uri": URI}, "range": range, "context": context});
    client.request("textDocument/codeAction", params).expect("actions").as_array().expect("a list").clone()
}

fn titled<'a>(actions: &'a [Value], title: &str) -> &'a Value {
    actions.iter().find(|it| it["title"] == title).unwrap_or_else(|| panic!("{title} is among {actions:?}"))
}

#[test]
fn a_mistake_is_fixed_by_an_action() {
    let mut client = client();
    let diagnostics = open(&mut client, NET);
    let found = actions(&mut client, range((4, 10), (4, 10)), Value::Null);
    let fix = titled(&found, "Change to R.nn.relu");
    assert_eq!(fix["kind"], "quickfix");
    assert_eq!(fix["diagnostics"][0]["code"], diagnostics[0]["code"]);
    let edit = &fix["edit"]["documentChanges"][0];
    assert_eq!(edit["textDocument"], json!({"uri": URI, "version": 1}));
    let text = apply(NET, &edit["edits"]);
    assert!(text.contains("y = R.nn.relu(é)"), "{text}");
    client.change(URI, 2, json!([{"text": text}]));
    assert_eq!(client.diagnostics(URI, Some(2)), Vec::<Value>::new());
    assert_eq!(actions(&mut client, range((4, 10), (4, 10)), json!(["quickfix"])), Vec::<Value>::new());
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn actions_on_functions_and_files_are_filled_in_when_they_are_chosen() {
    let mut client = client();
    let text = NET.replace("relo", "relu");
    let unused = text.replace("relu(é)", "relu(é)  # rx: ignore");
    open(&mut client, &unused);
    let found = actions(&mut client, range((2, 5), (2, 5)), Value::Null);
    assert_eq!(titled(&found, "Compile and run `main`")["command"]["command"], "rx.run");
    assert_eq!(titled(&found, "Compile and run `main`")["kind"], "run.rx");
    let all = titled(&found, "Write all inferred types").clone();
    assert!(all["edit"].is_null() && all["kind"] == "source.annotate.rx");
    let all = client.request("codeAction/resolve", all).expect("resolved");
    let annotated = apply(&unused, &all["edit"]["documentChanges"][0]["edits"]);
    assert!(annotated.contains("é: R.Tensor((n, 4), dtype=\"float32\") = R.matmul(x, w)"), "{annotated}");
    let fixes = actions(&mut client, range((0, 0), (0, 0)), json!(["source.fixAll"]));
    let [fix] = &fixes[..] else { panic!("one action: {fixes:?}") };
    let fix = client.request("codeAction/resolve", fix.clone()).expect("resolved");
    assert_eq!(apply(&unused, &fix["edit"]["documentChanges"][0]["edits"]), text);
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn refactorings_are_offered_with_their_edits() {
    let mut client = client();
    let text = NET.replace("relo", "relu");
    open(&mut client, &text);
    let place = range((4, 18), (4, 18));
    let found = actions(&mut client, place.clone(), json!(["refactor"]));
    let inline = titled(&found, "Inline `é`");
    assert_eq!(inline["kind"], "refactor.inline");
    let expected = text.replace("    é = R.matmul(x, w)\n", "").replace("(é)", "(R.matmul(x, w))");
    assert_eq!(apply(&text, &inline["edit"]["documentChanges"][0]["edits"]), expected);
    // When the cursor moves, nothing is checked.
    let context = json!({"diagnostics": [], "triggerKind": 2});
    let params = json!({"textDocument": {"uri": URI}, "range": place, "context": context});
    let found = client.request("textDocument/codeAction", params).expect("actions");
    assert!(found.as_array().expect("a list").iter().all(|it| it["kind"] != "refactor.inline"), "{found}");
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn a_run_on_the_gpu_is_offered_where_there_is_one() {
    let mut client = client();
    open(&mut client, &NET.replace("relo", "relu"));
    for is_there in [true, false] {
        let settings = json!({"settings": {"rx": {"run": {"gpu": is_there}}}});
        client.notify("workspace/didChangeConfiguration", settings);
        let found = actions(&mut client, range((2, 5), (2, 5)), Value::Null);
        let on_gpu = found.iter().find(|it| it["title"] == "Compile and run `main` on the GPU");
        let arguments = on_gpu.map(|it| it["command"]["arguments"].clone());
        assert_eq!(arguments, is_there.then(|| json!([URI, "main", ["--device", "cuda"]])));
        titled(&found, "Compile and run `main`");
    }
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn client_without_capabilities_gets_plain_edits() {
    let mut client = plain();
    open(&mut client, NET);
    let found = actions(&mut client, range((4, 10), (4, 10)), Value::Null);
    let fix = titled(&found, "Change to R.nn.relu");
    assert!(apply(NET, &fix["edit"]["changes"][URI]).contains("y = R.nn.relu(é)"));
    assert!(found.iter().all(|it| it["kind"] != "source.fixAll.rx"), "{found:?}");
    let asked = actions(&mut client, range((2, 5), (2, 5)), json!(["source.annotate"]));
    let text = apply(NET, &asked[0]["edit"]["changes"][URI]);
    assert!(text.contains("é: R.Tensor("), "{text}");
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn accepted_hints_insert_their_text() {
    let mut client = client();
    open(&mut client, &NET.replace("relo", "relu"));
    let params = json!({"textDocument": {"uri": URI}, "range": range((3, 0), (4, 0))});
    let hints = client.request("textDocument/inlayHint", params).expect("hints");
    let hint = &hints[0];
    assert_eq!(hint["label"], ": R.Tensor((n, 4), dtype=\"float32\")");
    assert_eq!(hint["position"], json!({"line": 3, "character": 5}));
    let text = apply(NET, &hint["textEdits"]);
    assert!(text.contains("    é: R.Tensor((n, 4), dtype=\"float32\") = R.matmul"), "{text}");
    let resolved = client.request("inlayHint/resolve", hint.clone()).expect("resolved");
    assert_eq!(resolved["tooltip"], "R.Tensor((n, 4), dtype=\"float32\")");
    let settings = json!({"settings": {"rx": {"inlayHints": {"shapes": false}}}});
    client.notify("workspace/didChangeConfiguration", settings);
    let params = json!({"textDocument": {"uri": URI}, "range": range((3, 0), (4, 0))});
    let hints = client.request("textDocument/inlayHint", params).expect("hints");
    assert_eq!(hints[0]["label"], ": \"float32\"");
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn completions_and_signatures_are_offered_and_documented() {
    let mut client = client();
    let text = NET.replace("R.nn.relo(é)", "R.nn.");
    open(&mut client, &text);
    let list = client.request("textDocument/completion", at(4, 13)).expect("a list");
    assert_eq!(list["isIncomplete"], false);
    let items = list["items"].as_array().expect("items");
    let relu = items.iter().find(|it| it["label"] == "relu").expect("relu");
    assert_eq!(relu["textEdit"]["newText"], "relu(${1:data})$0");
    assert_eq!(relu["textEdit"]["range"], range((4, 13), (4, 13)));
    assert!(relu["documentation"].is_null());
    let relu = client.request("completionItem/resolve", relu.clone()).expect("resolved");
    assert!(relu["documentation"]["value"].as_str().expect("docs").contains("R.nn.relu(data)"));
    let help = client.request("textDocument/signatureHelp", at(3, 20)).expect("help");
    let signature = &help["signatures"][0];
    assert_eq!(signature["label"], "R.matmul(x1, x2, out_dtype=None)");
    assert_eq!((&help["activeParameter"], &signature["parameters"][1]["label"]), (&json!(1), &json!([13, 15])));
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn accepted_operator_opens_signature_help_where_the_client_can() {
    let text = NET.replace("R.nn.relo(é)", "R.nn.");
    for can in [true, false] {
        let commands: &[&str] = if can { &["editor.action.triggerParameterHints"] } else { &[] };
        let mut client = start(json!({
            "textDocument": {"completion": {"completionItem": {"snippetSupport": true}}},
            "experimental": {"commands": {"commands": commands}},
        }));
        open(&mut client, &text);
        let list = client.request("textDocument/completion", at(4, 13)).expect("a list");
        let relu = list["items"].as_array().expect("items").iter().find(|it| it["label"] == "relu").expect("relu");
        assert_eq!(relu["command"]["command"] == "editor.action.triggerParameterHints", can, "{relu}");
        assert_eq!(client.quit(), Some(0));
    }
}

#[test]
fn a_text_is_formatted() {
    let mut client = client();
    let text = NET.replace("relo(é)", "relu( é )").replace("y = ", "y=");
    open(&mut client, &text);
    let options = json!({"tabSize": 4, "insertSpaces": true});
    let params = json!({"textDocument": {"uri": URI}, "options": options});
    let edits = client.request("textDocument/formatting", params).expect("edits");
    assert!(apply(&text, &edits).contains("    y = R.nn.relu(é)\n"));
    let params = json!({"textDocument": {"uri": URI}, "options": options, "range": range((3, 0), (3, 5))});
    let edits = client.request("textDocument/rangeFormatting", params).expect("edits");
    assert!(apply(&text, &edits).contains("    y=R.nn.relu( é )\n"));
    let mut params = at(5, 0);
    (params["ch"], params["options"]) = (json!("\n"), options);
    let edits = client.request("textDocument/onTypeFormatting", params).expect("edits");
    assert_eq!(apply(&text, &edits), text.replace("y=R.nn.relu( é )", "y = R.nn.relu(é)"));
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn lenses_show_the_cost_of_a_function() {
    let mut client = client();
    open(&mut client, &NET.replace("relo", "relu"));
    let params = json!({"textDocument": {"uri": URI}});
    let lenses = client.request("textDocument/codeLens", params).expect("lenses");
    let lenses = lenses.as_array().expect("a list");
    assert_eq!(lenses[0]["command"]["command"], "rx.run");
    let cost = client.request("codeLens/resolve", lenses[1].clone()).expect("resolved");
    assert_eq!(cost["command"]["title"], "n * 68 operations · n * 80 + 128 B");
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn commands_explain_and_annotate() {
    let mut client = client();
    let text = NET.replace("relo", "relu");
    open(&mut client, &text);
    let position = json!({"line": 4, "character": 4});
    let why = |client: &mut Client, part: Value| {
        client.request("workspace/executeCommand", json!({"command": "rx.why", "arguments": [URI, position, part]}))
    };
    let found = why(&mut client, json!(1)).expect("an answer");
    assert_eq!(found["traces"][0]["value"], "4");
    let steps = found["traces"][0]["steps"].as_array().expect("steps");
    assert_eq!(steps.last().expect("an end")["kind"], "parameter");
    assert!(steps[0]["range"]["start"]["line"] == 4 && why(&mut client, json!("oops")).is_err());
    let ask = client.ask("workspace/executeCommand", json!({"command": "rx.annotate", "arguments": [URI]}));
    let request = client.message("workspace/applyEdit");
    let edits = &request["params"]["edit"]["documentChanges"][0]["edits"];
    assert!(apply(&text, edits).contains("y: R.Tensor((n, 4), dtype=\"float32\") = R.nn.relu(é)"));
    client.respond(&request["id"], json!({"applied": true}));
    assert_eq!(client.answer(ask).expect("an answer")["edits"], 3);
    assert_eq!(client.quit(), Some(0));
}
