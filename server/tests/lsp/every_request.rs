//! Every request of the server, over a table of texts, clients and encodings: each has an answer, its places lie in the text and
//! are the same whatever a column counts, and its edits apply.

use crate::client::{Client, change};
use serde_json::{Value, json};

const URI: &str = "file:///net.rx";

/// What an error may be: a request that makes sense and cannot be granted, or one that was cancelled.
const REFUSALS: [i64; 2] = [-32803, -32800];

const WHOLE: &str = "@R.function
def main(x: R.Tensor((\"n\", 4), \"float32\"), w: R.Tensor((4, 8), \"float32\")):
    # a comment with 🦀 and é
    𝔶 = R.matmul(x, w); é = R.nn.relu(𝔶)
    s = R.str(\"🦀\"); z  =  R.add(é, 𝔶)
    return z
";

/// Texts as they are and as they are while somebody writes them.
fn texts() -> Vec<(&'static str, String)> {
    vec![
        ("whole", WHOLE.to_owned()),
        ("crlf", WHOLE.replace('\n', "\r\n")),
        ("a mistake", WHOLE.replace("relu", "relo")),
        ("an unclosed bracket", WHOLE.replace("(x, w)", "(x, w")),
        ("a torn annotation", WHOLE.replace("w: R.Tensor((4, 8), \"float32\")", "w: R.Tensor((4, 8")),
        ("a missing body", WHOLE.lines().take(2).map(|line| format!("{line}\n")).collect()),
        ("an unclosed string", WHOLE.replace("\"🦀\"", "\"🦀")),
        ("nothing", String::new()),
    ]
}

/// Every request that reads a document, about a position in it that is behind this one.
fn requests(uri: &str, at: &Value, end: &Value) -> Vec<(&'static str, Value)> {
    let document = json!({"uri": uri});
    let place = json!({"textDocument": document, "position": at});
    let with = |key: &str, value: Value| {
        let mut params = place.clone();
        params[key] = value;
        params
    };
    let zero = json!({"line": 0, "character": 0});
    let (whole, rest) = (json!({"start": zero, "end": end}), json!({"start": at, "end": end}));
    let of = |range: &Value| json!({"textDocument": document, "range": range});
    let options = json!({"tabSize": 4, "insertSpaces": true});
    let command = |name: &str| json!({"command": name, "arguments": [uri, at]});
    let mut actions = of(&rest);
    actions["context"] = json!({"diagnostics": []});
    let mut range_formatting = of(&rest);
    range_formatting["options"] = options.clone();
    let plain = json!({"textDocument": document});
    vec![
        ("textDocument/hover", place.clone()),
        ("textDocument/definition", place.clone()),
        ("textDocument/references", with("context", json!({"includeDeclaration": true}))),
        ("textDocument/documentHighlight", place.clone()),
        ("textDocument/prepareRename", place.clone()),
        ("textDocument/rename", with("newName", json!("fresh"))),
        ("textDocument/completion", place.clone()),
        ("textDocument/signatureHelp", place.clone()),
        ("textDocument/prepareCallHierarchy", place.clone()),
        ("textDocument/selectionRange", json!({"textDocument": document, "positions": [at]})),
        ("textDocument/codeAction", actions),
        ("textDocument/inlayHint", of(&whole)),
        ("textDocument/formatting", json!({"textDocument": document, "options": options})),
        ("textDocument/rangeFormatting", range_formatting),
        ("textDocument/codeLens", plain.clone()),
        ("textDocument/documentLink", plain.clone()),
        ("textDocument/documentSymbol", plain.clone()),
        ("textDocument/foldingRange", plain.clone()),
        ("textDocument/semanticTokens/range", of(&whole)),
        ("textDocument/semanticTokens/full", plain),
        ("workspace/symbol", json!({"query": "ma"})),
        ("workspace/executeCommand", command("rx.why")),
        ("workspace/executeCommand", command("rx.graph")),
    ]
}

/// An answer, or that it was refused.
fn answer(client: &mut Client, id: i64, what: &str) -> Value {
    match client.answer(id) {
        Ok(answer) => answer,
        Err(error) => {
            assert!(error["code"].as_i64().is_some_and(|code| REFUSALS.contains(&code)), "{what}: {error}");
            json!({"refused": error["message"]})
        }
    }
}

/// The width of a character in an encoding.
fn width(character: char, encoding: &str) -> usize {
    match encoding {
        "utf-8" => character.len_utf8(),
        "utf-16" => character.len_utf16(),
        _ => 1,
    }
}

fn position(text: &str, byte: usize, encoding: &str) -> Value {
    let before = &text[..byte];
    let start = before.rfind('\n').map_or(0, |found| found + 1);
    let column: usize = before[start..].chars().map(|it| width(it, encoding)).sum();
    json!({"line": before.matches('\n').count(), "character": column})
}

/// The byte of a position, which must lie in the text and between characters.
fn byte(text: &str, line: usize, column: usize, encoding: &str) -> usize {
    let lines: Vec<&str> = text.split('\n').collect();
    assert!(line < lines.len(), "line {line} is outside the text");
    let start: usize = lines[..line].iter().map(|line| line.len() + 1).sum();
    let mut left = column;
    let mut end = start;
    for character in lines[line].chars() {
        if left == 0 {
            break;
        }
        let width = width(character, encoding);
        assert!(width <= left, "column {column} of line {line} is inside a character");
        left -= width;
        end += character.len_utf8();
    }
    assert_eq!(left, 0, "column {column} is outside line {line}");
    end
}

/// An answer with bytes in place of positions.
fn in_bytes(value: &Value, text: &str, encoding: &str) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| in_bytes(item, text, encoding)).collect(),
        Value::Object(fields) => match (fields.get("line"), fields.get("character")) {
            (Some(line), Some(column)) => {
                let number = |it: &Value| it.as_u64().expect("a number") as usize;
                json!(byte(text, number(line), number(column), encoding))
            }
            _ => fields.iter().map(|(key, value)| (key.clone(), in_bytes(value, text, encoding))).collect(),
        },
        other => other.clone(),
    }
}

/// Semantic tokens with bytes in place of differences.
fn token_bytes(answer: &Value, text: &str, encoding: &str) -> Value {
    let data: Vec<usize> =
        answer["data"].as_array().expect("tokens").iter().map(|it| it.as_u64().unwrap_or(0) as usize).collect();
    let (mut line, mut column) = (0, 0);
    let tokens = data.chunks_exact(5).map(|token| {
        (line, column) = if token[0] == 0 { (line, column + token[1]) } else { (line + token[0], token[1]) };
        let (start, end) = (byte(text, line, column, encoding), byte(text, line, column + token[2], encoding));
        json!([start, end, token[3], token[4]])
    });
    tokens.collect()
}

/// `text` with edits in bytes made.
fn edited(text: &str, edits: &Value) -> String {
    let mut edits: Vec<(usize, usize, String)> = edits
        .as_array()
        .expect("edits")
        .iter()
        .map(|edit| {
            let place = |end: &str| edit["range"][end].as_u64().expect("a byte") as usize;
            (place("start"), place("end"), edit["newText"].as_str().expect("a text").to_owned())
        })
        .collect();
    edits.sort();
    assert!(edits.windows(2).all(|pair| pair[0].1 <= pair[1].0), "edits overlap: {edits:?}");
    let mut text = text.to_owned();
    edits.into_iter().rev().for_each(|(from, to, new)| text.replace_range(from..to, &new));
    text
}

/// Everything about a place of the document, in bytes.
fn everything(client: &mut Client, text: &str, at: usize, encoding: &str) -> Vec<(String, Value)> {
    let (at, end) = (position(text, at, encoding), position(text, text.len(), encoding));
    let asked: Vec<(&str, i64)> =
        requests(URI, &at, &end).into_iter().map(|(method, params)| (method, client.ask(method, params))).collect();
    asked
        .into_iter()
        .map(|(method, id)| {
            let found = answer(client, id, method);
            let found = match method.contains("semanticTokens") {
                true => token_bytes(&found, text, encoding),
                false => in_bytes(&found, text, encoding),
            };
            (method.to_owned(), found)
        })
        .collect()
}

#[test]
fn answers_are_the_same_in_every_encoding() {
    let encodings = ["utf-8", "utf-16", "utf-32"];
    let mut clients = encodings.map(Client::initialized);
    for (version, (what, text)) in (1..).zip(texts()) {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).step_by(41).chain([text.len()]).collect();
        let mut all = Vec::new();
        for (client, encoding) in clients.iter_mut().zip(encodings) {
            match version {
                1 => client.open(URI, version, &text),
                _ => client.change(URI, version, json!([{"text": text}])),
            }
            let diagnostics = in_bytes(&json!(client.diagnostics(URI, Some(version))), &text, encoding);
            let answers: Vec<_> = places.iter().map(|at| everything(client, &text, *at, encoding)).collect();
            all.push((diagnostics, answers));
        }
        assert!(all.windows(2).all(|pair| pair[0].0 == pair[1].0), "{what}: diagnostics differ");
        for (other, encoding) in all[1..].iter().zip(&encodings[1..]) {
            for (one, other) in all[0].1.iter().flatten().zip(other.1.iter().flatten()) {
                assert_eq!(one, other, "{what}: utf-8 and {encoding}");
            }
        }
    }
    for client in &mut clients {
        assert_eq!(client.quit(), Some(0));
    }
}

