//! One `rxrun` process: started, fed, followed, ended.

use super::Outcome;
use super::stage::{MAX_TEXT, Stage};
use super::transcript::Transcript;
use crate::lsp::progress::RunView;
use rx_db::{Encoding, FileKind};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{sleep, timeout};

/// The longest line that is read as one; longer ones are no event of a run.
const MAX_LINE: u64 = 1 << 20;

/// How much of standard error is kept, from its end.
const MAX_LOG: usize = 8 << 10;

/// How long a killed child may take to disappear before it is left to the system.
const GRACE: Duration = Duration::from_secs(2);

/// What to run.
#[derive(Clone, Debug)]
pub struct Call {
    /// The program; `None` is the `rxrun` beside this server, else the one in `PATH`.
    pub program: Option<PathBuf>,
    /// Arguments beside those that say what to run.
    pub arguments: Vec<String>,
    /// The function; `None` is `rxrun`'s choice.
    pub function: Option<String>,
    /// Its module; `None` is `rxrun`'s choice.
    pub module: Option<String>,
    /// The stage to show in place of a run.
    pub stage: Option<Stage>,
    /// What the text is called in messages.
    pub name: String,
    /// Where the process runs; `None` is where the server does.
    pub folder: Option<PathBuf>,
    /// The text.
    pub text: String,
    /// What it is.
    pub kind: FileKind,
    /// How the client counts columns in it.
    pub encoding: Encoding,
    /// Whether values and times of kernels are asked for.
    pub values: bool,
    /// How long it may take.
    pub limit: Duration,
    /// What is run or shown, in the user's words.
    pub label: String,
}

/// Why a run is ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The user, or the end of the session.
    Cancelled,
    /// Another call for the same of the document.
    Replaced,
}

/// How a child came to its end.
#[derive(Debug)]
pub enum Ended {
    /// By itself, or by the system; the error is the system's when it cannot say.
    Itself(io::Result<ExitStatus>),
    /// On request.
    Stopped(Stop),
    /// After its time, which is given.
    TimedOut(Duration),
}

/// Runs `call` until it ends or `stop` does. When this returns, the process is gone; when it is dropped, it is killed.
pub async fn run(call: Call, view: &mut RunView, stop: impl Future<Output = Stop>) -> Outcome {
    let program = program(call.program.as_deref());
    let mut child = match command(&program, &call).spawn() {
        Ok(child) => child,
        Err(error) => return Outcome::failed(not_started(&program, &call, &error)),
    };
    die_first(&child);
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut transcript = Transcript::of(call.stage);
    let longest = if call.stage.is_some() { MAX_TEXT } else { MAX_LINE };
    let mut log = Vec::new();
    let follow = async {
        let listen = async {
            view.begin().await;
            listen(output, longest, &mut transcript, view).await;
        };
        tokio::join!(feed(input, call.text.as_bytes()), listen, keep_end(errors, &mut log));
        child.wait().await
    };
    let ended = tokio::select! {
        status = follow => Ended::Itself(status),
        stop = stop => Ended::Stopped(stop),
        () = sleep(call.limit) => Ended::TimedOut(call.limit),
    };
    if !matches!(ended, Ended::Itself(Ok(_))) {
        let _ = timeout(GRACE, child.kill()).await;
    }
    let observed = std::mem::take(&mut transcript.observed);
    let mut outcome = transcript.conclude(&call.label, &ended, String::from_utf8_lossy(&log).into_owned());
    (outcome.values, outcome.kernels) = observed.placed(&call.text, call.kind, call.encoding);
    outcome
}

