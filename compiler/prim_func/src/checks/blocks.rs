//! Blocks around an access: what they declare, what they allocate, what their axes are for.

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
    /// Whether all that is written there is among them.
    pub(super) complete: bool,
    pub(super) place: &'t ItemPlace,
}

/// A block that is open.
#[derive(Debug, Default)]
pub(super) struct Block<'t> {
    /// How many [`crate::reader::trace::Event::Open`] are open in it.
    level: usize,
    /// How long the path is before its axes.
    pub(super) first_step: usize,
    pub(super) reads: Option<Declared<'t>>,
    pub(super) writes: Option<Declared<'t>>,
    pub(super) has_init: bool,
    /// How many conditions hold for the whole block: `T.where`.
    pub(super) predicates: usize,
}

impl Block<'_> {
    /// Whether it declares that it reads and writes nothing, as blocks do whose accesses are not followed.
    pub(super) fn is_opaque(&self) -> bool {
        let nothing = |declared: &Option<Declared<'_>>| declared.is_some_and(|it| it.complete && it.regions.is_empty());
        nothing(&self.reads) && nothing(&self.writes)
    }

    /// Whether it declares to read of a buffer what it writes.
    pub(super) fn updates(&self, buffer: BufferId) -> bool {
        self.reads.is_some_and(|it| it.regions.iter().any(|region| region.buffer == buffer))
    }
}

/// Blocks and buffers, as far as the walk has come.
#[derive(Debug, Default)]
pub(super) struct Blocks<'t> {
    open: Vec<Block<'t>>,
    /// Levels of the `T.init` that are open.
    inits: Vec<usize>,
    /// How long the path was where a buffer was allocated, and in how many blocks.
    allocated: FxHashMap<BufferId, (usize, usize)>,
    /// Buffers that something before may have written.
    pub(super) written: FxHashSet<BufferId>,
    /// Loads since the last store.
    pub(super) loads: Vec<&'t Access>,
    /// Loads of buffers that nothing wrote before, first ones.
    pub(super) unwritten: FxHashMap<BufferId, Unwritten<'t>>,
}

/// A load of a buffer that nothing wrote before.
#[derive(Debug)]
pub(super) struct Unwritten<'t> {
    pub(super) access: &'t Access,
    /// The outermost loop or condition around it in which the buffer lives: a later store in there may come before.
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

    /// A condition holds from here on, where so many are open.
    pub(super) fn assume(&mut self, level: usize) {
        if let Some(block) = self.open.last_mut().filter(|block| block.level == level) {
            block.predicates += 1;
        }
    }

    /// The last of `level` [`crate::reader::trace::Event::Open`] is closed.
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

    /// Statements that could not be read may write what they name, and what that stands for.
    pub(super) fn unread(&mut self, names: &NameSet, func: &PrimFunc) {
        let known: NameMap<()> = names.iter().map(|name| (*name, ())).collect();
        let all = (0u32..).zip(&func.buffers).filter(|(_, buffer)| known.contains_key(&buffer.name));
        self.written.extend(all.map(|(buffer, _)| BufferId(buffer)));
    }

    /// Whether the walk is in a `T.init`.
    pub(super) fn in_init(&self) -> bool {
        !self.inits.is_empty()
    }

    /// The block directly around.
    pub(super) fn innermost(&self) -> Option<&Block<'t>> {
        self.open.last()
    }

    /// The blocks around in which a buffer is known that is not theirs, innermost first.
    pub(super) fn around(&self, buffer: BufferId) -> impl Iterator<Item = &Block<'t>> {
        let outside = self.allocated.get(&buffer).map_or(0, |(_, blocks)| *blocks);
        self.open.get(outside..).unwrap_or_default().iter().rev()
    }

    /// Whether a buffer was allocated behind the step of the path, so that every time it is taken the buffer is another.
    pub(super) fn is_allocated_behind(&self, buffer: BufferId, step: usize) -> bool {
        self.allocated.get(&buffer).is_some_and(|(steps, _)| *steps > step)
    }

    /// How many steps the path had where a buffer was allocated.
    pub(super) fn allocated_at(&self, buffer: BufferId) -> Option<usize> {
        self.allocated.get(&buffer).map(|(steps, _)| *steps)
    }

    /// Whether the function allocates it.
    pub(super) fn is_allocated(&self, buffer: BufferId) -> bool {
        self.allocated.contains_key(&buffer)
    }
}
