//! How much memory calls that wait for others may hold.
//!
//! Recursion that never ends would take all memory there is, and the system would end the process without a word. So once calls are
//! [`MANY`] deep, the memory that they hold is compared with what the machine has left.

use crate::error::RunError;
use rx_base::Name;
use std::fs::read_to_string;

/// The depth up to which nothing is asked of the machine.
const MANY: usize = 1000;

/// The most bytes that registers of waiting calls may take: recursion that never ends is ended within seconds.
const MOST_REGISTERS: u64 = 1 << 30;

/// What is left of memory where the system does not say it.
const ASSUMED: u64 = 4 << 30;

/// What a call holds while it waits, in bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Held {
    /// Its registers and what else the host keeps of it.
    pub(super) registers: u64,
    /// Tensors in the host's memory.
    pub(super) tensors: u64,
}

/// The memory of calls that wait.
#[derive(Default)]
pub(super) struct Room {
    held: Held,
    /// The most there may be in all, once it was asked for.
    most: Option<u64>,
}

impl Room {
    /// Takes memory for a call that waits for `callee`, which runs `depth` calls deep.
    ///
    /// # Errors
    /// Where all calls together hold too much.
    pub(super) fn take(&mut self, held: Held, depth: usize, callee: Name) -> Result<(), RunError> {
        self.held.registers = self.held.registers.saturating_add(held.registers);
        self.held.tensors = self.held.tensors.saturating_add(held.tensors);
        if depth < MANY {
            return Ok(());
        }
        let all = self.held.registers.saturating_add(self.held.tensors);
        let most = *self.most.get_or_insert_with(|| all.saturating_add(available() / 4 * 3));
        if self.held.registers <= MOST_REGISTERS && all <= most {
            return Ok(());
        }
        Err(RunError::other(format!(
            "out of memory: `{callee}` is called {depth} calls deep, and the calls that wait for it hold {} MiB; a call whose result is \
             returned at once does not wait",
            all >> 20
        )))
    }

    /// A call waits no longer.
    pub(super) fn give_back(&mut self, held: Held) {
        self.held.registers = self.held.registers.saturating_sub(held.registers);
        self.held.tensors = self.held.tensors.saturating_sub(held.tensors);
    }
}

/// The bytes of memory that the process can still get: what the machine has, within the limits of its control group.
fn available() -> u64 {
    let number = |path: &str| read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = |limit: &str, used: &str| Some(number(limit)?.saturating_sub(number(used)?));
    let v2 = group("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current");
    let v1 = || group("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes");
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| mem_available(&text));
    [machine, v2.or_else(v1)].into_iter().flatten().min().unwrap_or(ASSUMED)
}

/// The line `MemAvailable:    123456 kB` of `/proc/meminfo`.
fn mem_available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rx_base::name::name;

    #[test]
    fn room_registers_of_waiting_calls_are_bounded() {
        let mut room = Room::default();
        let held = Held { registers: MOST_REGISTERS / 4, tensors: 0 };
        assert!((0..4).all(|_| room.take(held, MANY, name("f")).is_ok()));
        let error = room.take(held, MANY, name("f")).expect_err("more than there may be");
        assert!(error.to_string().starts_with("out of memory: `f` is called 1000 calls deep"), "{error}");
        room.give_back(held);
        room.give_back(held);
        assert!(room.take(held, MANY, name("f")).is_ok());
    }

    #[test]
    fn room_tensors_beyond_the_machines_memory_are_an_error() {
        let mut room = Room::default();
        assert!(room.take(Held::default(), MANY, name("f")).is_ok());
        assert!(room.take(Held { registers: 0, tensors: u64::MAX / 2 }, MANY, name("f")).is_err());
    }

    #[test]
    fn mem_available_is_read_in_bytes() {
        assert_eq!(mem_available("MemTotal: 9 kB\nMemAvailable:      12 kB\n"), Some(12 * 1024));
        assert_eq!(mem_available("MemTotal: 9 kB\n"), None);
    }
}
