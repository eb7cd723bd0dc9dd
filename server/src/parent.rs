//! Ends the server when the editor that started it is gone.
//!
//! Usually stdin is closed then. This module handles an editor that crashed while another process still holds the pipe
//! open.

use crate::event::Event;
use rx_base::process::{Process, shows_processes};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// The time for which cancelled runs may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// Watches process `id` from a separate thread and ends this process with status 1 once `id` is gone, at once if it is
/// gone already.
///
/// On a system that does not show its processes, only the parent of this process is watched. Runs in progress are
/// cancelled first, because no one would read their results or stop their child processes. An editor in another
/// container than the server must not send its id, as the protocol allows: it is not visible, so it would count as
/// gone.
pub fn watch(id: u32, events: &Sender<Event>) {
    let process = Process::find(id);
    if process.is_none() && !shows_processes() {
        return;
    }
    let events = events.clone();
    let watch = move || {
        process.iter().for_each(Process::wait);
        if events.send(Event::CancelRuns).is_ok() {
            std::thread::sleep(GRACE);
        }
        std::process::exit(1);
    };
    // If the thread cannot start, the server still ends when stdin is closed, which is enough for most editors.
    let _ = std::thread::Builder::new().name("parent".into()).spawn(watch);
}
