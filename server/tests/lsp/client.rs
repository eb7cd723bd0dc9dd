//! A client for tests: starts the real binary and communicates over its pipes. No test sleeps: every wait is for a
//! message, with a deadline.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The time limit for a message before the test fails. It is generous, for busy machines.
const DEADLINE: Duration = Duration::from_secs(120);

/// A running server and the client's side of the session.
pub struct Client {
    server: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Messages that arrived while the client waited for another one.
    seen: VecDeque<Value>,
    next_id: i64,
}

impl Client {
    /// Starts a server and sends it nothing.
    pub fn start(arguments: &[&str]) -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rx-lsp"));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().expect("the server starts");
        let output = server.stdout.take().expect("its output is a pipe");
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read_frame(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = server.stdin.take();
        Client { server, input, messages, seen: VecDeque::new(), next_id: 0 }
    }

    /// Starts a server and sends `initialize` with [all capabilities](everything).
    pub fn initialized(encoding: &str) -> Client {
        let mut client = Client::start(&["--stdio"]);
        let result = client.initialize(everything(encoding));
        assert_eq!(result["capabilities"]["positionEncoding"], encoding);
        client
    }

    pub fn initialize(&mut self, capabilities: Value) -> Value {
        self.initialize_with(capabilities, Value::Null)
    }

    /// As [`Client::initialize`], with settings as `initializationOptions`.
    pub fn initialize_with(&mut self, capabilities: Value, options: Value) -> Value {
        let params = json!({
            "processId": std::process::id(), "rootUri": null,
            "capabilities": capabilities, "initializationOptions": options,
        });
        let result = self.request("initialize", params).expect("initialize succeeds");
        self.notify("initialized", json!({}));
        result
    }

    /// Writes raw bytes to the server's stdin.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the server reads");
    }

    fn send(&mut self, message: Value) {
        let body = message.to_string();
        self.send_raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and returns its id.
    pub fn ask(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for the response to a request: its result, or its error.
    pub fn answer(&mut self, id: i64) -> Result<Value, Value> {
        let answer = self.wait(|message| message.get("method").is_none() && message["id"] == id);
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].clone()),
        }
    }

    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Responds to a request of the server.
    pub fn respond(&mut self, id: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// Waits for the next request or notification with this method.
    pub fn message(&mut self, method: &str) -> Value {
        self.wait(|message| message["method"] == method)
    }

    /// Waits for the error response to undecodable input.
    pub fn complaint(&mut self) -> Value {
        self.wait(|message| message.get("method").is_none() && message["id"].is_null())["error"].clone()
    }

    pub fn open(&mut self, uri: &str, version: i32, text: &str) {
        let document = json!({"uri": uri, "languageId": "rx", "version": version, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    pub fn change(&mut self, uri: &str, version: i32, changes: Value) {
        let document = json!({"uri": uri, "version": version});
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
    }

    pub fn close(&mut self, uri: &str) {
        self.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    }

    /// Waits for the diagnostics of this version of a document, and drops those of other versions.
    pub fn diagnostics(&mut self, uri: &str, version: Option<i32>) -> Vec<Value> {
        let published = self.wait(|message| {
            let params = &message["params"];
            message["method"] == "textDocument/publishDiagnostics"
                && params["uri"] == uri
                && params.get("version").and_then(Value::as_i64) == version.map(i64::from)
        });
        published["params"]["diagnostics"].as_array().expect("a list of diagnostics").clone()
    }

    /// Waits for the first message that `wanted` accepts.
    fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.seen.iter().position(&wanted) {
            return self.seen.remove(at).expect("it was just found");
        }
        let deadline = Instant::now() + DEADLINE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left) {
                Ok(message) if wanted(&message) => return message,
                Ok(message) => self.seen.push_back(message),
                Err(error) => panic!("no such message ({error}); came instead: {:?}", self.seen),
            }
        }
    }

    /// Returns the messages that arrived and were not waited for.
    pub fn unread(&self) -> impl Iterator<Item = &Value> {
        self.seen.iter()
    }

    /// Returns the server's resident memory in bytes. `None` on a system that does not show it.
    pub fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.server.kill().and_then(|()| self.server.wait()).expect("the server ends");
    }

    /// Closes the server's stdin.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Waits for the server to end and returns its exit status.
    pub fn status(&mut self) -> Option<i32> {
        // The output ends with the process. Remaining messages are read so that the server does not block on writing
        // them.
        let deadline = Instant::now() + DEADLINE;
        while let Ok(message) = self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.seen.push_back(message);
        }
        assert!(Instant::now() < deadline, "the server goes on");
        self.server.wait().expect("the server ended").code()
    }

    /// Sends `shutdown` and `exit`, and returns the server's exit status.
    pub fn quit(&mut self) -> Option<i32> {
        assert_eq!(self.request("shutdown", Value::Null), Ok(Value::Null));
        self.notify("exit", Value::Null);
        self.status()
    }
}

/// Returns the capabilities of a client with the position encoding `encoding` that supports every form of response. It
/// does not pull diagnostics, and it does not support progress, whose requests the tests would have to answer.
pub fn everything(encoding: &str) -> Value {
    let markup = json!(["markdown", "plaintext"]);
    json!({
        "general": {"positionEncodings": [encoding]},
        "workspace": {"workspaceEdit": {"documentChanges": true}, "applyEdit": true},
        "textDocument": {
            "publishDiagnostics": {
                "relatedInformation": true, "codeDescriptionSupport": true, "dataSupport": true, "versionSupport": true,
            },
            "hover": {"contentFormat": markup},
            "rename": {"prepareSupport": true},
            "documentSymbol": {"hierarchicalDocumentSymbolSupport": true},
            "codeAction": {
                "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "source", "refactor"]}},
                "isPreferredSupport": true, "dataSupport": true, "resolveSupport": {"properties": ["edit"]},
            },
            "completion": {"completionItem": {
                "snippetSupport": true, "documentationFormat": markup,
                "resolveSupport": {"properties": ["documentation"]}, "tagSupport": {"valueSet": [1]},
            }},
            "signatureHelp": {"signatureInformation": {
                "documentationFormat": markup, "activeParameterSupport": true,
                "parameterInformation": {"labelOffsetSupport": true},
            }},
            "inlayHint": {"resolveSupport": {"properties": ["tooltip"]}},
        },
    })
}

impl Drop for Client {
    fn drop(&mut self) {
        // The server is still running only if the test failed.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Reads the next message of the server; `None` when the server has ended.
fn read_frame(output: &mut BufReader<ChildStdout>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().strip_prefix("Content-Length: ") {
            Some(value) => length = value.parse().expect("a length"),
            None if line.trim_end().is_empty() => break,
            None => panic!("a strange header: {line:?}"),
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).expect("JSON"))
}

/// Returns a change in the protocol's form, from the start and end (line, column) and the new text.
pub fn change(start: (u32, u32), end: (u32, u32), text: &str) -> Value {
    let position = |(line, column)| json!({"line": line, "character": column});
    json!({"range": {"start": position(start), "end": position(end)}, "text": text})
}
