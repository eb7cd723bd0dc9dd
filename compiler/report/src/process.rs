//! The process of a tool: the thread that does its work, and its exit status.

use std::io::{self, Write};
use std::process::ExitCode;

/// The stack of the thread that does the work, in bytes: trees and loop nests are walked recursively.
const STACK: usize = 256 << 20;

/// The exit status of a tool whose work panicked.
const PANICKED: u8 = 3;

/// Runs the work of `program` on a thread with a large stack; the exit status is that of the work, 3 where it panicked, and 2 where
/// no thread could be started.
pub fn run(program: &str, work: impl FnOnce() -> u8 + Send + 'static) -> ExitCode {
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(work);
    let status = match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(status)) => status,
        // The panic has printed its message to standard error.
        Ok(Err(_)) => PANICKED,
        Err(error) => {
            // Without standard error the exit status says it.
            let _ = writeln!(io::stderr().lock(), "{program}: no thread could be started: {error}");
            2
        }
    };
    ExitCode::from(status)
}
