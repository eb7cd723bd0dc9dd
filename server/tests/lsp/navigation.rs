//! Names and structure: definition, references, rename, symbols, folds, selection ranges, call hierarchy, semantic
//! tokens.

use crate::client::{Client, change};
use crate::session::Random;
use crate::text::{ENCODINGS, apply, change_tokens, numbers, range as range_of};
use serde_json::{Value, json};

const URI: &str = "file:///net.rx";

/// A module in which columns after `🦀` differ between position encodings.
pub const MODULE: &str = "from tvm.script import ir as I
from tvm.script import relax as R
@I.ir_module
class Module:
    @R.function  # 🦀é
    def scale(x: R.Tensor((\"n\", 4), \"float32\")) -> R.Tensor((\"n\", 4), \"float32\"):
        n = T.int64()
        y = (R.str(\"🦀é\"), x)
        z = R.add(y[1], x)
        return z

    @R.function
    def main(x: R.Tensor((2, 4), \"float32\")):
        cls = Module
        with R.dataflow():
            gv = cls.scale(x)
            R.output(gv)
        return gv
";

fn at(line: u32, column: u32) -> Value {
    json!({"textDocument": {"uri": URI}, "position": {"line": line, "character": column}})
}

fn with(mut params: Value, key: &str, value: Value) -> Value {
    params[key] = value;
    params
}

fn range(line: u32, start: u32, end: u32) -> Value {
    json!({"start": {"line": line, "character": start}, "end": {"line": line, "character": end}})
}

fn location(line: u32, start: u32, end: u32) -> Value {
    json!({"uri": URI, "range": range(line, start, end)})
}

/// Starts a client with the capabilities for trees of symbols and for `prepareRename`.
fn client(encoding: &str) -> Client {
    let mut client = Client::start(&["--stdio"]);
    let result = client.initialize(json!({
        "general": {"positionEncodings": [encoding]},
        "textDocument": {
            "documentSymbol": {"hierarchicalDocumentSymbolSupport": true},
            "rename": {"prepareSupport": true},
        },
    }));
    assert_eq!(result["capabilities"]["renameProvider"], json!({"prepareProvider": true}));
    assert_eq!(result["capabilities"]["semanticTokensProvider"]["full"], json!({"delta": true}));
    client
}

#[test]
fn names_lead_to_their_declarations_and_uses() {
    for (encoding, crab) in [("utf-8", 4 + 2), ("utf-16", 2 + 1)] {
        let mut client = client(encoding);
        client.open(URI, 1, MODULE);
        let x = 20 + crab + 4;
        assert_eq!(client.request("textDocument/definition", at(7, x)), Ok(json!([location(5, 14, 15)])), "{encoding}");
        assert_eq!(client.request("textDocument/definition", at(15, 22)), Ok(json!([location(5, 8, 13)])));
        assert_eq!(client.request("textDocument/definition", at(8, 15)), Ok(Value::Null));
        let context = |declaration: bool| json!({"includeDeclaration": declaration});
        let uses = json!([location(7, x, x + 1), location(8, 24, 25)]);
        let asked = with(at(7, x), "context", context(false));
        assert_eq!(client.request("textDocument/references", asked), Ok(uses));
        let asked = with(at(6, 8), "context", context(true));
        let dims = json!([location(5, 28, 29), location(5, 62, 63), location(6, 8, 9)]);
        assert_eq!(client.request("textDocument/references", asked), Ok(dims));
        let kinds = json!([{"range": range(7, 8, 9), "kind": 3}, {"range": range(8, 18, 19), "kind": 2}]);
        assert_eq!(client.request("textDocument/documentHighlight", at(8, 18)), Ok(kinds));
        assert_eq!(client.quit(), Some(0));
    }
}

#[test]
fn a_rename_is_one_edit_or_a_reason() {
    let mut client = client("utf-8");
    client.open(URI, 1, MODULE);
    let before = client.diagnostics(URI, Some(1));
    let prepared = json!({"range": range(5, 8, 13), "placeholder": "scale"});
    assert_eq!(client.request("textDocument/prepareRename", at(5, 10)), Ok(prepared));
    let refused = client.request("textDocument/prepareRename", at(8, 15)).expect_err("an operator has no name here");
    assert_eq!(refused["code"], -32803);
    let rename = |line, column, new: &str| with(at(line, column), "newName", json!(new));
    let refused = client.request("textDocument/rename", rename(15, 22, "main")).expect_err("it is used");
    assert!(refused["message"].as_str().is_some_and(|why| why.starts_with("`main` is already used")), "{refused}");
    for (line, column) in [(15, 22), (5, 28), (6, 8), (8, 8), (3, 6), (13, 8), (16, 21)] {
        let edit = client.request("textDocument/rename", rename(line, column, "fresh")).expect("a rename");
        let text = apply(MODULE, &edit["changes"][URI], "utf-8");
        assert_ne!(text, MODULE);
        let version = i32::try_from(line * 100 + column).expect("small");
        client.change(URI, version, json!([{"text": text}]));
        assert_eq!(client.diagnostics(URI, Some(version)), before, "{text}");
        client.change(URI, version + 1, json!([{"text": MODULE}]));
    }
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn symbols_are_a_tree_or_a_row() {
    let mut tree = client("utf-8");
    tree.open(URI, 1, MODULE);
    tree.open("file:///other.rx", 1, "@R.function\ndef scaled(x: R.Any):\n    return x\n");
    let document = json!({"textDocument": {"uri": URI}});
    let symbols = tree.request("textDocument/documentSymbol", document.clone()).expect("symbols");
    assert_eq!(symbols[0]["name"], "Module");
    let scale = &symbols[0]["children"][0];
    assert_eq!((&scale["name"], &scale["selectionRange"]), (&json!("scale"), &range(5, 8, 13)));
    assert_eq!(scale["children"][2]["detail"], "R.Tensor((n, 4), dtype=\"float32\")");
    let find = |client: &mut Client, query: &str| -> Vec<String> {
        let found = client.request("workspace/symbol", json!({"query": query})).expect("symbols");
        let names =
            found.as_array().expect("a row").iter().map(|symbol| symbol["name"].as_str().unwrap_or("").to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    assert_eq!(find(&mut tree, "SCL"), ["scale", "scaled"]);
    assert_eq!(find(&mut tree, "main"), ["main"]);
    assert_eq!(find(&mut tree, "").len(), 4);
    assert_eq!(tree.quit(), Some(0));

    let mut row = Client::start(&["--stdio"]);
    row.initialize(json!({}));
    assert_eq!(find(&mut row, ""), Vec::<String>::new());
    row.open(URI, 1, MODULE);
    let symbols = row.request("textDocument/documentSymbol", document).expect("symbols");
    assert_eq!(symbols[1]["containerName"], "Module");
    assert_eq!(row.quit(), Some(0));
}

#[test]
fn folds_and_selections() {
    let mut lines = Client::start(&["--stdio"]);
    lines.initialize(json!({"textDocument": {"foldingRange": {"lineFoldingOnly": true}}}));
    lines.open(URI, 1, MODULE);
    let document = json!({"textDocument": {"uri": URI}});
    let folds = lines.request("textDocument/foldingRange", document).expect("folds");
    assert_eq!(folds[0], json!({"startLine": 0, "endLine": 1, "kind": "imports"}));
    assert!(folds.as_array().is_some_and(|folds| folds.contains(&json!({"startLine": 14, "endLine": 16}))), "{folds}");
    let asked = json!({"textDocument": {"uri": URI}, "positions": [{"line": 15, "character": 22}, {"line": 0, "character": 0}]});
    let selections = lines.request("textDocument/selectionRange", asked).expect("selections");
    assert_eq!(selections[0]["range"], range(15, 21, 26));
    assert_eq!(selections[0]["parent"]["range"], range(15, 17, 26));
    assert_eq!(selections.as_array().map(Vec::len), Some(2));
    assert_eq!(lines.quit(), Some(0));
}

#[test]
fn calls_of_a_function() {
    let mut client = client("utf-16");
    client.open(URI, 1, MODULE);
    let items = client.request("textDocument/prepareCallHierarchy", at(15, 22)).expect("a function");
    assert_eq!(items[0]["name"], "scale");
    let incoming = client.request("callHierarchy/incomingCalls", json!({"item": items[0]})).expect("calls");
    assert_eq!(incoming[0]["from"]["name"], "main");
    assert_eq!(incoming[0]["fromRanges"], json!([range(15, 21, 26)]));
    let outgoing = client.request("callHierarchy/outgoingCalls", json!({"item": incoming[0]["from"]})).expect("calls");
    assert_eq!(outgoing[0]["to"]["selectionRange"], range(5, 8, 13));
    assert_eq!(client.request("textDocument/prepareCallHierarchy", at(8, 8)), Ok(Value::Null));
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn semantic_tokens_come_whole_in_part_and_as_changes() {
    for encoding in ["utf-8", "utf-16"] {
        let mut client = client(encoding);
        let lines: String = (0..300).map(|at| format!("        a{at} = R.add(x, x)  # é🦀\n")).collect();
        let mut text = MODULE.replace("        z =", &format!("{lines}        z ="));
        client.open(URI, 1, &text);
        let document = json!({"textDocument": {"uri": URI}});
        let full = client.request("textDocument/semanticTokens/full", document.clone()).expect("tokens");
        let mut known = numbers(&full["data"]);
        let mut id = full["resultId"].clone();
        let edits = [
            ((20, 8), (20, 9), "b"),
            ((50, 0), (50, 0), "\n\n# a\n"),
            ((100, 0), (160, 0), ""),
            ((2, 0), (2, 0), "\"\"\""),
        ];
        for (version, ((from_line, from), (to_line, to), new)) in (2..).zip(edits) {
            client.change(URI, version, json!([change((from_line, from), (to_line, to), new)]));
            let start = |line: u32| text.split_inclusive('\n').take(line as usize).map(str::len).sum::<usize>();
            text.replace_range(start(from_line) + from as usize..start(to_line) + to as usize, new);
            let asked = with(document.clone(), "previousResultId", id.clone());
            let delta = client.request("textDocument/semanticTokens/full/delta", asked).expect("changes");
            assert!(!delta["edits"].is_null(), "{delta}");
            change_tokens(&mut known, &delta);
            id = delta["resultId"].clone();
            // The same text in a document that the server has not seen before has the same tokens.
            client.open("file:///fresh.rx", version, &text);
            let fresh = json!({"textDocument": {"uri": "file:///fresh.rx"}});
            let fresh = client.request("textDocument/semanticTokens/full", fresh).expect("tokens");
            assert!(known == numbers(&fresh["data"]), "{encoding}, version {version}");
        }
        let unknown = with(document.clone(), "previousResultId", json!("nothing"));
        let again = client.request("textDocument/semanticTokens/full/delta", unknown).expect("tokens");
        assert_eq!(numbers(&again["data"]), known);
        client.change(URI, 9, json!([{"text": MODULE}]));
        let part = with(document, "range", range(7, 0, 30));
        let part = client.request("textDocument/semanticTokens/range", part).expect("tokens");
        assert_eq!(numbers(&part["data"])[..5], [7, 8, 1, 6, 3]);
        assert_eq!(client.quit(), Some(0));
    }
}

#[test]
fn semantic_tokens_after_random_edits_are_those_of_a_fresh_document() {
    const PIECES: [&str; 10] = ["", "", " ", "    ", "\n", "# é🦀\n", "y = x\n", "    with R.dataflow():\n", "(", "\""];
    const FRESH: &str = "file:///fresh.rx";
    let bindings: String = (0..90).map(|at| format!("            a{at} = R.add(x, x)  # é🦀\n")).collect();
    let block = format!("        with R.dataflow():\n{bindings}            R.output(a1)\n        z =");
    for (encoding, seed) in ENCODINGS.into_iter().zip(1..) {
        let mut client = client(encoding);
        let mut text = MODULE.replace("        z =", &block);
        let mut random = Random(seed);
        client.open(URI, 1, &text);
        let (mut known, mut id) = (Vec::new(), json!("none yet"));
        for version in 2..80 {
            let from = text.floor_char_boundary(random.below(text.len() + 1));
            let to = text.floor_char_boundary((from + random.below(30)).min(text.len())).max(from);
            let piece = PIECES[random.below(PIECES.len())];
            let edit = json!({"range": range_of(&text, from..to, encoding), "text": piece});
            client.change(URI, version, json!([edit]));
            text.replace_range(from..to, piece);
            let asked = json!({"textDocument": {"uri": URI}, "previousResultId": id});
            let delta = client.request("textDocument/semanticTokens/full/delta", asked).expect("changes");
            change_tokens(&mut known, &delta);
            id = delta["resultId"].clone();
            client.open(FRESH, version, &text);
            let asked = json!({"textDocument": {"uri": FRESH}});
            let fresh = client.request("textDocument/semanticTokens/full", asked).expect("tokens");
            assert!(known == numbers(&fresh["data"]), "{encoding}, version {version}:\n{text}");
        }
        assert_eq!(client.quit(), Some(0));
    }
}

#[test]
fn broken_text_has_answers_too() {
    let mut client = client("utf-16");
    let broken = MODULE
        .replace("z = R.add(y[1], x)", "z = R.add(y[1], (x\n        é = \"")
        .replace("def main(x:", "def main(x: (");
    client.open(URI, 1, &broken);
    assert_eq!(client.request("textDocument/definition", at(8, 18)), Ok(json!([location(7, 8, 9)])));
    let renamed = client.request("textDocument/rename", with(at(7, 8), "newName", json!("w"))).expect("a rename");
    assert_eq!(renamed["changes"][URI].as_array().map(Vec::len), Some(2));
    for method in ["documentSymbol", "foldingRange", "semanticTokens/full"] {
        let method = format!("textDocument/{method}");
        let answer = client.request(&method, json!({"textDocument": {"uri": URI}})).expect("an answer");
        assert!(!answer.is_null(), "{method}");
    }
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn symbols_of_files_that_are_not_open_are_found_in_the_client_s_folders() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder"))
            .and_then(|()| std::fs::write(&path, text))
            .expect("written");
        path
    };
    let function = |name: &str| format!("@R.function\ndef {name}(x: R.Any):\n    return x\n");
    write("rx.toml", "exclude = [\"old\"]\n");
    write("first.rx", &function("attention"));
    write("nested/second.py", &format!("from tvm.script import relax as R\n{}", function("attend")));
    write("old/third.rx", &function("attention_before"));
    let open = write("open.rx", &function("attended_on_disk"));
    let uri = |path: &std::path::Path| format!("file://{}", path.display());

    let mut client = Client::start(&[]);
    let folders = json!([{"uri": uri(folder.path()), "name": "models"}]);
    client
        .request("initialize", json!({"processId": null, "capabilities": {}, "workspaceFolders": folders}))
        .expect("initialized");
    client.notify("initialized", json!({}));
    client.open(&uri(&open), 1, &function("attended_in_the_editor"));
    let find = |client: &mut Client| -> Vec<String> {
        let found = client.request("workspace/symbol", json!({"query": "atten"})).expect("symbols");
        found.as_array().expect("a row").iter().map(|symbol| symbol["name"].as_str().unwrap_or("").to_owned()).collect()
    };
    assert_eq!(find(&mut client), ["attended_in_the_editor", "attention", "attend"]);
    write("first.rx", &function("attention_again"));
    client.close(&uri(&open));
    assert_eq!(find(&mut client), ["attention_again", "attend", "attended_on_disk"]);
    client.notify("workspace/didChangeWorkspaceFolders", json!({"event": {"added": [], "removed": folders}}));
    assert_eq!(find(&mut client), Vec::<String>::new());
    assert_eq!(client.quit(), Some(0));
}
