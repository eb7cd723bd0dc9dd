//! Every request of the server, over a table of texts, clients and position encodings. Each request has a response. Its
//! positions are inside the text and the same in every encoding, and its edits can be applied.

use crate::client::{Client, change};
use crate::navigation::MODULE;
use crate::text::{ENCODINGS, byte, change_tokens, edited, in_bytes, numbers, position};
use serde_json::{Value, json};
use std::collections::HashSet;

const URI: &str = "file:///net.rx";

/// The error codes that are allowed: `RequestFailed` (a valid request that cannot be fulfilled) and `RequestCancelled`.
const REFUSALS: [i64; 2] = [-32803, -32800];

const WHOLE: &str = "@R.function
def main(x: R.Tensor((\"n\", 4), \"float32\"), w: R.Tensor((4, 8), \"float32\")):
    # a comment with 🦀 and é
    𝔶 = R.matmul(x, w); é = R.nn.relu(𝔶)
    s = R.str(\"🦀\"); z  =  R.add(é, 𝔶)
    return z
";

/// Returns complete texts, and texts in the middle of an edit.
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
        ("calls", MODULE.to_owned()),
    ]
}

/// Returns every request that reads a document: at position `at`, for the range from `at` to `end`, or for the whole
/// document.
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
    let on_type = |typed: &str| {
        let mut params = with("ch", json!(typed));
        params["options"] = options.clone();
        params
    };
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
        ("textDocument/onTypeFormatting", on_type("\n")),
        ("textDocument/onTypeFormatting", on_type(")")),
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

/// The number of items of one response for which follow-up requests are sent.
const MOST_ASKED: usize = 3;

/// The methods of follow-up requests.
const LATE: [&str; 6] = [
    "codeAction/resolve",
    "completionItem/resolve",
    "inlayHint/resolve",
    "codeLens/resolve",
    "callHierarchy/incomingCalls",
    "callHierarchy/outgoingCalls",
];

/// Returns the follow-up requests of a response: resolve requests for its first items, and the calls of functions.
fn follow_ups(method: &str, found: &Value) -> Vec<(&'static str, Value)> {
    let things = found["items"].as_array().or(found.as_array()).map(Vec::as_slice).unwrap_or_default();
    let late = things.iter().filter(|it| !it["data"].is_null()).take(MOST_ASKED);
    let [actions, completions, hints, lenses, incoming, outgoing] = LATE;
    let resolve = |method: &'static str| late.clone().map(|it| (method, it.clone())).collect();
    match method {
        "textDocument/codeAction" => resolve(actions),
        "textDocument/completion" => resolve(completions),
        "textDocument/inlayHint" => resolve(hints),
        "textDocument/codeLens" => resolve(lenses),
        "textDocument/prepareCallHierarchy" => {
            things.iter().flat_map(|it| [incoming, outgoing].map(|method| (method, json!({"item": it})))).collect()
        }
        _ => Vec::new(),
    }
}

/// Waits for a response. A refused request yields an object with its message.
fn answer(client: &mut Client, id: i64, call: &str) -> Value {
    match client.answer(id) {
        Ok(answer) => answer,
        Err(error) => {
            assert!(error["code"].as_i64().is_some_and(|code| REFUSALS.contains(&code)), "{call}: {error}");
            json!({"refused": error["message"]})
        }
    }
}

/// Converts semantic tokens from relative positions to byte offsets.
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

/// A client, its position encoding, and the semantic tokens that it has.
struct Session {
    client: Client,
    encoding: String,
    tokens: (Value, Vec<u64>),
}

impl Session {
    fn new(client: Client, encoding: &str) -> Session {
        Session { client, encoding: encoding.to_owned(), tokens: (json!("none yet"), Vec::new()) }
    }

    fn start(encoding: &str) -> Session {
        Session::new(Client::initialized(encoding), encoding)
    }

    /// Sends every request at a position of the document and returns the responses, with positions in bytes.
    fn everything(&mut self, text: &str, at: usize) -> Vec<(&'static str, Value)> {
        let (at, end) = (position(text, at, &self.encoding), position(text, text.len(), &self.encoding));
        self.ask_for_changes();
        let mut asked = requests(URI, &at, &end);
        let mut found = Vec::new();
        while !asked.is_empty() {
            let ids: Vec<_> =
                asked.drain(..).map(|(method, params)| (method, self.client.ask(method, params))).collect();
            for (method, id) in ids {
                let answer = answer(&mut self.client, id, method);
                asked.extend(follow_ups(method, &answer));
                if method == "textDocument/semanticTokens/full" {
                    assert!(self.tokens.1 == numbers(&answer["data"]), "what changed leads to what is");
                    self.tokens.0 = answer["resultId"].clone();
                }
                found.push((method, self.comparable(method, &answer, text)));
            }
        }
        found
    }

    /// Requests the changes of the semantic tokens since the last request, and applies them.
    fn ask_for_changes(&mut self) {
        let asked = json!({"textDocument": {"uri": URI}, "previousResultId": self.tokens.0});
        let changes = self.client.request("textDocument/semanticTokens/full/delta", asked).expect("changes");
        assert_eq!(changes["edits"].is_null(), self.tokens.0 == "none yet", "{changes}");
        change_tokens(&mut self.tokens.1, &changes);
    }

    /// Returns a response in a form that is equal for all clients: with byte offsets for positions and without `data`
    /// fields.
    fn comparable(&self, method: &str, answer: &Value, text: &str) -> Value {
        match method.contains("semanticTokens") {
            true => token_bytes(answer, text, &self.encoding),
            false => without_data(in_bytes(answer, text, &self.encoding)),
        }
    }
}

/// Removes the `data` fields, which only the server reads.
fn without_data(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(without_data).collect(),
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(key, _)| key != "data");
            kept.map(|(key, value)| (key, without_data(value))).collect()
        }
        other => other,
    }
}

