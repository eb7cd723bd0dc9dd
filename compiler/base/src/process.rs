//! Other processes, watched until they end.

use std::time::Duration;

/// The time between two looks at a process.
const INTERVAL: Duration = Duration::from_millis(500);

/// A process that was running when it was found.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    id: u32,
    /// Its start time. `None` if the system does not show it; the process is then the parent of this one.
    birth: Option<u64>,
}

impl Process {
    /// Finds a process. `None` if it has ended or is not visible: one in another container, or, on systems without
    /// `/proc`, any process but the parent of this one.
    pub fn find(id: u32) -> Option<Process> {
        let birth = birth(id);
        (birth.is_some() || !shows_processes() && parent() == Some(id)).then_some(Process { id, birth })
    }

    /// Whether the process is still running.
    pub fn is_running(&self) -> bool {
        match self.birth {
            Some(_) => birth(self.id) == self.birth,
            None => parent() == Some(self.id),
        }
    }

    /// Blocks until the process has ended.
    pub fn wait(&self) {
        while self.is_running() {
            std::thread::sleep(INTERVAL);
        }
    }
}

/// The environment variable with the id of the process for which this one works: [`end_with_owner`].
pub const OWNER: &str = "RX_OWNER_PROCESS";

/// Ends this process soon after the process that [`OWNER`] names has ended, even if that one was killed. Does nothing
/// if the variable is not set, or if its process is not visible: the variable may have been passed on to another
/// machine.
pub fn end_with_owner() {
    let owner = std::env::var(OWNER).ok().and_then(|id| id.parse().ok()).and_then(Process::find);
    let Some(owner) = owner else { return };
    let watch = move || {
        owner.wait();
        end_now()
    };
    // If the thread cannot start, this process ends when its work is done.
    let _ = std::thread::Builder::new().name("owner".into()).spawn(watch);
}

/// Ends this process at once. `exit` would first run the handlers of libraries that other threads are using, which may
/// never return.
#[cfg(target_os = "linux")]
fn end_now() {
    use rustix::process::{Signal, getpid, kill_process};
    if kill_process(getpid(), Signal::KILL).is_err() {
        std::process::abort();
    }
}

#[cfg(not(target_os = "linux"))]
fn end_now() {
    std::process::abort();
}

/// Whether this system shows all its processes, so that a process which is not found has ended.
pub fn shows_processes() -> bool {
    birth(std::process::id()).is_some()
}

/// Returns the start time of a process in ticks since boot. Together with the id it identifies the process, since ids
/// are reused. `None` if the process has ended, or on a system without `/proc`.
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

/// Returns the id of this process's parent, where the system has another parent take its place when it ends.
#[cfg(unix)]
fn parent() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

#[cfg(not(unix))]
fn parent() -> Option<u32> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::Process;
    use std::process::{Command, Stdio};

    #[test]
    fn running_process_is_found_and_ended_one_is_not() {
        let own = Process::find(std::process::id()).expect("this process runs");
        assert!(own.is_running());
        assert!(Process::find(u32::MAX).is_none());
        // `cat` reads its input until it is closed.
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat");
        let found = Process::find(child.id()).expect("it runs");
        drop(child.stdin.take());
        found.wait();
        assert!(!found.is_running() && Process::find(child.id()).is_none());
        child.wait().expect("it has ended");
    }
}
