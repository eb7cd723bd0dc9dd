//! Tests of `--watch`: a child process whose output is read line by line while files change.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use tempfile::TempDir;

const GOOD: &str = "@R.function\ndef main(x: R.Tensor((4,), dtype=\"float32\")):\n    y = R.nn.relu(x)\n    return y\n";

/// Creates a file atomically: a poll between opening and writing would see it empty.
fn put(path: &Path, text: impl AsRef<str>) {
    let hidden = path.with_file_name(".put");
    fs::write(&hidden, text.as_ref()).expect("a file");
    fs::rename(&hidden, path).expect("a file");
}

fn bad() -> String {
    GOOD.replace("nn.relu", "nn.rellu")
}

/// A running `rxcheck --watch`; killed when dropped.
struct Watch {
    child: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

impl Watch {
    fn start(folder: &Path, arguments: &[&str]) -> Watch {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxcheck"));
        command.current_dir(folder).args(["--watch", "--format", "concise"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("rxcheck starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let err = BufReader::new(child.stderr.take().expect("a pipe"));
        Watch { child, out, err }
    }

    /// Reads the lines of one check on stderr, up to and including the last.
    fn round(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.err.read_line(&mut line).expect("UTF-8") > 0, "rxcheck ended after {lines:?}");
            lines.push(line.trim_end().to_owned());
            if line.starts_with("watching ") {
                return lines;
            }
        }
    }

    /// Reads a line on stdout and removes its message.
    fn finding(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("UTF-8");
        line.split(']').next().unwrap_or_default().to_owned()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The child may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn changes_are_checked_as_they_come() {
    let folder = TempDir::new().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    put(&at("a.rx"), GOOD);
    let mut watch = Watch::start(folder.path(), &["."]);
    assert_eq!(watch.round(), ["watching 1 file; Ctrl-C ends"]);

    // A mistake appears, in a text of the same length and possibly with the same modification time.
    put(&at("a.rx"), bad());
    assert_eq!(watch.round(), ["1 error in 1 file (1 checked)", "watching 1 file; Ctrl-C ends"]);
    assert_eq!(watch.finding(), "a.rx:3:9: error[RX0202");
    put(&at("a.rx"), bad().replace("(x)", "(z)"));
    assert_eq!(watch.round()[0], "2 errors in 1 file (1 checked)");
    assert_eq!([watch.finding(), watch.finding()], ["a.rx:3:9: error[RX0202", "a.rx:3:20: error[RX0201"]);

    // A file appears, and is renamed.
    put(&at("b.rx"), GOOD);
    assert_eq!(watch.round(), ["2 errors in 1 file (2 checked)", "watching 2 files; Ctrl-C ends"]);
    assert_eq!([watch.finding(), watch.finding()], ["a.rx:3:9: error[RX0202", "a.rx:3:20: error[RX0201"]);
    fs::rename(at("a.rx"), at("c.rx")).expect("a file");
    assert_eq!(watch.round()[0], "2 errors in 1 file (2 checked)");
    assert_eq!([watch.finding(), watch.finding()], ["c.rx:3:9: error[RX0202", "c.rx:3:20: error[RX0201"]);

    // Settings appear, first with a mistake, then without.
    put(&at("rx.toml"), "[severity]\nRX02 = 'of'\n");
    assert_eq!(watch.round()[0], "1 error in 1 file (0 checked)");
    assert_eq!(watch.finding(), "rx.toml:2:8: error[RX0003");
    put(&at("rx.toml"), "[severity]\nRX02 = 'off'\n");
    assert_eq!(watch.round(), ["watching 2 files; Ctrl-C ends"]);

    // A file is deleted.
    fs::remove_file(at("c.rx")).expect("a file");
    assert_eq!(watch.round(), ["watching 1 file; Ctrl-C ends"]);
}

#[test]
fn named_file_that_is_removed_and_restored_is_checked_again() {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("a.rx");
    put(&file, GOOD);
    let mut watch = Watch::start(folder.path(), &["a.rx"]);
    watch.round();
    fs::remove_file(&file).expect("a file");
    assert_eq!(watch.round()[0], "rxcheck: a.rx: no such file or folder");
    put(&file, bad());
    assert_eq!(watch.round()[0], "1 error in 1 file (1 checked)");
}

#[test]
fn unwatchable_arguments_are_usage_errors() {
    let folder = TempDir::new().expect("a temporary folder");
    for arguments in [["-"].as_slice(), &["--format", "sarif", "."], &["--fix", "."]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxcheck"));
        let output = command.current_dir(folder.path()).arg("--watch").args(arguments).output().expect("rxcheck runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
