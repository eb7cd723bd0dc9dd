//! One `rxrun` process: starts it, writes the text to its stdin, reads its output, and ends it.

use super::Outcome;
use super::stage::{MAX_TEXT, Stage};
use super::transcript::{Step, Transcript};
use crate::lsp::progress::{CHECKING, RunView};
use crate::notebooks::AskedCell;
use rx_db::{Encoding, FileKind};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};

/// The maximal length of a line in bytes. Events of a run are shorter; longer lines are split.
const MAX_LINE: u64 = 1 << 20;

/// The number of bytes of standard error that are kept, from its end.
const MAX_LOG: usize = 8 << 10;

/// The time limit for the exit of a killed child. After it, the child is left to the operating system.
const GRACE: Duration = Duration::from_secs(2);

/// The parameters of one `rxrun` process.
#[derive(Clone, Debug)]
pub struct Call {
    /// The program. `None` is the `rxrun` next to this server, or the one in `PATH` if there is none.
    pub program: Option<PathBuf>,
    /// Further arguments, besides those that select the function.
    pub arguments: Vec<String>,
    /// The function; `None` lets `rxrun` choose.
    pub function: Option<String>,
    /// Its module; `None` lets `rxrun` choose.
    pub module: Option<String>,
    /// The stage to show. `None` runs the function.
    pub stage: Option<Stage>,
    /// The name of the text in messages.
    pub name: String,
    /// The working directory; `None` is that of the server.
    pub folder: Option<PathBuf>,
    /// The text.
    pub text: String,
    /// The kind of the text.
    pub kind: FileKind,
    /// The client's position encoding.
    pub encoding: Encoding,
    /// The cell, if the text is that of a notebook.
    pub cell: Option<AskedCell>,
    /// Whether values of variables and times of kernels are collected.
    pub values: bool,
    /// The time limit.
    pub limit: Duration,
    /// The name of the run or stage in messages, for example `` `main` ``.
    pub label: String,
}

/// The reason why a run is stopped by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The user cancelled it, or the session ends.
    Cancelled,
    /// A newer call of the same kind for the same document replaces it.
    Replaced,
}

/// The way in which a child ended.
#[derive(Debug)]
pub enum Ended {
    /// It ended by itself or by a signal. An error means that the operating system cannot report its status.
    Itself(io::Result<ExitStatus>),
    /// It was stopped by the server.
    Stopped(Stop),
    /// It exceeded this time limit.
    TimedOut(Duration),
}

/// Waits for one of the `turns`, then runs `call` until the process ends. Ends early once `stop` completes. When this
/// returns, the process is gone; if this future is dropped, the process is killed.
pub async fn run(call: Call, view: &mut RunView, turns: &Semaphore, stop: impl Future<Output = Stop>) -> Outcome {
    let mut stop = pin!(stop);
    let _turn = tokio::select! {
        turn = wait_for_turn(turns, view) => turn,
        stop = &mut stop => {
            return Transcript::of(call.stage).conclude(&call.label, &Ended::Stopped(stop), String::new());
        }
    };
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
        stop = &mut stop => Ended::Stopped(stop),
        () = sleep(call.limit) => Ended::TimedOut(call.limit),
    };
    if !matches!(ended, Ended::Itself(Ok(_))) {
        let _ = timeout(GRACE, child.kill()).await;
    }
    let observed = std::mem::take(&mut transcript.observed);
    let mut outcome = transcript.conclude(&call.label, &ended, String::from_utf8_lossy(&log).into_owned());
    (outcome.values, outcome.kernels) = observed.placed(&call.text, call.kind, call.encoding, call.cell.as_ref());
    outcome
}

/// Waits for a turn, and shows the wait as a step of the progress.
async fn wait_for_turn<'t>(turns: &'t Semaphore, view: &mut RunView) -> Option<SemaphorePermit<'t>> {
    if let Ok(turn) = turns.try_acquire() {
        return Some(turn);
    }
    let step = |message: &str| Step { message: message.to_owned(), percent: 0 };
    let show = async {
        view.begin().await;
        view.step(&step("waiting for other runs")).await;
    };
    let (turn, ()) = tokio::join!(turns.acquire(), show);
    view.step(&step(CHECKING)).await;
    // An error would mean that the semaphore was closed, which no one does.
    turn.ok()
}

/// Returns the path of the program to start.
fn program(set: Option<&Path>) -> PathBuf {
    if let Some(program) = set {
        return program.to_owned();
    }
    let name = format!("rxrun{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok().and_then(|server| Some(server.parent()?.join(&name)));
    // The operating system looks up a bare name in PATH.
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
    // Of repeated options the last counts, so the module of the requested function overrides the `--module` of the
    // settings.
    if let Some(module) = &call.module {
        command.arg(joined("--module=", module));
    }
    if let Some(stage) = call.stage {
        command.arg(joined("--emit=", stage.word()));
    }
    // `kill_on_drop` does not help if this server is killed.
    command.env(rx_base::process::OWNER, std::process::id().to_string());
    if let Some(folder) = call.folder.as_deref().filter(|folder| folder.is_dir()) {
        command.current_dir(folder);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Joins an option and its value into one word, so that a value that begins with `-` is not parsed as an option.
fn joined(option: &str, value: &str) -> OsString {
    format!("{option}{value}").into()
}

/// Makes the child the first process that Linux kills when memory is exhausted. The child allocates the memory that the
/// program requests, and neither the server nor the editor should be killed for it. On other systems, and without
/// /proc, the operating system chooses.
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
            "`rxrun`, which runs programs, was found neither in the folder of rx-lsp nor in PATH: install it, or set rx.run.program"
                .to_owned()
        }
        _ => format!("{} cannot be started: {error}", program.display()),
    }
}

/// Writes the text to the child's stdin. Errors are ignored: a child may exit without reading its input.
async fn feed(input: Option<ChildStdin>, text: &[u8]) {
    if let Some(mut input) = input {
        let _ = input.write_all(text).await;
        let _ = input.shutdown().await;
    }
}

/// Reads the child's output line by line until it ends.
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

/// Reads standard error until it ends and keeps the last [`MAX_LOG`] bytes.
async fn keep_end(errors: Option<ChildStderr>, log: &mut Vec<u8>) {
    let Some(mut errors) = errors else { return };
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = errors.read(&mut piece).await {
        log.extend_from_slice(piece.get(..read).unwrap_or_default());
        let over = log.len().saturating_sub(MAX_LOG);
        log.drain(..over);
    }
}

/// Returns the last component of a path or name.
pub fn file_name(name: &str) -> String {
    Path::new(name).file_name().map_or_else(|| name.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Appends an extension to `name` where needed, so that `rxrun` treats the text as `kind`. For example, `net.py`
/// becomes `net.py.rx` if the client's language identifier is `relax`.
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
    fn file_name_gets_the_extension_of_its_kind() {
        let named = |name: &str, kind| name_of_kind(name.to_owned(), kind);
        assert_eq!(named("/a/net.rx", FileKind::Rx), "/a/net.rx");
        assert_eq!(named("Untitled-1", FileKind::Python), "Untitled-1.py");
        assert_eq!(named("/a/net.pyi", FileKind::Python), "/a/net.pyi.py");
        assert_eq!(named("/a/net.py", FileKind::Rx), "/a/net.py.rx");
    }
}
