//! Fuzz target: prints every stage of `rxrun --emit`, and runs the program in the interpreter.

use crate::commands::{cpu, cuda, interp, tir};

/// The longest text that is processed, in bytes: each stage takes some thousand times as long as a check.
const MOST: usize = 4096;

/// Computes all stages of `data`; each of them may return an error.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if text.len() > MOST {
        return;
    }
    for command in [tir, cpu, cuda, interp] {
        drop(command(&text));
    }
}