/// Returns positions spread over a text, and the positions of function names.
fn places(text: &str) -> Vec<usize> {
    let all = text.char_indices().map(|(at, _)| at).step_by(41);
    let names = text.match_indices("def ").map(|(at, word)| at + word.len());
    all.chain(names).chain([text.len()]).collect()
}

#[test]
fn answers_are_the_same_in_every_encoding() {
    let mut sessions = ENCODINGS.map(Session::start);
    let mut asked = HashSet::new();
    for (version, (call, text)) in (1..).zip(texts()) {
        let mut all = Vec::new();
        for session in &mut sessions {
            match version {
                1 => session.client.open(URI, version, &text),
                _ => session.client.change(URI, version, json!([{"text": text}])),
            }
            let diagnostics = session.client.diagnostics(URI, Some(version));
            let diagnostics = in_bytes(&json!(diagnostics), &text, &session.encoding);
            let answers: Vec<_> = places(&text).into_iter().map(|at| session.everything(&text, at)).collect();
            all.push((diagnostics, answers));
        }
        assert!(all.windows(2).all(|pair| pair[0].0 == pair[1].0), "{call}: diagnostics differ");
        for (other, encoding) in all[1..].iter().zip(&ENCODINGS[1..]) {
            for (one, other) in all[0].1.iter().flatten().zip(other.1.iter().flatten()) {
                assert_eq!(one, other, "{call}: utf-8 and {encoding}");
            }
        }
        asked.extend(all[0].1.iter().flatten().map(|(method, _)| *method));
    }
    assert!(LATE.iter().all(|method| asked.contains(method)), "{asked:?}");
    for session in &mut sessions {
        assert_eq!(session.client.quit(), Some(0));
    }
}

