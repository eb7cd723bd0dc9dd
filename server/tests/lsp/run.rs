//! Runs of functions, with a mock of `rxrun` (`tests/stand_in`) that reports its arguments and its input to the test.

use crate::client::{Client, change};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

pub const TEXT: &str = r#"@I.ir_module
class Module:
    @T.prim_func
    def copy(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("copy"):
                vi = T.axis.spatial(4, i)
                y[vi] = x[vi]

    @R.function(private=True)
    def twice(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.add(x, x)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = cls.twice(x)
        return y

    @R.function
    def other(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.nn.relu(x)
        return y
"#;

pub const URI: &str = "untitled:net";

/// Failures of a child: the mock's behaviour, the message for a run of `main`, and the message for a stage of it.
pub const ENDINGS: [(&str, &str, &str); 4] = [
    ("fail", "`main` failed: net.rx:3: index 9 of 4", "`main` failed: net.rx:3: index 9 of 4"),
    ("crash", "memory allocation of 99 bytes failed", "memory allocation of 99 bytes failed"),
    (
        "garbage",
        "`main` failed: rxrun exited without a result",
        "`main` cannot be shown: rxrun exited without a result",
    ),
    (
        "emit-long",
        "`main` failed: rxrun exited without a result",
        "`main` cannot be shown: its text is longer than 64 MiB",
    ),
];

/// Returns the path of the mock, which cargo builds as an example.
fn stand_in() -> PathBuf {
    let server = Path::new(env!("CARGO_BIN_EXE_rx-lsp"));
    let name = format!("rxrun-stand-in{}", std::env::consts::EXE_SUFFIX);
    let path = server.parent().expect("a folder").join("examples").join(name);
    assert!(path.is_file(), "build the stand-in first: cargo build -p rx-server --examples");
    path
}

/// A server whose `rxrun` is the mock, and the socket on which the mock reports.
pub struct Bench {
    pub client: Client,
    pub listener: TcpListener,
}

/// A mock that has reported.
pub struct Running {
    socket: BufReader<TcpStream>,
    pub report: Value,
}

impl Bench {
    /// Starts a server whose mock behaves as `behave`, with a time limit for runs.
    pub fn new(behave: &str, capabilities: Value, seconds: f64) -> Bench {
        Bench::start(&[], behave, capabilities, seconds)
    }

    fn start(server_arguments: &[&str], behave: &str, capabilities: Value, seconds: f64) -> Bench {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let arguments = [format!("--behave={behave}"), format!("--port={port}")];
        let run = json!({"program": stand_in(), "arguments": arguments, "timeoutSeconds": seconds});
        let mut client = Client::start(server_arguments);
        let result = client.initialize_with(capabilities, json!({"run": run}));
        let commands = &result["capabilities"]["executeCommandProvider"]["commands"];
        assert!(commands.as_array().is_some_and(|all| all.contains(&json!("rx.run"))), "{commands}");
        Bench { client, listener }
    }

    /// Starts a server with a client without capabilities, which shows messages only.
    pub fn plain(behave: &str) -> Bench {
        Bench::new(behave, json!({}), 600.0)
    }

    /// Starts a server with a client that shows progress.
    pub fn progress(behave: &str) -> Bench {
        Bench::new(behave, json!({"window": {"workDoneProgress": true}}), 600.0)
    }

    pub fn run(&mut self, arguments: Value) -> i64 {
        self.client.ask("workspace/executeCommand", json!({"command": "rx.run", "arguments": arguments}))
    }

    /// Waits for a mock to report.
    pub fn running(&mut self) -> Running {
        let (socket, _) = self.listener.accept().expect("a stand-in");
        // A mock reports at once; only a broken one reaches this limit.
        socket.set_read_timeout(Some(Duration::from_secs(120))).expect("a deadline");
        let mut socket = BufReader::new(socket);
        let mut report = String::new();
        socket.read_line(&mut report).expect("a report");
        Running { socket, report: serde_json::from_str(&report).expect("JSON") }
    }

    /// Accepts the server's request to create a progress, and returns its token.
    pub fn accept_progress(&mut self) -> Value {
        let create = self.client.message("window/workDoneProgress/create");
        self.client.respond(&create["id"], Value::Null);
        create["params"]["token"].clone()
    }

    /// Waits for the next state of the progress.
    pub fn state(&mut self) -> Value {
        self.client.message("$/progress")["params"]["value"].clone()
    }

    /// Waits for the next message to the user. Returns whether it is an error, and its text.
    pub fn shown(&mut self) -> (bool, String) {
        let message = self.client.message("window/showMessage");
        let text = message["params"]["message"].as_str().expect("a text").to_owned();
        (message["params"]["type"] == 1, text)
    }

    /// Checks that the server still responds and ends normally.
    pub fn goes_on(mut self) {
        let lenses = self.client.request("textDocument/codeLens", json!({"textDocument": {"uri": URI}}));
        assert!(lenses.is_ok_and(|lenses| lenses.is_array()));
        assert_eq!(self.client.quit(), Some(0));
    }
}

impl Running {
    /// Waits until the mock is gone: the operating system closes the socket of a process that ended.
    pub fn is_gone(&mut self) {
        match self.socket.read(&mut [0]) {
            Ok(0) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            other => panic!("the stand-in is still there: {other:?}"),
        }
    }
}

#[test]
fn public_relax_functions_can_be_run_and_nothing_runs_unasked() {
    let mut bench = Bench::plain("run");
    bench.client.open(URI, 1, TEXT);
    assert_eq!(bench.client.diagnostics(URI, Some(1)), Vec::<Value>::new());
    let lenses = bench.client.request("textDocument/codeLens", json!({"textDocument": {"uri": URI}}));
    let lenses = lenses.expect("lenses");
    let run = |it: &&Value| it["command"]["command"] == "rx.run";
    let runs: Vec<&Value> = lenses.as_array().expect("a list").iter().filter(run).collect();
    let [main, other] = runs[..] else { panic!("two functions: {lenses}") };
    let start = json!({"line": 15, "character": 8});
    assert_eq!(main["range"], json!({"start": start, "end": {"line": 15, "character": 12}}));
    let command = json!({"title": "▶ Run `main`", "command": "rx.run", "arguments": [URI, "main"]});
    assert_eq!(main["command"], command);
    assert_eq!(other["range"]["start"]["line"], 21);
    bench.client.change(URI, 2, json!([change((15, 8), (15, 12), "first")]));
    let lenses = bench.client.request("textDocument/codeLens", json!({"textDocument": {"uri": URI}}));
    let lenses = lenses.expect("lenses");
    assert_eq!(
        lenses.as_array().and_then(|all| all.iter().find(run)).expect("a lens")["command"]["arguments"][1],
        "first"
    );
    // A child that was started by any of these requests would have connected by now.
    bench.listener.set_nonblocking(true).expect("a listener");
    let nobody = bench.listener.accept().expect_err("nothing was run");
    assert_eq!(nobody.kind(), ErrorKind::WouldBlock);
    bench.goes_on();
}

#[test]
fn a_function_of_one_of_several_modules_is_run_with_its_module() {
    let mut bench = Bench::plain("run");
    let (head, class) = TEXT.split_once("@I.ir_module").expect("a module");
    let other = class.replace("Module", "Other");
    bench.client.open(URI, 1, &format!("{head}@I.ir_module{class}\n@I.ir_module{other}"));
    let lenses = bench.client.request("textDocument/codeLens", json!({"textDocument": {"uri": URI}}));
    let lenses = lenses.expect("lenses");
    let runs: Vec<&Value> =
        lenses.as_array().expect("a list").iter().map(|lens| &lens["command"]["arguments"]).collect();
    let runs: Vec<&Value> = runs.into_iter().filter(|arguments| !arguments.is_null()).collect();
    let run = |function: &str, module: &str| json!([URI, function, null, module]);
    let all = [run("main", "Module"), run("other", "Module"), run("main", "Other"), run("other", "Other")];
    assert_eq!(runs, all.iter().collect::<Vec<_>>());
    let id = bench.run(json!([URI, "main", ["--module", "Module"], "Other"]));
    let report = bench.running().report;
    let arguments: Vec<&str> =
        report["arguments"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    // Of repeated options the last one counts.
    assert_eq!(arguments[arguments.len() - 3..], ["--module", "Module", "--module=Other"]);
    assert_eq!(bench.client.answer(id).expect("a result")["modules"], json!([]));
    let strange = bench.run(json!([URI, "main", null, 7]));
    assert_eq!(bench.client.answer(strange).expect_err("strange")["code"], -32602);
    bench.goes_on();
}

#[test]
fn the_text_as_it_is_now_is_run_with_progress() {
    let mut bench = Bench::progress("run");
    let folder = std::env::temp_dir().canonicalize().expect("a folder");
    let path = folder.join("rx no such file.rx");
    let uri = format!("file://{}", path.to_string_lossy().replace(' ', "%20"));
    bench.client.open(&uri, 1, "x");
    bench.client.change(&uri, 2, json!([change((0, 0), (0, 1), TEXT)]));
    let id = bench.run(json!([uri, "main", ["--dim", "n=4"]]));
    bench.accept_progress();
    let report = bench.running().report;
    assert_eq!(report["text"], TEXT);
    assert_eq!(report["folder"], json!(folder));
    let arguments: Vec<&str> =
        report["arguments"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let name = format!("--stdin-name={}", path.display());
    assert_eq!(arguments[..7], ["-", &name, "--format", "json", "--entry=main", "--values", "--profile"]);
    assert_eq!(arguments[arguments.len() - 2..], ["--dim", "n=4"]);

    let begin = bench.state();
    assert_eq!((&begin["kind"], &begin["cancellable"]), (&json!("begin"), &json!(true)));
    assert_eq!(begin["title"], "Running `main`");
    assert_eq!(bench.state()["message"], "checked, lowering");
    let building = bench.state();
    assert_eq!((&building["message"], &building["percentage"]), (&json!("building 1/4"), &json!(37)));
    assert_eq!(bench.state()["message"], "running on the CPU");
    let running = bench.state();
    assert_eq!((&running["message"], &running["percentage"]), (&json!("running on the CPU: 2/4 kernels"), &json!(75)));
    assert_eq!(bench.state()["kind"], "end");
    let message = "`main` ran in 1.9 ms: out0 float32 (1, 10), min -1, mean 0, max 1";
    assert_eq!(bench.shown(), (false, message.to_owned()));
    let result = bench.client.answer(id).expect("a result");
    assert_eq!((&result["ok"], &result["seconds"]), (&json!(true), &json!(0.0019)));
    assert_eq!(result["outputs"][0]["shape"], json!([1, 10]));
    assert_eq!(result["message"], message);
    assert_eq!((&result["values"], &result["kernels"]), (&json!([]), &json!([])));
    bench.goes_on();
}

#[test]
fn a_client_that_shows_the_answer_gets_no_message_beside_it() {
    let mut bench = Bench::plain("run");
    let run = json!({"program": stand_in(), "arguments": ["--behave=run"], "message": false});
    bench.client.notify("workspace/didChangeConfiguration", json!({"settings": {"rx": {"run": run}}}));
    bench.client.open(URI, 1, TEXT);
    let id = bench.run(json!([URI, "main"]));
    assert_eq!(bench.client.answer(id).expect("a result")["ok"], true);
    // A message would have been sent before the response.
    assert!(bench.client.unread().all(|message| message["method"] != "window/showMessage"));
    bench.goes_on();
}

#[test]
fn observed_values_are_in_the_answer() {
    let mut bench = Bench::plain("observed");
    bench.client.open(URI, 1, TEXT);
    let id = bench.run(json!([URI, "other"]));
    let result = bench.client.answer(id).expect("a result");
    assert_eq!(result["message"], "`other` ran in 1.9 ms");
    let range = |end| json!({"start": {"line": 22, "character": 8}, "end": {"line": 22, "character": end}});
    let value = &result["values"][0];
    assert_eq!((&value["name"], &value["range"], &value["mean"]), (&json!("y"), &range(9), &json!(0.5)));
    let kernel = json!({"name": "relu", "calls": 1, "seconds": 0.5, "ranges": [range(24)]});
    assert_eq!(result["kernels"], json!([kernel]));
    bench.goes_on();
}

#[test]
fn a_run_whose_observation_fails_has_run() {
    let mut bench = Bench::plain("observed-crash");
    bench.client.open(URI, 1, TEXT);
    let id = bench.run(json!([URI, "main"]));
    let (error, message) = bench.shown();
    assert!(
        !error && message.contains("ran in 1.9 ms; not all of its values are available: rxrun exited early"),
        "{message}"
    );
    assert_eq!(bench.client.answer(id).expect("a result")["ok"], true);
    bench.goes_on();
}

#[test]
fn an_observed_run_can_be_cancelled() {
    let mut bench = Bench::progress("observed-hang");
    bench.client.open(URI, 1, TEXT);
    let id = bench.run(json!([URI, "main"]));
    let token = bench.accept_progress();
    let mut running = bench.running();
    while bench.state()["message"] != "running to record values" {}
    bench.client.notify("window/workDoneProgress/cancel", json!({"token": token}));
    let result = bench.client.answer(id).expect("a result");
    assert_eq!((&result["ok"], &result["cancelled"]), (&json!(false), &json!(true)));
    running.is_gone();
    bench.goes_on();
}

#[test]
fn an_older_rxrun_runs_where_no_values_are_asked_for() {
    let mut bench = Bench::plain("old");
    bench.client.open(URI, 1, TEXT);
    let id = bench.run(json!([URI, "main"]));
    let (error, message) = bench.shown();
    assert!(error && message.contains("older than rx-lsp") && message.contains("rx.run.values"), "{message}");
    assert_eq!(bench.client.answer(id).expect("a result")["ok"], false);
    let run = json!({"program": stand_in(), "arguments": ["--behave=old"], "values": false});
    bench.client.notify("workspace/didChangeConfiguration", json!({"settings": {"rx": {"run": run}}}));
    let id = bench.run(json!([URI, "main"]));
    assert_eq!(bench.client.answer(id).expect("a result")["ok"], true);
    bench.goes_on();
}

#[test]
fn failure_of_the_child_is_a_message() {
    for (behave, expected, _) in ENDINGS {
        let mut bench = Bench::plain(behave);
        bench.client.open(URI, 1, TEXT);
        let id = bench.run(json!([URI, "main"]));
        bench.running();
        let (error, message) = bench.shown();
        assert!(error && message.contains(expected) && message.len() < 2000, "{behave}: {message}");
        let result = bench.client.answer(id).expect("a result");
        assert_eq!((&result["ok"], &result["cancelled"]), (&json!(false), &json!(false)), "{behave}");
        assert_eq!(result["message"], message);
        bench.goes_on();
    }
}

#[test]
fn a_hanging_child_can_be_cancelled() {
    let mut bench = Bench::progress("hang");
    bench.client.open(URI, 1, TEXT);
    let id = bench.run(json!([URI, "main"]));
    let token = bench.accept_progress();
    let mut running = bench.running();
    bench.client.notify("window/workDoneProgress/cancel", json!({"token": "another"}));
    bench.client.notify("window/workDoneProgress/cancel", json!({"token": token}));
    let result = bench.client.answer(id).expect("a result");
    assert_eq!((&result["ok"], &result["cancelled"]), (&json!(false), &json!(true)));
    running.is_gone();

    // The same when the client cancels the request itself, whose response is then the protocol's error.
    let id = bench.run(json!([URI, "main"]));
    bench.accept_progress();
    let mut running = bench.running();
    bench.client.notify("$/cancelRequest", json!({"id": id}));
    assert_eq!(bench.client.answer(id).expect_err("cancelled")["code"], -32800);
    running.is_gone();
    bench.goes_on();
}

#[test]
fn a_second_run_ends_the_first_and_leaving_ends_both() {
    let mut bench = Bench::plain("hang");
    bench.client.open(URI, 1, TEXT);
    bench.client.open("untitled:b", 1, TEXT);
    let first = bench.run(json!([URI, "main"]));
    let mut running = bench.running();
    // Without arguments, the document that was opened or changed most recently is run.
    let other = bench.run(json!([]));
    let mut other_running = bench.running();
    assert_eq!(other_running.report["arguments"][1], "--stdin-name=b");
    let second = bench.run(json!([URI, "other"]));
    let result = bench.client.answer(first).expect("a result");
    assert_eq!(result["message"], "`main` was cancelled: another run of this file started");
    running.is_gone();
    let mut running = bench.running();
    assert_eq!(bench.client.request("shutdown", Value::Null), Ok(Value::Null));
    for id in [other, second] {
        assert_eq!(bench.client.answer(id).expect("a result")["cancelled"], true);
    }
    running.is_gone();
    other_running.is_gone();
    bench.client.notify("exit", Value::Null);
    assert_eq!(bench.client.status(), Some(0));
}

#[test]
fn a_client_that_hangs_up_leaves_no_child() {
    let mut bench = Bench::plain("hang");
    bench.client.open(URI, 1, TEXT);
    bench.run(json!([URI, "main"]));
    let mut running = bench.running();
    bench.client.hang_up();
    assert_eq!(bench.client.status(), Some(1));
    running.is_gone();
}

#[test]
fn an_editor_that_crashes_leaves_no_child() {
    if !Path::new("/proc/self/stat").exists() {
        println!("skipped: no /proc on this system");
        return;
    }
    // Any process that runs until it is stopped serves as the editor. The server's stdin stays open, because another
    // process may hold the pipe.
    let mut editor = Command::new(env!("CARGO_BIN_EXE_rx-lsp"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("a stand-in for the editor");
    let editor_id = editor.id().to_string();
    let mut bench = Bench::start(&["--clientProcessId", &editor_id], "hang", json!({}), 600.0);
    bench.client.open(URI, 1, TEXT);
    bench.run(json!([URI, "main"]));
    let mut running = bench.running();
    editor.kill().and_then(|()| editor.wait()).expect("the stand-in ends");
    running.is_gone();
    assert_eq!(bench.client.status(), Some(1));
}

#[test]
fn a_run_has_its_time() {
    // The child does not read its stdin, and the text is larger than the pipe's buffer.
    let mut bench = Bench::new("deaf", json!({}), 0.2);
    let text = format!("{TEXT}{}", "# more\n".repeat(1 << 18));
    bench.client.open(URI, 1, &text);
    let id = bench.run(json!([URI, "main"]));
    assert_eq!(bench.shown(), (true, "`main` was stopped after 200.0 ms (setting rx.run.timeoutSeconds)".to_owned()));
    assert_eq!(bench.client.answer(id).expect("a result")["ok"], false);
    bench.goes_on();
}

#[test]
fn invalid_run_requests_are_refused() {
    let mut bench = Bench::plain("run");
    bench.run(json!([]));
    assert_eq!(bench.shown(), (true, "nothing was run: no document is open".to_owned()));
    let id = bench.run(json!([URI]));
    assert_eq!(bench.shown(), (true, "nothing was run: this document is not open".to_owned()));
    assert_eq!(bench.client.answer(id).expect("a result")["ok"], false);
    for strange in [json!([1]), json!([URI, 1]), json!([URI, "main", "--dim"]), json!([URI, "main", [1]])] {
        let id = bench.run(strange);
        assert_eq!(bench.client.answer(id).expect_err("strange")["code"], -32602);
    }
    let unknown = json!({"command": "rx.destroy", "arguments": []});
    assert_eq!(bench.client.request("workspace/executeCommand", unknown).expect_err("unknown")["code"], -32602);
    // Later settings replace earlier ones.
    let run = json!({"program": "/no/such/rxrun"});
    bench.client.notify("workspace/didChangeConfiguration", json!({"settings": {"rx": {"run": run}}}));
    bench.client.open(URI, 1, TEXT);
    bench.run(json!([URI, "main"]));
    let (error, message) = bench.shown();
    assert!(error && message.starts_with("/no/such/rxrun cannot be started: "), "{message}");
    bench.goes_on();
}

#[test]
fn real_rxrun_runs_the_text_of_the_editor() {
    let beside =
        Path::new(env!("CARGO_BIN_EXE_rx-lsp")).with_file_name(format!("rxrun{}", std::env::consts::EXE_SUFFIX));
    if !beside.is_file() {
        println!("skipped: rxrun is not built beside rx-lsp");
        return;
    }
    let mut client = Client::start(&[]);
    client.initialize_with(json!({}), json!({"run": {"arguments": ["--device", "interp"]}}));
    client.open(URI, 1, TEXT);
    let run = json!({"command": "rx.run", "arguments": [URI, "main"]});
    let result = client.request("workspace/executeCommand", run.clone()).expect("a result");
    assert_eq!(result["ok"], true, "{result}");
    assert_eq!(result["outputs"][0]["dtype"], "float32");
    assert_eq!(result["outputs"][0]["shape"], json!([4]));
    let values = result["values"].as_array().expect("a list");
    let lines: Vec<_> = values.iter().map(|value| value["range"]["start"]["line"].as_u64()).collect();
    assert_eq!(lines, [Some(11), Some(17)], "{result}");
    assert_eq!(result["kernels"][0]["ranges"].as_array().map(Vec::len), Some(1), "{result}");
    // The output file is written completely or not at all.
    let folder = tempfile::tempdir().expect("a folder");
    let saved = |client: &mut Client, name: &str| {
        let path = folder.path().join(name);
        let arguments = json!([URI, "main", ["--output", path]]);
        let command = json!({"command": "rx.run", "arguments": arguments});
        (client.request("workspace/executeCommand", command).expect("a result"), std::fs::read(&path).ok())
    };
    let (result, written) = saved(&mut client, "out.npz");
    let written = written.expect("a file");
    assert_eq!(result["ok"], true, "{result}");
    assert!(written.starts_with(b"PK") && written.windows(4).any(|bytes| bytes == b"PK\x05\x06"), "a whole archive");
    let (result, written) = saved(&mut client, "no such folder/out.npz");
    assert_eq!((&result["ok"], written), (&json!(false), None));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else is left");
    // The text is not saved and has an error.
    client.change(URI, 2, json!([change((17, 22), (17, 23), "z")]));
    let result = client.request("workspace/executeCommand", run).expect("a result");
    let message = result["message"].as_str().expect("a message");
    assert!(message.starts_with("`main` was not run: net:18: "), "{message}");
    assert_eq!(client.quit(), Some(0));
}