#[test]
fn edits_give_the_text_that_was_meant() {
    for encoding in ["utf-8", "utf-16", "utf-32"] {
        for text in [WHOLE.to_owned(), WHOLE.replace('\n', "\r\n")] {
            let mut client = Client::initialized(encoding);
            client.open(URI, 1, &text);
            let before = client.diagnostics(URI, Some(1));
            let at = text.find("𝔶").expect("it is there");
            let all = everything(&mut client, &text, at, encoding);
            let found = |method: &str| &all.iter().find(|(name, _)| name == method).expect(method).1;
            let renamed = edited(&text, &found("textDocument/rename")["changes"][URI]);
            assert_eq!(renamed, text.replace('𝔶', "fresh"), "{encoding}");
            let formatted = edited(&text, found("textDocument/formatting"));
            assert!(formatted.contains("z = R.add(é, 𝔶)") && formatted.contains("🦀"), "{formatted}");
            assert_eq!(formatted.contains('\r'), text.contains('\r'));
            let hints = found("textDocument/inlayHint").as_array().expect("hints");
            let written: Value =
                hints.iter().flat_map(|hint| hint["textEdits"].as_array().cloned().unwrap_or_default()).collect();
            let annotated = edited(&text, &written);
            assert!(annotated.contains("𝔶: R.Tensor((n, 8), dtype=\"float32\") = R.matmul(x, w)"), "{annotated}");
            for (version, text) in (2..).zip([&renamed, &formatted, &annotated]) {
                client.change(URI, version, json!([{"text": text}]));
                assert_eq!(client.diagnostics(URI, Some(version)).len(), before.len(), "{text}");
            }
            assert_eq!(client.quit(), Some(0));
        }
    }
}

