//! A block of instructions with use-def lists, so that fusion looks up the readers and the writer of a register.

use crate::program::{Instruction, Operation, Register};
use smallvec::SmallVec;
use std::ops::{Deref, DerefMut};

/// The instructions of a block, with the uses of each register. A removed instruction leaves `None` at its position.
pub(super) struct Block {
    /// By position; `None` where an instruction was removed.
    code: Vec<Option<Instruction>>,
    /// By register number.
    registers: Vec<Uses>,
}

/// Positions of the instructions that write or read a register. They may be stale: an instruction that was replaced
/// since may no longer use the register, so every lookup checks the instruction.
#[derive(Clone, Default)]
struct Uses {
    /// The kernel or view that writes the register.
    maker: Option<u32>,
    /// In ascending order.
    readers: SmallVec<[u32; 4]>,
}

impl Block {
    /// Builds the block of a procedure that has `registers` registers.
    pub(super) fn new(code: Vec<Instruction>, registers: usize) -> Block {
        let mut block = Block { code: Vec::new(), registers: vec![Uses::default(); registers] };
        code.iter().enumerate().for_each(|(at, instruction)| block.note(at, instruction));
        block.code = code.into_iter().map(Some).collect();
        block
    }

    /// Returns the remaining instructions, in order.
    pub(super) fn into_code(self) -> Vec<Instruction> {
        left(self.code)
    }

    /// Puts an instruction at position `at`. Returns the instruction that was there.
    pub(super) fn put(&mut self, at: usize, instruction: Instruction) -> Option<Instruction> {
        self.note(at, &instruction);
        self.code[at].replace(instruction)
    }

    /// Records the instruction at `at` as a reader of each register that it reads and, if it is a kernel or a view, as
    /// the maker of each register that it writes.
    fn note(&mut self, at: usize, instruction: &Instruction) {
        let (registers, at) = (&mut self.registers, at as u32);
        instruction.operation.for_each_read(&mut |register| {
            let readers = &mut registers[register.0 as usize].readers;
            match readers.last() {
                Some(last) if *last >= at => {
                    if let Err(place) = readers.binary_search(&at) {
                        readers.insert(place, at);
                    }
                }
                _ => readers.push(at),
            }
        });
        match &instruction.operation {
            Operation::Kernel { outputs, .. } => {
                outputs.iter().for_each(|output| registers[output.to.0 as usize].maker = Some(at));
            }
            Operation::View { to, .. } => registers[to.0 as usize].maker = Some(at),
            _ => {}
        }
    }

    /// Returns the positions after `at` of the instructions that read a register, in ascending order.
    pub(super) fn readers(&self, at: usize, wanted: Register) -> impl Iterator<Item = usize> + '_ {
        let reads = move |place: &usize| {
            let mut found = false;
            if let Some(instruction) = &self.code[*place] {
                instruction.operation.for_each_read(&mut |register| found |= register == wanted);
            }
            found
        };
        let places = self.registers[wanted.0 as usize].readers.iter().map(|place| *place as usize);
        places.filter(move |place| *place > at && reads(place))
    }

    /// Returns the position of the kernel or view that writes a register.
    pub(super) fn maker(&self, register: Register) -> Option<usize> {
        let at = self.registers[register.0 as usize].maker? as usize;
        let makes = match &self.code[at].as_ref()?.operation {
            Operation::Kernel { outputs, .. } => outputs.iter().any(|output| output.to == register),
            Operation::View { to, .. } => *to == register,
            _ => false,
        };
        makes.then_some(at)
    }
}

/// Returns the instructions that were not removed, in order.
#[expect(clippy::filter_map_identity, reason = "unlike `flatten`, `filter_map` collects into the memory that it reads")]
pub(super) fn left(code: Vec<Option<Instruction>>) -> Vec<Instruction> {
    code.into_iter().filter_map(|instruction| instruction).collect()
}

impl Deref for Block {
    type Target = [Option<Instruction>];

    fn deref(&self) -> &[Option<Instruction>] {
        &self.code
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [Option<Instruction>] {
        &mut self.code
    }
}
