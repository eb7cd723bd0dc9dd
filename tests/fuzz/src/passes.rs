//! Fuzz target: runs the default pipeline of passes.

use crate::commands::passes;

/// The longest text that is processed, in bytes.
const MOST: usize = 4096;

/// Runs the passes on `data`; each of them may return an error.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if text.len() <= MOST {
        drop(passes(&text));
    }
}