/// What editors say in `initialize`, as far as servers look at it.
fn profiles() -> [(&'static str, Value); 4] {
    let kinds = json!([
        "",
        "quickfix",
        "refactor",
        "refactor.extract",
        "refactor.inline",
        "refactor.rewrite",
        "source",
        "source.organizeImports"
    ]);
    [
        (
            "vscode",
            json!({
            "general": {"positionEncodings": ["utf-16"], "staleRequestSupport": {"cancel": true, "retryOnContentModified": []}},
            "workspace": {"applyEdit": true, "configuration": true, "workspaceFolders": true,
                "workspaceEdit": {"documentChanges": true, "resourceOperations": ["create", "rename", "delete"], "failureHandling": "textOnlyTransactional"},
                "didChangeWatchedFiles": {"dynamicRegistration": true, "relativePatternSupport": true},
                "didChangeConfiguration": {"dynamicRegistration": true}, "diagnostics": {"refreshSupport": true}},
            "textDocument": {
                "synchronization": {"dynamicRegistration": true, "willSave": true, "willSaveWaitUntil": true, "didSave": true},
                "publishDiagnostics": {"relatedInformation": true, "versionSupport": false, "tagSupport": {"valueSet": [1, 2]}, "codeDescriptionSupport": true, "dataSupport": true},
                "diagnostic": {"dynamicRegistration": true, "relatedDocumentSupport": false},
                "completion": {"contextSupport": true, "completionItem": {"snippetSupport": true, "documentationFormat": ["markdown", "plaintext"], "tagSupport": {"valueSet": [1]}, "resolveSupport": {"properties": ["documentation", "detail", "additionalTextEdits"]}}},
                "hover": {"contentFormat": ["markdown", "plaintext"]},
                "codeAction": {"isPreferredSupport": true, "dataSupport": true, "resolveSupport": {"properties": ["edit", "command"]}, "codeActionLiteralSupport": {"codeActionKind": {"valueSet": kinds}}},
                "documentSymbol": {"hierarchicalDocumentSymbolSupport": true}, "rename": {"prepareSupport": true},
                "foldingRange": {"lineFoldingOnly": true}, "documentLink": {"dynamicRegistration": true, "tooltipSupport": true},
                "inlayHint": {"resolveSupport": {"properties": ["tooltip", "textEdits", "label.tooltip"]}}},
            "window": {"workDoneProgress": true}}),
        ),
        (
            "neovim",
            json!({
            "general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]},
            "workspace": {"applyEdit": true, "configuration": true, "workspaceFolders": true,
                "workspaceEdit": {"resourceOperations": ["rename", "create", "delete"], "documentChanges": true},
                "didChangeWatchedFiles": {"dynamicRegistration": false, "relativePatternSupport": true}},
            "textDocument": {
                "diagnostic": {"dynamicRegistration": false, "tagSupport": {"valueSet": [1, 2]}, "dataSupport": true, "relatedInformation": true},
                "publishDiagnostics": {"relatedInformation": true, "tagSupport": {"valueSet": [1, 2]}, "dataSupport": true},
                "completion": {"completionItem": {"snippetSupport": true, "documentationFormat": ["markdown", "plaintext"], "resolveSupport": {"properties": ["additionalTextEdits", "command"]}}},
                "hover": {"contentFormat": ["markdown", "plaintext"]},
                "codeAction": {"isPreferredSupport": true, "dataSupport": true, "resolveSupport": {"properties": ["edit", "command"]}, "codeActionLiteralSupport": {"codeActionKind": {"valueSet": kinds}}},
                "documentSymbol": {"hierarchicalDocumentSymbolSupport": true}, "rename": {"prepareSupport": true},
                "foldingRange": {"lineFoldingOnly": true}, "inlayHint": {"resolveSupport": {"properties": ["textEdits", "tooltip", "location", "command"]}}},
            "window": {"workDoneProgress": true}}),
        ),
        (
            "eglot",
            json!({
            "general": {"positionEncodings": ["utf-32", "utf-8", "utf-16"]},
            "workspace": {"applyEdit": true, "executeCommand": {"dynamicRegistration": false}, "workspaceEdit": {"documentChanges": true},
                "didChangeWatchedFiles": {"dynamicRegistration": true}, "symbol": {"dynamicRegistration": false}, "configuration": true, "workspaceFolders": true},
            "textDocument": {
                "synchronization": {"dynamicRegistration": false, "willSave": true, "willSaveWaitUntil": true, "didSave": true},
                "completion": {"completionItem": {"snippetSupport": false, "deprecatedSupport": true, "resolveSupport": {"properties": ["documentation", "details", "additionalTextEdits"]}, "tagSupport": {"valueSet": [1]}}, "contextSupport": true},
                "hover": {"contentFormat": ["plaintext"]},
                "codeAction": {"resolveSupport": {"properties": ["edit", "command"]}, "dataSupport": true, "codeActionLiteralSupport": {"codeActionKind": {"valueSet": kinds}}, "isPreferredSupport": true},
                "documentSymbol": {"hierarchicalDocumentSymbolSupport": true}, "rename": {"dynamicRegistration": false, "prepareSupport": true},
                "publishDiagnostics": {"relatedInformation": false, "codeDescriptionSupport": false, "tagSupport": {"valueSet": [1, 2]}}},
            "window": {"showDocument": {"support": true}, "workDoneProgress": true}}),
        ),
        (
            "helix",
            json!({
            "general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]},
            "workspace": {"applyEdit": true, "configuration": true, "didChangeConfiguration": {"dynamicRegistration": false}, "workspaceFolders": true,
                "symbol": {"dynamicRegistration": false}, "executeCommand": {"dynamicRegistration": false}, "inlayHint": {"refreshSupport": false},
                "workspaceEdit": {"documentChanges": true, "resourceOperations": ["create", "rename", "delete"], "failureHandling": "abort", "normalizesLineEndings": false},
                "didChangeWatchedFiles": {"dynamicRegistration": true, "relativePatternSupport": false}},
            "textDocument": {
                "completion": {"completionItem": {"snippetSupport": true, "resolveSupport": {"properties": ["documentation", "detail", "additionalTextEdits"]}, "insertReplaceSupport": true, "deprecatedSupport": true, "tagSupport": {"valueSet": [1]}}},
                "hover": {"contentFormat": ["markdown"]}, "rename": {"dynamicRegistration": false, "prepareSupport": true},
                "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": kinds}}, "isPreferredSupport": true, "dataSupport": true, "resolveSupport": {"properties": ["edit", "command"]}},
                "publishDiagnostics": {"versionSupport": true, "tagSupport": {"valueSet": [1, 2]}}, "inlayHint": {"dynamicRegistration": false}},
            "window": {"workDoneProgress": true, "showDocument": {"support": true}}}),
        ),
    ]
}

