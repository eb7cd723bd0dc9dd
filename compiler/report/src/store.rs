//! Atomic writing of text files.

use std::io::{self, Write};
use std::path::Path;

/// Replaces the contents of the file at `path` atomically ([`rx_base::store::replace`]).
///
/// # Errors
/// Errors of the system, and if the file is read-only. The file is unchanged then, and no temporary file is left.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    rx_base::store::replace(path, |writer| writer.write_all(text.as_bytes()))
}

/// Writes `text` to `path` completely or not at all, whether or not the file exists. Devices and pipes are written to
/// directly.
///
/// # Errors
/// Like [`replace`].
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    rx_base::store::write(path, |writer| writer.write_all(text.as_bytes()))
}
