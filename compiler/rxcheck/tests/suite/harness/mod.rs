//! Test helpers: run the binary in a temporary folder and read its exit status and output.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Creates a folder with these files.
pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    folder
}

/// Returns a command that runs the binary in a folder.
pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxcheck"));
    command.current_dir(folder).args(arguments).env_remove("NO_COLOR");
    command
}

/// Runs the binary; returns its output and exit status.
pub fn rxcheck(folder: &TempDir, arguments: &[&str]) -> Output {
    command(folder.path(), arguments).output().expect("rxcheck runs")
}

/// Returns the text on standard output.
pub fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

/// Returns the text on standard error.
pub fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("UTF-8")
}