#[test]
fn every_editor_is_answered() {
    for (editor, capabilities) in profiles() {
        let mut client = Client::start(&["--stdio"]);
        let offered = client.initialize(capabilities);
        let encoding = offered["capabilities"]["positionEncoding"].as_str().expect("an encoding").to_owned();
        client.open(URI, 1, WHOLE);
        let at = WHOLE.find("é = ").expect("it is there");
        let all = everything(&mut client, WHOLE, at, &encoding);
        let nothing: Vec<&str> = all.iter().filter(|(_, found)| found.is_null()).map(|(method, _)| &**method).collect();
        assert_eq!(nothing, ["textDocument/signatureHelp", "textDocument/prepareCallHierarchy"], "{editor}");
        if !offered["capabilities"]["diagnosticProvider"].is_null() {
            let params = json!({"textDocument": {"uri": URI}});
            assert_eq!(
                client.request("textDocument/diagnostic", params).expect("a report")["kind"],
                "full",
                "{editor}"
            );
        }
        assert_eq!(client.quit(), Some(0));
    }
}

#[test]
fn edits_and_questions_at_once_end_like_a_fresh_server() {
    let mut client = Client::initialized("utf-16");
    client.open(URI, 1, WHOLE);
    let origin = json!({"line": 3, "character": 9});
    let reads = requests(URI, &origin, &json!({"line": 6, "character": 0}));
    let mut asked = Vec::new();
    for turn in 0..200u32 {
        let version = i32::try_from(turn).expect("small") + 2;
        let edit = match turn % 4 {
            0 => change((4, 0), (4, 0), "    q = R.nn.relu(é)\n"),
            1 => change((4, 8), (4, 9), "T"),
            2 => change((4, 8), (4, 9), "R"),
            _ => change((4, 0), (5, 0), if turn % 40 == 3 { "" } else { "    u = R.abs(x)\n" }),
        };
        client.change(URI, version, json!([edit]));
        let (method, params) = &reads[turn as usize % reads.len()];
        let id = client.ask(method, params.clone());
        if turn % 7 == 0 {
            client.notify("$/cancelRequest", json!({"id": id}));
        }
        asked.push((*method, id));
    }
    for (method, id) in asked {
        answer(&mut client, id, method);
    }
    let mut text = WHOLE.to_owned();
    for turn in 0..200u32 {
        let start = text.match_indices('\n').nth(3).expect("four lines").0 + 1;
        match turn % 4 {
            0 => text.insert_str(start, "    q = R.nn.relu(é)\n"),
            1 => text.replace_range(start + 8..start + 9, "T"),
            2 => text.replace_range(start + 8..start + 9, "R"),
            _ => {
                let end = start + text[start..].find('\n').expect("a line") + 1;
                text.replace_range(start..end, if turn % 40 == 3 { "" } else { "    u = R.abs(x)\n" });
            }
        }
    }
    let mut fresh = Client::initialized("utf-16");
    fresh.open(URI, 201, &text);
    assert_eq!(client.diagnostics(URI, Some(201)), fresh.diagnostics(URI, Some(201)));
    let at = text.find("é = ").expect("it is there");
    assert_eq!(everything(&mut client, &text, at, "utf-16"), everything(&mut fresh, &text, at, "utf-16"));
    assert_eq!((client.quit(), fresh.quit()), (Some(0), Some(0)));
}

