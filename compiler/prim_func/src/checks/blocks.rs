//! The open blocks of a walk with their declared regions, and the allocations and writes so far.

use super::path::Step;
use crate::reader::trace::{Access, Region};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::name::{NameMap, NameSet};
use rx_context::ItemPlace;
use rx_tir::{BufferId, PrimFunc};

/// The regions of one `T.reads` or `T.writes`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared<'t> {
    pub(super) regions: &'t [Region],
    /// Whether `regions` contains every region in the call.
    pub(super) complete: bool,
    pub(super) place: &'t ItemPlace,
}

/// An open block.
#[derive(Debug, Default)]
pub(super) struct Block<'t> {
    /// The number of open [`crate::reader::trace::Event::Open`] events at its start.
    level: usize,
    /// The length of the path at its start.
    pub(super) first_step: usize,
    pub(super) reads: Option<Declared<'t>>,
    pub(super) writes: Option<Declared<'t>>,
    pub(super) has_init: bool,
    /// The number of conditions that the block's own statements state, such as a `T.where`, but not an `if`.
    pub(super) predicates: usize,
}

impl Block<'_> {
    /// Whether it declares that it reads and writes nothing, as blocks do whose accesses TVM does not analyze.
    pub(super) fn is_opaque(&self) -> bool {
        let nothing = |declared: &Option<Declared<'_>>| declared.is_some_and(|it| it.complete && it.regions.is_empty());
        nothing(&self.reads) && nothing(&self.writes)
    }

    /// Whether it declares to read a buffer, that is, to update it if it also writes it.
    pub(super) fn updates(&self, buffer: BufferId) -> bool {
        self.reads.is_some_and(|it| it.regions.iter().any(|region| region.buffer == buffer))
    }
}

/// The blocks and buffers at the current event of the walk.
#[derive(Debug, Default)]
pub(super) struct Blocks<'t> {
    open: Vec<Block<'t>>,
    /// The levels of the open `T.init` blocks.
    inits: Vec<usize>,
    /// For each allocated buffer the length of the path and the number of open blocks at the allocation.
    allocated: FxHashMap<BufferId, (usize, usize)>,
    /// Buffers that an earlier statement may have written.
    pub(super) written: FxHashSet<BufferId>,
    /// The loads since the last store.
    pub(super) loads: Vec<&'t Access>,
    /// For each allocated buffer, the first load that the value of a store uses before the buffer is written. It is
    /// removed at a store to the buffer that may be executed before it, in an earlier iteration
    /// ([`Unwritten::inside`]), and if it is reported as a reduction without a first value instead.
    pub(super) unwritten: FxHashMap<BufferId, Unwritten<'t>>,
}

/// A load of a buffer that nothing has written before.
#[derive(Debug)]
pub(super) struct Unwritten<'t> {
    pub(super) access: &'t Access,
    /// The first step of the path after the allocation, usually the outermost loop around the load. A store that is
    /// inside it too, but later in the text, may happen in an earlier iteration.
    pub(super) inside: Option<Step<'t>>,
}

impl<'t> Blocks<'t> {
    pub(super) fn enter(&mut self, level: usize, first_step: usize) {
        self.open.push(Block { level, first_step, ..Block::default() });
    }

    pub(super) fn enter_init(&mut self, level: usize) {
        self.inits.push(level);
        if let Some(block) = self.open.last_mut() {
            block.has_init = true;
        }
    }

    /// Counts a condition as a predicate of the innermost block, if it is at the block's level.
    pub(super) fn assume(&mut self, level: usize) {
        if let Some(block) = self.open.last_mut().filter(|block| block.level == level) {
            block.predicates += 1;
        }
    }

    /// Closes the block and the `T.init` at this level.
    pub(super) fn close(&mut self, level: usize) {
        self.open.pop_if(|block| block.level == level);
        self.inits.pop_if(|init| *init == level);
    }

    pub(super) fn allocate(&mut self, buffer: BufferId, steps: usize) {
        self.allocated.insert(buffer, (steps, self.open.len()));
    }

    pub(super) fn declare(&mut self, write: bool, declared: Declared<'t>) {
        if let Some(block) = self.open.last_mut() {
            match write {
                true => block.writes = Some(declared),
                false => block.reads = Some(declared),
            }
        }
    }

    /// Marks the buffers as written whose names occur in statements that could not be read.
    pub(super) fn unread(&mut self, names: &NameSet, func: &PrimFunc) {
        let known: NameMap<()> = names.iter().map(|name| (*name, ())).collect();
        let all = (0u32..).zip(&func.buffers).filter(|(_, buffer)| known.contains_key(&buffer.name));
        self.written.extend(all.map(|(buffer, _)| BufferId(buffer)));
    }

    /// Whether the current event is in a `T.init`.
    pub(super) fn in_init(&self) -> bool {
        !self.inits.is_empty()
    }

    /// Returns the innermost open block.
    pub(super) fn innermost(&self) -> Option<&Block<'t>> {
        self.open.last()
    }

    /// Returns the open blocks inside the scope of a buffer, innermost first: those opened after its allocation.
    pub(super) fn around(&self, buffer: BufferId) -> impl Iterator<Item = &Block<'t>> {
        let outside = self.allocated.get(&buffer).map_or(0, |(_, blocks)| *blocks);
        self.open.get(outside..).unwrap_or_default().iter().rev()
    }

    /// Whether a buffer was allocated inside the step at index `step` of the path, so that each iteration of the step
    /// has its own buffer.
    pub(super) fn is_allocated_inside(&self, buffer: BufferId, step: usize) -> bool {
        self.allocated.get(&buffer).is_some_and(|(steps, _)| *steps > step)
    }

    /// Returns the length of the path at the allocation of a buffer.
    pub(super) fn allocated_at(&self, buffer: BufferId) -> Option<usize> {
        self.allocated.get(&buffer).map(|(steps, _)| *steps)
    }

    /// Whether the function allocates the buffer.
    pub(super) fn is_allocated(&self, buffer: BufferId) -> bool {
        self.allocated.contains_key(&buffer)
    }
}
