//! Sessions with the real server: messages of an editor and the server's messages in response.

use crate::client::{Client, change};
use serde_json::{Value, json};

const URI: &str = "file:///net.rx";

/// A call whose argument does not match the prim_func's buffer: line 14 declares the argument, line 16 passes it.
const MISMATCH: &str = r#"# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.script import relax as R
@I.ir_module
class Module:
    @T.prim_func
    def relu(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            with T.sblock("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(x[vi, vj])
                T.writes(y[vi, vj])
                y[vi, vj] = T.max(x[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor((4, 9), "float32")) -> R.Tensor((4, 8), "float32"):
        cls = Module
        y = R.call_tir(cls.relu, (x,), out_ty=R.Tensor((4, 8), "float32"))
        return y
"#;

fn position(line: u32, column: u32) -> Value {
    json!({"textDocument": {"uri": URI}, "position": {"line": line, "character": column}})
}

#[test]
fn fixed_mistake_is_no_longer_published() {
    let mut client = Client::initialized("utf-16");
    client.open(URI, 1, MISMATCH);
    let diagnostics = client.diagnostics(URI, Some(1));
    let [mistake] = &diagnostics[..] else { panic!("one mistake, one diagnostic: {diagnostics:?}") };
    assert_eq!(mistake["code"], "RX0501");
    assert_eq!(mistake["severity"], 1);
    assert_eq!(mistake["source"], "rx");
    assert!(mistake["codeDescription"]["href"].is_string());
    assert_eq!(mistake["range"]["start"]["line"], 17);
    let related = mistake["relatedInformation"].as_array().expect("the places that disagree");
    let buffer = related.iter().find(|it| it["location"]["range"]["start"]["line"] == 6);
    assert_eq!(buffer.map(|it| &it["location"]["uri"]), Some(&json!(URI)));

    client.change(URI, 2, json!([change((15, 29), (15, 30), "8")]));
    assert_eq!(client.diagnostics(URI, Some(2)), Vec::<Value>::new());

    let hover = client.request("textDocument/hover", position(17, 8)).expect("a hover");
    let text = hover["contents"]["value"].as_str().expect("Markdown");
    assert!(text.contains("R.Tensor((4, 8)") && text.contains("```"), "{text}");
    assert_eq!(hover["range"]["start"], json!({"line": 17, "character": 8}));

    client.close(URI);
    assert_eq!(client.diagnostics(URI, None), Vec::<Value>::new());
    assert_eq!(client.request("textDocument/hover", position(17, 8)), Ok(Value::Null));
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn columns_are_counted_as_agreed() {
    let text =
        "@R.function\ndef main(x: R.Tensor((2,), \"float32\")):\n    y = (R.str(\"🦀é\"), nowhere)\n    return y\n";
    for (encoding, crab) in [("utf-8", 4 + 2), ("utf-16", 2 + 1), ("utf-32", 1 + 1)] {
        let mut client = Client::initialized(encoding);
        client.open(URI, 1, text);
        let diagnostics = client.diagnostics(URI, Some(1));
        let mistake = diagnostics.iter().find(|it| it["code"] == "RX0201").expect("`nowhere` is undefined");
        let start = 20 + crab;
        let range = json!({
            "start": {"line": 2, "character": start},
            "end": {"line": 2, "character": start + 7},
        });
        assert_eq!(mistake["range"], range, "{encoding}");
        client.change(URI, 2, json!([{"range": range, "text": "x"}]));
        assert_eq!(client.diagnostics(URI, Some(2)), Vec::<Value>::new(), "{encoding}");
        assert_eq!(client.quit(), Some(0));
    }
}

#[test]
fn unchanged_diagnostics_are_published_for_the_last_version() {
    let mut client = Client::initialized("utf-8");
    client.open(URI, 1, MISMATCH);
    let before = client.diagnostics(URI, Some(1));
    client.change(URI, 5, json!([change((18, 16), (18, 16), "  ")]));
    assert_eq!(client.diagnostics(URI, Some(5)), before);
    // A document that is opened twice has the second text.
    client.open(URI, 1, "");
    assert_eq!(client.diagnostics(URI, Some(1)), Vec::<Value>::new());
    // A client may send the whole text although the server supports incremental changes.
    client.change(URI, 2, json!([{"text": MISMATCH}]));
    assert_eq!(client.diagnostics(URI, Some(2)), before);
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn python_files_are_read_for_their_modules_only() {
    let mut client = Client::initialized("utf-8");
    let python = format!("import os\nprint(os.name ==\n    'posix')\n\n{MISMATCH}\nwhile True: pass\n");
    let document = json!({"uri": "file:///net.py", "languageId": "python", "version": 1, "text": python});
    client.notify("textDocument/didOpen", json!({"textDocument": document}));
    let codes: Vec<Value> =
        client.diagnostics("file:///net.py", Some(1)).iter().map(|mistake| mistake["code"].clone()).collect();
    assert_eq!(codes, ["RX0501"]);
    assert_eq!(client.quit(), Some(0));
}

/// A xorshift generator, so that every run makes the same edits.
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

/// Returns the line and the UTF-16 column of a byte offset.
fn place(text: &str, offset: usize) -> (u32, u32) {
    let before = &text[..offset];
    let line = before.matches('\n').count();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line as u32, before[start..].encode_utf16().count() as u32)
}

#[test]
fn a_burst_of_edits_ends_where_a_fresh_start_would() {
    const PIECES: [&str; 12] = ["", "8", ")", "(", "\n", "    ", "🦀", "x", "# é\n", ": R.Tensor", "\"", "return y\n"];
    let mut client = Client::initialized("utf-16");
    let mut text = MISMATCH.to_owned();
    let mut random = Random(7);
    client.open(URI, 0, &text);
    for version in 1..=200 {
        let from = text.floor_char_boundary(random.below(text.len() + 1));
        let to = text.floor_char_boundary((from + random.below(4)).min(text.len())).max(from);
        let piece = PIECES[random.below(PIECES.len())];
        client.change(URI, version, json!([change(place(&text, from), place(&text, to), piece)]));
        text.replace_range(from..to, piece);
        if version % 20 == 0 {
            let at = place(&text, text.floor_char_boundary(random.below(text.len())));
            client.request("textDocument/hover", position(at.0, at.1)).expect("an answer, if only null");
        }
    }
    let edited = client.diagnostics(URI, Some(200));
    client.close(URI);
    // A new version number, because diagnostics of the burst's versions may already be published.
    client.open(URI, 1000, &text);
    assert_eq!(edited, client.diagnostics(URI, Some(1000)), "{text}");
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn the_first_check_of_a_long_document_is_shown() {
    let mut client = Client::start(&[]);
    client.initialize(json!({"window": {"workDoneProgress": true}}));
    let uri = "file:///folder/long.rx";
    let line = "    y = R.add(x, x)\n";
    let body = line.repeat((4 << 20) / line.len() + 1);
    client.open(uri, 1, &format!("@R.function\ndef main(x: R.Tensor((4,), \"float32\")):\n{body}    return y\n"));
    let created = client.message("window/workDoneProgress/create");
    client.respond(&created["id"], Value::Null);
    let begun = client.message("$/progress");
    assert_eq!(begun["params"]["token"], created["params"]["token"]);
    assert_eq!(begun["params"]["value"]["title"], "Checking long.rx");
    assert_eq!(client.message("$/progress")["params"]["value"]["kind"], "end");
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn memory_of_closed_documents_is_given_back() {
    if cfg!(not(target_os = "linux")) {
        println!("skipped: only Linux shows the resident memory");
        return;
    }
    const FILES: i32 = 16;
    let mut client = Client::initialized("utf-8");
    let lines: String = (0..10_000).map(|at| format!("    v{} = R.nn.relu(v{at})  # a note\n", at + 1)).collect();
    let text = format!("@R.function\ndef main(v0: R.Tensor((2, 4), \"float32\")):\n{lines}    return v10000\n");
    let uri = |at: i32| format!("file:///{at}.rx");
    for at in 0..FILES {
        client.open(&uri(at), 1, &text);
        assert_eq!(client.diagnostics(&uri(at), Some(1)), Vec::<Value>::new());
    }
    let open = client.memory().expect("its memory");
    (0..FILES).for_each(|at| client.close(&uri(at)));
    // The memory is given back before the server handles the second of two requests.
    for _ in 0..2 {
        client.request("workspace/symbol", json!({"query": "none"})).expect("an answer");
    }
    let closed = client.memory().expect("its memory");
    assert!(closed < open / 2, "{closed} bytes of {open} after all documents are closed");
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn the_syntax_tree_is_shown() {
    let mut client = Client::initialized("utf-16");
    client.open("file:///net.rx", 1, "@R.function\ndef main(x: R.Any):\n    return x\n");
    let range = json!({"start": {"line": 2, "character": 0}, "end": {"line": 2, "character": 4}});
    let arguments = json!(["file:///net.rx", range]);
    let asked = json!({"command": "rx.syntaxTree", "arguments": arguments});
    let tree = client.request("workspace/executeCommand", asked).expect("a tree");
    assert_eq!(tree, "Function(Relax) `main` 1:1-4:1\n  Return 3:5-3:13\n    Name 3:12-3:13  x\n");
    let wrong = json!({"command": "rx.syntaxTree", "arguments": ["file:///net.rx", "here"]});
    assert_eq!(client.request("workspace/executeCommand", wrong).expect_err("no range")["code"], -32602);
    assert_eq!(client.quit(), Some(0));
}
