//! Ends the server when the editor that started it is gone.
//!
//! A closed stdin says so already; this is for editors that crash while some other process still holds the pipe open.

use crate::event::Event;
use std::sync::mpsc::Sender;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(1);

/// Watches process `id` from a thread of its own and ends this process with status 1 once it is gone.
///
/// A process that cannot be seen from the start (another container, a system without `/proc`) is not watched.
/// The runs under way are ended first: nobody would miss their result, and nobody else would end them.
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
    // Without the thread there is only stdin to go by, which is enough for most editors.
    let _ = std::thread::Builder::new().name("parent".into()).spawn(watch);
}

/// When the process was started, in ticks since boot: with the id it names a process for good. `None`: it is not alive.
fn birth(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // `id (name) state ppid …`: the name may hold spaces and parentheses, so count from the last one. See proc(5).
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
