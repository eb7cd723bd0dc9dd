//! A block of instructions while kernels are joined: who reads a register is looked up, not searched for.

use crate::program::{Instruction, Operation, Output, Register};
use rustc_hash::FxHashMap;
use std::ops::{Deref, DerefMut};

/// The instructions of a block; none in the place of one that is gone.
pub(super) struct Block {
    code: Vec<Option<Instruction>>,
    /// By register, the places of instructions that read it, or read it before they were changed.
    readers: FxHashMap<Register, Vec<usize>>,
    /// By register, the place of the kernel or view that makes it, or made it before it was joined to another.
    makers: FxHashMap<Register, usize>,
}

impl Block {
    pub(super) fn new(code: Vec<Instruction>) -> Block {
        let mut block =
            Block { code: vec![None; code.len()], readers: FxHashMap::default(), makers: FxHashMap::default() };
        for (at, instruction) in code.into_iter().enumerate() {
            block.put(at, instruction);
        }
        block
    }

    /// The instructions that are left, in order.
    pub(super) fn into_code(self) -> Vec<Instruction> {
        self.code.into_iter().flatten().collect()
    }

    /// Puts an instruction in a place; gives the one that was there.
    pub(super) fn put(&mut self, at: usize, instruction: Instruction) -> Option<Instruction> {
        let readers = &mut self.readers;
        instruction.operation.for_each_read(&mut |register| {
            let places = readers.entry(register).or_default();
            if let Err(place) = places.binary_search(&at) {
                places.insert(place, at);
            }
        });
        match &instruction.operation {
            Operation::Kernel { outputs, .. } => {
                self.makers.extend(outputs.iter().map(|output: &Output| (output.to, at)));
            }
            Operation::View { to, .. } => _ = self.makers.insert(*to, at),
            _ => {}
        }
        self.code[at].replace(instruction)
    }

    /// The places after `at` of the instructions that read a register, in order.
    pub(super) fn readers(&self, at: usize, wanted: Register) -> Vec<usize> {
        let reads = |place: &usize| {
            let mut found = false;
            if let Some(instruction) = &self.code[*place] {
                instruction.operation.for_each_read(&mut |register| found |= register == wanted);
            }
            found
        };
        let places = self.readers.get(&wanted).map_or(&[][..], Vec::as_slice);
        places.iter().copied().filter(|place| *place > at && reads(place)).collect()
    }

    /// The place of the kernel or view that makes a register.
    pub(super) fn maker(&self, register: Register) -> Option<usize> {
        let at = *self.makers.get(&register)?;
        let makes = match &self.code[at].as_ref()?.operation {
            Operation::Kernel { outputs, .. } => outputs.iter().any(|output| output.to == register),
            Operation::View { to, .. } => *to == register,
            _ => false,
        };
        makes.then_some(at)
    }
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
