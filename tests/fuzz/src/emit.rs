//! Text to every stage that `rxrun --emit` prints, and to a run by the interpreter.

use crate::commands::{cpu, cuda, interp, tir};

/// The longest text that is taken: each stage is some thousand times the work of a check.
const MOST: usize = 4096;

/// Makes all stages of `data`; any of them may be refused.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if text.len() > MOST {
        return;
    }
    for command in [tir, cpu, cuda, interp] {
        drop(command(&text));
    }
}
