//! Ends the server when the editor that started it is gone.
//!
//! Usually stdin is closed then. This module handles an editor that crashed while another process still holds the pipe
//! open.

use crate::event::Event;
use std::sync::mpsc::Sender;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(1);

/// Watches process `id` from a separate thread and ends this process with status 1 once `id` is gone.
///
/// A process that is not visible at the start (in another container, or on a system without `/proc`) is not watched.
/// Runs in progress are cancelled first, because no one would read their results or stop their child processes.
pub fn watch(id: u32, events: &Sender<Event>) {
    let Some(born) = birth(id) else { return };
    let events = events.clone();
    let watch = move || {
        while birth(id) == Some(born) {
            std::thread::sleep(INTERVAL);
        }
        if events.send(Event::CancelRuns).is_ok() {
            std::thread::sleep(INTERVAL);
        }
        std::process::exit(1);
    };
    // If the thread cannot start, the server still ends when stdin is closed, which is enough for most editors.
    let _ = std::thread::Builder::new().name("parent".into()).spawn(watch);
}

/// Returns the start time of the process in ticks since boot. Together with the id it identifies the process, since ids
/// are reused. `None` if the process is not alive.
fn birth(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The format is `id (name) state ppid …` (see proc(5)). The name may contain spaces and parentheses, so fields are
    // counted from the last parenthesis.
    let (_, fields) = status.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::birth;

    #[test]
    fn only_live_processes_have_a_birth() {
        assert!(birth(std::process::id()).is_some());
        assert_eq!(birth(u32::MAX), None);
    }
}