#[test]
fn a_large_file_is_answered_like_a_small_one() {
    let note = "a remark that makes the line as long as those of real programs are, which name weights and layers";
    let lines: String = (0..100_000).map(|at| format!("    v{} = R.nn.relu(v{at})  # {note}\n", at + 1)).collect();
    let text = format!("@R.function\ndef main(v0: R.Tensor((2, 4), \"float32\")):\n{lines}    return v100000\n");
    assert!(text.len() > 12_000_000);
    let mut client = Client::initialized("utf-8");
    client.open(URI, 1, &text);
    client.change(URI, 2, json!([change((50_000, 4), (50_000, 4), "")]));
    let (at, end) = (json!({"line": 50_000, "character": 6}), json!({"line": 100_003, "character": 0}));
    let asked: Vec<(&str, i64)> =
        requests(URI, &at, &end).into_iter().map(|(method, params)| (method, client.ask(method, params))).collect();
    assert_eq!(client.diagnostics(URI, Some(2)), Vec::<Value>::new());
    for (method, id) in asked {
        let found = answer(&mut client, id, method);
        if method == "textDocument/documentLink" {
            assert_eq!(found.as_array().map(Vec::len), Some(2000));
        }
        if found["function"] == "main" {
            assert_eq!((&found["whole"], found["nodes"].as_array().map(Vec::len)), (&json!(false), Some(400)));
        }
    }
    client.close(URI);
    assert_eq!(client.diagnostics(URI, None), Vec::<Value>::new());
    assert_eq!(client.quit(), Some(0));
}