/// The program to start.
fn program(set: Option<&Path>) -> PathBuf {
    if let Some(program) = set {
        return program.to_owned();
    }
    let name = format!("rxrun{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok().and_then(|server| Some(server.parent()?.join(&name)));
    // A bare name is looked up in PATH by the system.
    beside.filter(|path| path.is_file()).unwrap_or_else(|| name.into())
}

fn command(program: &Path, call: &Call) -> Command {
    let mut command = Command::new(program);
    command.arg("-").arg(joined("--stdin-name=", &call.name)).args(["--format", "json"]);
    if let Some(function) = &call.function {
        command.arg(joined("--entry=", function));
    }
    if call.values {
        command.args(["--values", "--profile"]);
    }
    command.args(&call.arguments);
    // Of several the last holds: the module of the function goes before what is remembered of the file.
    if let Some(module) = &call.module {
        command.arg(joined("--module=", module));
    }
    if let Some(stage) = call.stage {
        command.arg(joined("--emit=", stage.word()));
    }
    if let Some(folder) = call.folder.as_deref().filter(|folder| folder.is_dir()) {
        command.current_dir(folder);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// An option and its value in one word, so that no value is taken for an option.
fn joined(option: &str, value: &str) -> OsString {
    format!("{option}{value}").into()
}

/// Makes the child the first process that Linux kills when memory runs out: it takes what the program asks for, and the
/// server and the editor should not pay for it. Elsewhere, and without /proc, the system chooses.
fn die_first(child: &Child) {
    if cfg!(target_os = "linux")
        && let Some(id) = child.id()
    {
        let _ = std::fs::write(format!("/proc/{id}/oom_score_adj"), "1000");
    }
}

fn not_started(program: &Path, call: &Call, error: &io::Error) -> String {
    match (&call.program, error.kind()) {
        (None, io::ErrorKind::NotFound) => {
            "`rxrun`, which runs programs, was found neither beside rx-lsp nor in PATH: install it, or set rx.run.program"
                .to_owned()
        }
        _ => format!("{} cannot be started: {error}", program.display()),
    }
}

/// Writes the text. A child that does not want it has its reasons.
async fn feed(input: Option<ChildStdin>, text: &[u8]) {
    if let Some(mut input) = input {
        let _ = input.write_all(text).await;
        let _ = input.shutdown().await;
    }
}

/// Reads what the child says, line by line, to its end.
async fn listen(output: Option<ChildStdout>, longest: u64, transcript: &mut Transcript, view: &RunView) {
    let Some(output) = output else { return };
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut output).take(longest).read_until(b'\n', &mut line).await {
        if line.len() as u64 == longest && !line.ends_with(b"\n") {
            transcript.cut(longest);
        } else if let Some(step) = transcript.line(&line) {
            view.step(&step).await;
        }
        line.clear();
    }
}

/// Reads to the end and keeps the last [`MAX_LOG`] bytes.
async fn keep_end(errors: Option<ChildStderr>, log: &mut Vec<u8>) {
    let Some(mut errors) = errors else { return };
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = errors.read(&mut piece).await {
        log.extend_from_slice(piece.get(..read).unwrap_or_default());
        let over = log.len().saturating_sub(MAX_LOG);
        log.drain(..over);
    }
}

/// The last part of a path or name.
pub fn file_name(name: &str) -> String {
    Path::new(name).file_name().map_or_else(|| name.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// `name` with an extension by which `rxrun` sees what the text is; the client may know better than the file's name.
pub fn name_of_kind(mut name: String, kind: FileKind) -> String {
    match (kind, FileKind::of_path(&name)) {
        (FileKind::Python, FileKind::Rx) => name.push_str(".py"),
        (FileKind::Rx, FileKind::Python) => name.push_str(".rx"),
        _ => {}
    }
    name
}

#[cfg(test)]
mod tests {
    use super::name_of_kind;
    use rx_db::FileKind;

    #[test]
    fn the_name_says_what_the_text_is() {
        let named = |name: &str, kind| name_of_kind(name.to_owned(), kind);
        assert_eq!(named("/a/net.rx", FileKind::Rx), "/a/net.rx");
        assert_eq!(named("Untitled-1", FileKind::Python), "Untitled-1.py");
        assert_eq!(named("/a/net.pyi", FileKind::Python), "/a/net.pyi.py");
        assert_eq!(named("/a/net.py", FileKind::Rx), "/a/net.py.rx");
    }
}
