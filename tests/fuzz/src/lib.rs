//! Fuzz targets: functions that take bytes and panic if a property is violated.
//!
//! - [`parse::run`]: parsing, positions, printing and formatting;
//! - [`check::run`]: diagnostics, types, hover and every rendering;
//! - [`edits::run`]: after any edits, a workspace gives the same results as a new one;
//! - [`emit::run`]: loops, machine code, CUDA C and a run;
//! - [`passes::run`]: the default pipeline.
//!
//! The binaries of the same names are libFuzzer targets when built by `run.sh`; otherwise they replay the files they
//! are given. `seeds/` contains the initial inputs, `found/` every input that once violated a property; a test replays
//! both.
//!
//! [`programs`] generates programs of any size of the kinds that are slow in compilers, and [`commands`] processes a
//! text as the tools do. A test with both limits the growth of the outputs.

pub mod check;
pub mod commands;
pub mod edits;
pub mod emit;
pub mod parse;
pub mod passes;
pub mod programs;

use std::process::ExitCode;

/// A target: a function that panics if a property is violated.
pub type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: [(&str, Target); 5] =
    [("parse", parse::run), ("check", check::run), ("edits", edits::run), ("emit", emit::run), ("passes", passes::run)];

/// The stack size of a replay in bytes, the same as that of rx's worker threads.
const STACK: usize = 64 << 20;

/// Runs `work` on a thread with the stack of rx's workers; returns `false` if it panicked or no thread could be
/// started.
pub fn on_a_worker<'scope>(work: impl FnOnce() + Send + 'scope) -> bool {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        worker.is_ok_and(|worker| worker.join().is_ok())
    })
}

/// Runs `target` on the files named on the command line; fails at the first that cannot be read or that panics.
pub fn replay(target: Target) -> ExitCode {
    for path in std::env::args_os().skip(1) {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                return ExitCode::from(2);
            }
        };
        if !on_a_worker(|| target(&bytes)) {
            eprintln!("{}: failed", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