/// The `initialize` parameters of real editors, recorded by `tests/editors/record.sh`.
const EDITORS: [(&str, &str); 5] = [
    ("eglot", include_str!("clients/eglot.json")),
    ("helix", include_str!("clients/helix.json")),
    ("neovim", include_str!("clients/neovim.json")),
    ("neovim 0.7", include_str!("clients/neovim-0.7.json")),
    ("vscode", include_str!("clients/vscode.json")),
];

#[test]
fn every_editor_is_answered() {
    for (editor, said) in EDITORS {
        let said: Value = serde_json::from_str(said).expect("JSON");
        let mut client = Client::start(&["--stdio"]);
        let offered = client.initialize_with(said["capabilities"].clone(), said["initializationOptions"].clone());
        let offered = &offered["capabilities"];
        let wanted = &said["capabilities"]["general"]["positionEncodings"];
        let encoding = offered["positionEncoding"].as_str().expect("an encoding");
        assert!(
            encoding == "utf-16" || wanted.as_array().is_some_and(|all| all.contains(&json!(encoding))),
            "{editor}"
        );
        client.open(URI, 1, WHOLE);
        let at = WHOLE.find("é = ").expect("it is there");
        let mut session = Session::new(client, encoding);
        let all = session.everything(WHOLE, at);
        let nothing: Vec<&str> = all.iter().filter(|(_, found)| found.is_null()).map(|(method, _)| *method).collect();
        assert_eq!(nothing, ["textDocument/signatureHelp", "textDocument/prepareCallHierarchy"], "{editor}");
        let renamed = &all.iter().find(|(method, _)| *method == "textDocument/rename").expect("a rename").1;
        let edits = if renamed["changes"].is_null() {
            &renamed["documentChanges"][0]["edits"]
        } else {
            &renamed["changes"][URI]
        };
        assert_eq!(edited(WHOLE, edits), WHOLE.replace("é =", "fresh =").replace("(é", "(fresh"), "{editor}");
        if !offered["diagnosticProvider"].is_null() {
            let params = json!({"textDocument": {"uri": URI}});
            let report = session.client.request("textDocument/diagnostic", params).expect("a report");
            assert_eq!(report["kind"], "full", "{editor}");
        }
        assert_eq!(session.client.quit(), Some(0));
    }
}

#[test]
fn edits_and_questions_at_once_end_like_a_fresh_server() {
    let mut session = Session::start("utf-16");
    let client = &mut session.client;
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
        answer(client, id, method);
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
    let mut fresh = Session::start("utf-16");
    fresh.client.open(URI, 201, &text);
    assert_eq!(client.diagnostics(URI, Some(201)), fresh.client.diagnostics(URI, Some(201)));
    let at = text.find("é = ").expect("it is there");
    assert_eq!(session.everything(&text, at), fresh.everything(&text, at));
    assert_eq!((session.client.quit(), fresh.client.quit()), (Some(0), Some(0)));
}

#[test]
fn a_large_file_is_answered_like_a_small_one() {
    file_of_many_bindings_is_answered(20_000);
}

#[test]
#[ignore = "sweep: .ci/full"]
fn a_file_of_12_megabytes_is_answered_like_a_small_one() {
    file_of_many_bindings_is_answered(100_000);
}

/// Sends every request in the middle of a function of `many` bindings, with 120 bytes a binding.
fn file_of_many_bindings_is_answered(many: u32) {
    let note = "a remark that makes the line as long as those of real programs are, which name weights and layers";
    let lines: String = (0..many).map(|at| format!("    v{} = R.nn.relu(v{at})  # {note}\n", at + 1)).collect();
    let text = format!("@R.function\ndef main(v0: R.Tensor((2, 4), \"float32\")):\n{lines}    return v{many}\n");
    assert!(text.len() > 120 * many as usize);
    let mut client = Client::initialized("utf-8");
    client.open(URI, 1, &text);
    let middle = many / 2;
    client.change(URI, 2, json!([change((middle, 4), (middle, 4), "")]));
    let (at, end) = (json!({"line": middle, "character": 6}), json!({"line": many + 3, "character": 0}));
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
