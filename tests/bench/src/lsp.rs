//! A minimal client for benchmarks of language servers: one document, and answers with their time of arrival.
//!
//! The client declares and uses few capabilities, so that the measured time is the server's. Diagnostics are pushed,
//! and every server gets the same messages, except that a server without incremental changes gets whole texts.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The longest time to wait for an answer.
const DEADLINE: Duration = Duration::from_secs(180);

/// A message of the server with its time of arrival.
#[derive(Debug)]
pub struct Received {
    /// The message.
    pub message: Value,
    /// The time at which the last byte was read.
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
    /// The capabilities that the server returned from `initialize`.
    pub capabilities: Value,
}

impl Server {
    /// Starts `command` (words separated by blanks) in the folder of the document.
    ///
    /// # Errors
    /// If the server cannot be started or does not answer.
    pub fn start(command: &str, document: &Path) -> io::Result<Server> {
        let mut words = command.split_whitespace();
        let program = words.next().ok_or_else(|| io::Error::other("no command"))?;
        let folder = document.parent().unwrap_or(document);
        // A path is relative to the current folder, not to the document's; a bare name is looked up in PATH.
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

    /// The process id.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Whether changes may have ranges.
    pub fn takes_ranges(&self) -> bool {
        let sync = &self.capabilities["textDocumentSync"];
        sync.as_i64().or_else(|| sync["change"].as_i64()) == Some(2)
    }

    /// Opens the document; returns the time until its diagnostics arrive.
    ///
    /// # Errors
    /// If the server does not answer.
    pub fn open(&mut self, language: &str, text: &str) -> io::Result<Duration> {
        self.version = 1;
        let document = json!({"uri": self.uri, "languageId": language, "version": 1, "text": text});
        let message = notification("textDocument/didOpen", &json!({"textDocument": document}));
        let start = Instant::now();
        self.send(&message)?;
        Ok(self.diagnostics()?.0.duration_since(start))
    }

    /// Creates the message for a change: a range of a line, or the whole new text for a server that does not accept
    /// ranges.
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

    /// Waits for the diagnostics of the last version; returns their time of arrival and the number of publications
    /// until then. For a server that sends no versions, the first publication counts.
    ///
    /// # Errors
    /// If they do not arrive.
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
    /// If there is no answer.
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

    /// Returns the next message; requests of the server are answered with null.
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
    /// If the server has exited.
    pub fn send(&mut self, message: &Message) -> io::Result<()> {
        self.input.write_all(&message.0)?;
        self.input.flush()
    }
}

/// An encoded message with its header, so that encoding is not measured.
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
        // The server may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A change of one line. The line is ASCII, so columns are equal in every encoding.
pub struct Edit<'a> {
    /// The line, from 0.
    pub line: usize,
    /// The column, from 0.
    pub column: usize,
    /// The replaced text.
    pub old: &'a str,
    /// The new text.
    pub new: &'a str,
    /// The whole text after the change.
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
