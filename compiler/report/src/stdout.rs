//! Printing of results on standard output.

use std::io::{self, ErrorKind, Write};

/// Prints a text. A closed pipe is not an error: the reader needs no more.
///
/// # Errors
/// Errors of the system, such as a full disk.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Returns the exit status of a tool that printed its help or a usage error: `status`, or 2 if that could not be
/// printed.
pub fn usage_status(printed: io::Result<()>, status: i32) -> u8 {
    match printed {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => 2,
        _ => u8::try_from(status).unwrap_or(2),
    }
}
