//! Memory aligned to 64 bytes: the size of a cache line and of the widest vector loads.

use crate::error::TensorError;
use bytemuck::{cast_slice, cast_slice_mut};

const ALIGNMENT: usize = 64;

/// The unit of allocation: 16 bytes, aligned to 16 on common machines.
type Unit = u128;

const UNIT: usize = size_of::<Unit>();

/// A block of memory of fixed size.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    units: Vec<Unit>,
    /// The number of units before the first one aligned to 64 bytes.
    skipped: usize,
    bytes: usize,
}

impl Storage {
    /// Allocates a block of zeros.
    pub(crate) fn zeroed(bytes: usize) -> Result<Storage, TensorError> {
        let out_of_memory = || TensorError::OutOfMemory { bytes };
        if bytes == 0 {
            return Ok(Storage::default());
        }
        // Allocate additional units, because up to three (all but one of a cache line) are skipped for alignment.
        let count = bytes.div_ceil(UNIT) + (ALIGNMENT / UNIT - 1);
        if !may_fit(bytes) {
            return Err(out_of_memory());
        }
        let mut units = Vec::new();
        units.try_reserve_exact(count).map_err(|_| out_of_memory())?;
        units.resize(count, 0);
        // `align_offset` may return `usize::MAX` where addresses are not real, as in Miri. Then only alignment is lost,
        // not memory safety.
        let skipped = units.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT / UNIT - 1);
        Ok(Storage { units, skipped, bytes })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &cast_slice(&self.units[self.skipped..])[..self.bytes]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut cast_slice_mut(&mut self.units[self.skipped..])[..self.bytes]
    }
}

/// Whether an allocation of this size can succeed. Linux overcommits memory and kills processes that use too much, so a
/// large request is compared with the available memory.
fn may_fit(bytes: usize) -> bool {
    const SMALL: usize = 64 << 20;
    bytes < SMALL || available_memory().is_none_or(|available| bytes as u64 <= available)
}

/// Returns the memory in bytes that Linux can provide without swapping.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_is_aligned_zeroed_and_of_the_length_asked_for() {
        for bytes in [0, 1, 15, 16, 17, 64, 1000] {
            let storage = Storage::zeroed(bytes).expect("a little memory");
            assert_eq!(storage.bytes().len(), bytes);
            assert!(storage.bytes().iter().all(|byte| *byte == 0));
            assert!(bytes == 0 || storage.bytes().as_ptr().addr().is_multiple_of(ALIGNMENT));
        }
        assert!(matches!(Storage::zeroed(isize::MAX as usize - 64), Err(TensorError::OutOfMemory { .. })));
    }
}
