//! Reading of inputs.

use crate::discover::Input;
use rx_report::load::load;
use rx_report::{Content, Notebook};
use std::io;

/// Reads an input.
///
/// # Errors
/// Errors of the system, and a notebook that is not one.
pub fn read(input: &Input) -> io::Result<Content> {
    let loaded = load(&input.place)?;
    // A notebook without the word `tvm` cannot import TVMScript's names. It may be of any version.
    let is_skipped = input.is_notebook() && !input.named && !loaded.text.contains("tvm");
    if is_skipped && loaded.mistake.is_none() {
        return Ok(Content::of_notebook(Notebook::without_cells(loaded.text)));
    }
    Content::new(loaded, input.is_notebook())
}
