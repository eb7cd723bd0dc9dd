//! Results on standard output.

use std::io::{self, ErrorKind, Write};

/// Prints a text. A closed pipe is no failure: its reader has seen enough.
///
/// # Errors
/// What the system says, as of a full disk.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// The exit status of a tool that printed its help or a mistake in its command line, and would end with `status`: 2 where that
/// could not be printed.
pub fn usage_status(printed: io::Result<()>, status: i32) -> u8 {
    match printed {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => 2,
        _ => u8::try_from(status).unwrap_or(2),
    }
}
