//! A bound on the memory that suspended calls may hold.
//!
//! Infinite recursion would exhaust the machine's memory, and the operating system would kill the process without a
//! message. So once [`MANY`] calls are nested, the memory that they hold is compared with the memory that is available.

use crate::error::RunError;
use rx_base::Name;
use std::fs::read_to_string;

/// The depth of calls from which on the bound applies.
const MANY: usize = 1000;

/// The maximal size in bytes of the registers of suspended calls. It ends infinite recursion within a second or two,
/// after about a million calls.
const MOST_REGISTERS: u64 = 1 << 28;

/// The assumed available memory in bytes, if the system does not report it.
const ASSUMED: u64 = 4 << 30;

/// The memory that a suspended call holds, in bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Held {
    /// The registers and the other data that the host keeps for the call.
    pub(super) registers: u64,
    /// Tensors in host memory.
    pub(super) tensors: u64,
}

/// The memory that all suspended calls hold together, and its bound.
#[derive(Default)]
pub(super) struct SuspendedMemory {
    held: Held,
    /// The bound in bytes, computed when it is first needed: the memory held then plus three quarters of the memory
    /// available then.
    most: Option<u64>,
}

impl SuspendedMemory {
    /// Adds the memory of a call that is suspended until `callee` returns. `callee` runs at a depth of `depth` calls.
    ///
    /// # Errors
    /// If `depth` is at least [`MANY`] and all suspended calls together hold too much memory.
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

    /// Subtracts the memory of a call that is resumed.
    pub(super) fn give_back(&mut self, held: Held) {
        self.held.registers = self.held.registers.saturating_sub(held.registers);
        self.held.tensors = self.held.tensors.saturating_sub(held.tensors);
    }
}

/// Returns the bytes of memory that the process can still allocate: the machine's available memory, limited by the
/// container's cgroup.
fn available() -> u64 {
    let number = |path: &str| read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = |limit: &str, used: &str| Some(number(limit)?.saturating_sub(number(used)?));
    let v2 = group("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current");
    let v1 = || group("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes");
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| mem_available(&text));
    [machine, v2.or_else(v1)].into_iter().flatten().min().unwrap_or(ASSUMED)
}

/// Parses the line `MemAvailable:    123456 kB` of `/proc/meminfo` and returns its value in bytes.
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
        let mut suspended = SuspendedMemory::default();
        let held = Held { registers: MOST_REGISTERS / 4, tensors: 0 };
        assert!((0..4).all(|_| suspended.take(held, MANY, name("f")).is_ok()));
        let error = suspended.take(held, MANY, name("f")).expect_err("more than there may be");
        assert!(error.to_string().starts_with("out of memory: `f` is called 1000 calls deep"), "{error}");
        suspended.give_back(held);
        suspended.give_back(held);
        assert!(suspended.take(held, MANY, name("f")).is_ok());
    }

    #[test]
    fn room_tensors_beyond_the_machines_memory_are_an_error() {
        let mut suspended = SuspendedMemory::default();
        assert!(suspended.take(Held::default(), MANY, name("f")).is_ok());
        assert!(suspended.take(Held { registers: 0, tensors: u64::MAX / 2 }, MANY, name("f")).is_err());
    }

    #[test]
    fn mem_available_is_read_in_bytes() {
        assert_eq!(mem_available("MemTotal: 9 kB\nMemAvailable:      12 kB\n"), Some(12 * 1024));
        assert_eq!(mem_available("MemTotal: 9 kB\n"), None);
    }
}
