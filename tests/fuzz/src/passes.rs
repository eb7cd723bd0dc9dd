//! Text through the default pipeline of passes.

use crate::commands::passes;

/// The longest text that is taken.
const MOST: usize = 4096;

/// Runs the passes over `data`; any of them may be refused.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if text.len() <= MOST {
        drop(passes(&text));
    }
}
