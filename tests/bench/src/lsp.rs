//! A client for benchmarks of language servers: one document, answers with the time they came at.
//!
//! It can take little and asks for little, so that the time is the server's: diagnostics are pushed, and every server gets
//! the same messages but for whole texts where it takes no ranges.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long one answer may take.
const DEADLINE: Duration = Duration::from_secs(180);

/// A message of the server and when it was read.
#[derive(Debug)]
pub struct Received {
    /// The message.
    pub message: Value,
    /// When its last byte had come.
    pub at: Instant,
}

/// A running server after `initialize`.
pub struct Server {
    process: Child,
    input: ChildStdin,
    received: Receiver<Received>,
    next_id: i64,
    uri: String,
    version: i64,
    /// What it said in `initialize`.
    pub capabilities: Value,
}

impl Server {
    /// Starts `command` (words between blanks) in the folder of the document it will be asked about.
    ///
    /// # Errors
    /// Where it cannot be started or does not answer.
    pub fn start(command: &str, document: &Path) -> io::Result<Server> {
        let mut words = command.split_whitespace();
        let program = words.next().ok_or_else(|| io::Error::other("no command"))?;
        let folder = document.parent().unwrap_or(document);
        // A path counts from here, not from the document's folder; a bare name is looked up in PATH.
        let path = Path::new(program);
        let path = if path.components().count() > 1 { std::path::absolute(path)? } else { path.to_owned() };
        let mut process = Command::new(path)
            .args(words)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        let (sender, received) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::with_capacity(1 << 20, output);
            while let Ok(Some(message)) = read_message(&mut output) {
                if sender.send(Received { message, at: Instant::now() }).is_err() {
                    return;
                }
            }
        });
        let uri = format!("file://{}", document.display());
        let mut server = Server { process, input, received, next_id: 0, uri, version: 0, capabilities: Value::Null };
        let capabilities = json!({
            "general": {"positionEncodings": ["utf-16", "utf-8"]},
            "textDocument": {
                "publishDiagnostics": {"versionSupport": true, "relatedInformation": true},
                "hover": {"contentFormat": ["markdown", "plaintext"]},
                "completion": {"completionItem": {"snippetSupport": true}},
                "semanticTokens": {"requests": {"full": {"delta": true}, "range": true},
                    "tokenTypes": [], "tokenModifiers": [], "formats": ["relative"]},
            },
        });
        let root = format!("file://{}", folder.display());
        let params = json!({"processId": std::process::id(), "rootUri": root, "capabilities": capabilities,
            "workspaceFolders": [{"uri": root, "name": "bench"}]});
        server.capabilities = server.request("initialize", params)?.message["result"]["capabilities"].clone();
        server.notify("initialized", &json!({}))?;
        Ok(server)
    }

    /// The process's number.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Whether changes may name ranges.
    pub fn takes_ranges(&self) -> bool {
        let sync = &self.capabilities["textDocumentSync"];
        sync.as_i64().or_else(|| sync["change"].as_i64()) == Some(2)
    }

    /// Opens the document; the time until its diagnostics are there.
    ///
    /// # Errors
    /// Where the server does not answer.
    pub fn open(&mut self, language: &str, text: &str) -> io::Result<Duration> {
        self.version = 1;
        let document = json!({"uri": self.uri, "languageId": language, "version": 1, "text": text});
        let message = notification("textDocument/didOpen", &json!({"textDocument": document}));
        let start = Instant::now();
        self.send(&message)?;
        Ok(self.diagnostics()?.0.duration_since(start))
    }

    /// A change as it is sent: a piece of a line, or the whole new text for a server that takes no ranges.
    pub fn change(&mut self, edit: &Edit<'_>) -> Message {
        self.version += 1;
        let content = match self.takes_ranges() {
            true => json!({"text": edit.new, "range": {
                "start": {"line": edit.line, "character": edit.column},
                "end": {"line": edit.line, "character": edit.column + edit.old.len()}}}),
            false => json!({"text": edit.after}),
        };
        let document = json!({"uri": self.uri, "version": self.version});
        notification("textDocument/didChange", &json!({"textDocument": document, "contentChanges": [content]}))
    }

    /// Waits for the diagnostics of the last version: when they came, and how many publications there were until then. A
    /// server that names no versions has its first publication taken.
    ///
    /// # Errors
    /// Where they do not come.
    pub fn diagnostics(&mut self) -> io::Result<(Instant, usize)> {
        let mut publications = 0;
        loop {
            let Received { message, at } = self.receive()?;
            if message["method"] != "textDocument/publishDiagnostics" || message["params"]["uri"] != self.uri {
                continue;
            }
            publications += 1;
            if message["params"]["version"].as_i64().is_none_or(|version| version >= self.version) {
                return Ok((at, publications));
            }
        }
    }

    /// Sends a request about the document and waits for its answer.
    ///
    /// # Errors
    /// Where there is none.
    pub fn ask(&mut self, method: &str, mut params: Value) -> io::Result<Received> {
        params["textDocument"] = json!({"uri": self.uri});
        self.request(method, params)
    }

    fn request(&mut self, method: &str, params: Value) -> io::Result<Received> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&Message::new(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})))?;
        loop {
            let received = self.receive()?;
            if received.message.get("method").is_none() && received.message["id"] == id {
                return Ok(received);
            }
        }
    }

    /// The next message; what the server itself asks is answered with nothing.
    fn receive(&mut self) -> io::Result<Received> {
        let received = self.received.recv_timeout(DEADLINE).map_err(|error| match error {
            RecvTimeoutError::Timeout => io::Error::other(format!("no answer in {} s", DEADLINE.as_secs())),
            RecvTimeoutError::Disconnected => io::Error::other("the server is gone"),
        })?;
        if let (Some(id), Some(_)) = (received.message.get("id"), received.message.get("method")) {
            self.send(&Message::new(&json!({"jsonrpc": "2.0", "id": id, "result": null})))?;
        }
        Ok(received)
    }

    fn notify(&mut self, method: &str, params: &Value) -> io::Result<()> {
        self.send(&notification(method, params))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// Where the server is gone.
    pub fn send(&mut self, message: &Message) -> io::Result<()> {
        self.input.write_all(&message.0)?;
        self.input.flush()
    }
}

/// A message with its frame, so that a clock need not run while it is written.
pub struct Message(Vec<u8>);

impl Message {
    fn new(message: &Value) -> Message {
        let body = message.to_string();
        Message(format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes())
    }
}

fn notification(method: &str, params: &Value) -> Message {
    Message::new(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A change of one line, in ASCII, so that columns are the same in every encoding.
pub struct Edit<'a> {
    /// From 0.
    pub line: usize,
    /// From 0.
    pub column: usize,
    /// What stands there.
    pub old: &'a str,
    /// What replaces it.
    pub new: &'a str,
    /// The whole text with it.
    pub after: &'a str,
}

fn read_message(input: &mut impl BufRead) -> io::Result<Option<Value>> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let header = line.trim_end();
        if header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = Vec::new();
    input.take(length).read_to_end(&mut body)?;
    serde_json::from_slice(&body).map(Some).map_err(io::Error::other)
}
