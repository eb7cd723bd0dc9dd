//! Fuzz targets: each takes bytes and panics where a law is broken.
//!
//! - [`parse::run`]: reading, positions, printing and formatting;
//! - [`check::run`]: diagnostics, types, hover and every rendering;
//! - [`edits::run`]: after any edits a workspace answers as a new one would;
//! - [`emit::run`]: loops, machine code, CUDA C and a run;
//! - [`passes::run`]: the default pipeline.
//!
//! The binaries of the same names are libFuzzer's when built by `run.sh` and otherwise replay the files they are given.
//! `seeds/` starts a run; `found/` keeps every input that once broke something, and a test replays both.
//!
//! [`programs`] writes programs of any size of the kinds that compilers are slow on, [`commands`] does with a text what the tools do:
//! a test bounds how what they make grows.

pub mod check;
pub mod commands;
pub mod edits;
pub mod emit;
pub mod parse;
pub mod passes;
pub mod programs;

use std::process::ExitCode;

/// What a target runs: it panics where a law is broken.
pub type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: [(&str, Target); 5] =
    [("parse", parse::run), ("check", check::run), ("edits", edits::run), ("emit", emit::run), ("passes", passes::run)];

/// Stack of a replay: what rx's own programs give their workers.
const STACK: usize = 64 << 20;

/// Runs `work` on a thread with the stack of rx's workers; `false` when it panicked or no thread could be had.
pub fn on_a_worker<'scope>(work: impl FnOnce() + Send + 'scope) -> bool {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        worker.is_ok_and(|worker| worker.join().is_ok())
    })
}

/// Replays the files named on the command line through `target`; fails at the first that cannot be read or that panics.
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
