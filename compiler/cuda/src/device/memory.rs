//! The pool of device memory: freed blocks are kept for later allocations.

use super::core::Core;
use super::driver::Address;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A buffer in device memory: a block of the pool, or a part of one.
#[derive(Clone, Debug)]
pub struct DeviceBuffer {
    block: Rc<Block>,
    offset: u64,
    bytes: usize,
}

impl DeviceBuffer {
    pub(super) fn new(block: Rc<Block>, offset: u64, bytes: usize) -> DeviceBuffer {
        DeviceBuffer { block, offset, bytes }
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns a part of the buffer, which keeps the block alive.
    pub(super) fn part(&self, offset: u64, bytes: usize) -> DeviceBuffer {
        DeviceBuffer { block: self.block.clone(), offset: self.offset + offset, bytes }
    }

    pub(super) fn address(&self) -> Address {
        self.block.at + self.offset
    }
}

/// A block of device memory, which returns to the pool when it is dropped.
#[derive(Debug)]
pub(super) struct Block {
    core: Rc<Core>,
    at: Address,
    size: usize,
}

impl Block {
    pub(super) fn new(core: Rc<Core>, at: Address, size: usize) -> Block {
        Block { core, at, size }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.core.pool.put(self.at, self.size);
    }
}

/// The alignment in bytes of buffers within a block, and the unit of the sizes of blocks.
const ALIGNMENT: usize = 512;

/// The reciprocal of the slack. The size of a request is rounded up by at most an eighth, or to the next multiple of
/// [`ALIGNMENT`]. An idle block is reused if it is larger than the rounded size by at most another eighth.
const SPARE: usize = 8;

/// Rounds a size up to that of the block to allocate, so that requests of similar size reuse each other's blocks.
/// Returns `None` in case of overflow.
pub(super) fn size_of(bytes: usize) -> Option<usize> {
    // The steps are an eighth of the power of two below, and at least `ALIGNMENT`.
    let step = bytes.checked_next_power_of_two()? / (2 * SPARE);
    bytes.max(1).checked_next_multiple_of(step.max(ALIGNMENT))
}

/// Returns the offsets of buffers of these sizes in one block, and the size of the block. Returns `None` in case of
/// overflow.
pub(super) fn arena(sizes: &[usize]) -> Option<(Vec<usize>, usize)> {
    let mut end = 0usize;
    let mut offsets = Vec::with_capacity(sizes.len());
    for bytes in sizes {
        offsets.push(end);
        end = end.checked_add(*bytes)?.checked_next_multiple_of(ALIGNMENT)?;
    }
    Some((offsets, end))
}

/// The idle blocks by size, and the number of bytes in use with its peak.
#[derive(Debug, Default)]
pub(super) struct Pool {
    idle: RefCell<BTreeMap<usize, Vec<Address>>>,
    used: Cell<u64>,
    peak: Cell<u64>,
}

impl Pool {
    /// Takes an idle block, and returns its address and size: the smallest one that has at least `size` bytes and at
    /// most an eighth more. Returns `None` if there is none.
    ///
    /// Blocks of equal size are reused last in, first out, so that a program that runs again usually gets the same
    /// addresses. With other addresses its launches would differ, and their graph would not be replayed.
    pub(super) fn take(&self, size: usize) -> Option<(Address, usize)> {
        let mut idle = self.idle.borrow_mut();
        let (have, blocks) =
            idle.range_mut(size..=size.saturating_add(size / SPARE)).find(|(_, blocks)| !blocks.is_empty())?;
        let have = *have;
        let at = blocks.pop()?;
        self.is_used(have);
        Some((at, have))
    }

    /// Counts a block as in use.
    pub(super) fn is_used(&self, size: usize) {
        self.used.set(self.used.get() + size as u64);
        self.peak.set(self.peak.get().max(self.used.get()));
    }

    /// Returns a block to the pool.
    fn put(&self, at: Address, size: usize) {
        self.used.set(self.used.get().saturating_sub(size as u64));
        self.idle.borrow_mut().entry(size).or_default().push(at);
    }

    /// Removes and returns all idle blocks.
    pub(super) fn drain(&self) -> Vec<Address> {
        std::mem::take(&mut *self.idle.borrow_mut()).into_values().flatten().collect()
    }

    /// Returns the peak number of bytes in use.
    pub(super) fn peak(&self) -> u64 {
        self.peak.get()
    }
}

#[cfg(test)]
mod tests {
    use super::{arena, size_of};

    #[test]
    fn sizes_that_differ_little_are_one() {
        assert_eq!([0, 1, 512, 513].map(size_of), [512, 512, 512, 1024].map(Some));
        assert_eq!(size_of(1 << 20), Some(1 << 20));
        assert_eq!(size_of((1 << 20) + 1), Some((1 << 20) + (1 << 17)));
        assert_eq!((size_of(usize::MAX), size_of(usize::MAX / 2 + 2)), (None, None));
    }

    #[test]
    fn parts_of_an_arena_do_not_overlap() {
        assert_eq!(arena(&[10, 512, 0, 513]), Some((vec![0, 512, 1024, 1024], 2048)));
        assert_eq!(arena(&[usize::MAX, 1]), None);
    }
}
