//! The main thread of a tool: the stack size and the exit status.

use std::io::{self, Write};
use std::process::ExitCode;

/// The stack size of the thread that does the work, in bytes: trees and loop nests are walked recursively.
const STACK: usize = 256 << 20;

/// The exit status if the work panicked.
const PANICKED: u8 = 3;

/// Runs the work of `program` on a thread with a large stack. The exit status is that of the work, 3 if it panicked,
/// and 2 if no thread could be started.
pub fn run(program: &str, work: impl FnOnce() -> u8 + Send + 'static) -> ExitCode {
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(work);
    let status = match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(status)) => status,
        // The panic has already printed its message to standard error.
        Ok(Err(_)) => PANICKED,
        Err(error) => {
            // If standard error is closed, only the exit status shows the error.
            let _ = writeln!(io::stderr().lock(), "{program}: no thread could be started: {error}");
            2
        }
    };
    ExitCode::from(status)
}
