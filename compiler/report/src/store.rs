//! Writing one text.

use std::io::{self, Write};
use std::path::Path;

/// Puts `text` in the place of the file at `path` at once ([`rx_base::store::replace`]).
///
/// # Errors
/// What the system says, and a file that is read-only; the file is as it was then, and nothing is left beside it.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    rx_base::store::replace(path, |writer| writer.write_all(text.as_bytes()))
}

/// Writes `text` to `path` so that it is there whole or not at all, whether there was a file before or not. A device or pipe
/// is written to.
///
/// # Errors
/// As of [`replace`].
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    rx_base::store::write(path, |writer| writer.write_all(text.as_bytes()))
}
