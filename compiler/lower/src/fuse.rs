//! Joining kernels: what computes element by element goes behind the kernel whose result it reads, else into the kernel
//! that reads it.
//!
//! An *epilogue* first: a kernel that makes each element from one element of what a reduction computed, and is all that
//! reads it, is joined to the reduction (a convolution with its normalisation and activation), so that a schedule can keep
//! the element in a register between the two. Then *prologues*: a kernel whose outputs are all read once, by one other kernel, and which does no reduction, becomes part of that
//! kernel; its outputs become temporaries. Whether they stay buffers or vanish into index expressions is the schedule's
//! to say (`rx_schedule::inline`).

mod dead;
mod epilogue;
mod merge;

use crate::program::{Instruction, Kernel, KernelId, Operation, Procedure, Program, Register};
use rx_tir::func::{BufferId, PrimFunc};
use rx_tir::{IterKind, Stmt};
use std::sync::Arc;

/// The most buffers of a joined kernel: devices limit the size of an argument list.
const MAX_BUFFERS: usize = 48;

/// Joins the kernels of every procedure and leaves out what nothing reads.
pub fn fuse(program: &mut Program) {
    for at in 0..program.procedures.len() {
        let mut procedure = std::mem::replace(&mut program.procedures[at], empty());
        dead::remove(&mut procedure, program);
        let mut reads = reads_of(&procedure);
        let mut code = std::mem::take(&mut procedure.code);
        code = fuse_block(code, &mut reads, program);
        procedure.code = code;
        program.procedures[at] = procedure;
    }
    drop_unused(program);
}

fn empty() -> Procedure {
    Procedure {
        name: Default::default(),
        params: Vec::new(),
        num_input: None,
        once: false,
        captured: 0,
        registers: 0,
        code: Vec::new(),
        result: Register(0),
        storages: Vec::new(),
    }
}

/// How often each register is read.
fn reads_of(procedure: &Procedure) -> Vec<u32> {
    let mut reads = vec![0; procedure.registers as usize];
    for instruction in &procedure.code {
        instruction.operation.for_each_read(&mut |register| reads[register.0 as usize] += 1);
    }
    reads[procedure.result.0 as usize] += 1;
    reads
}

fn fuse_block(mut code: Vec<Instruction>, reads: &mut Vec<u32>, program: &mut Program) -> Vec<Instruction> {
    for instruction in &mut code {
        if let Operation::If { arms, otherwise, .. } = &mut instruction.operation {
            for (condition, _, branch) in arms {
                *condition = fuse_block(std::mem::take(condition), reads, program);
                branch.code = fuse_block(std::mem::take(&mut branch.code), reads, program);
            }
            otherwise.code = fuse_block(std::mem::take(&mut otherwise.code), reads, program);
        }
    }
    let mut code: Vec<Option<Instruction>> = code.into_iter().map(Some).collect();
    // Forward, so that a reduction takes what follows it, and then what follows that.
    for at in 0..code.len() {
        if let Some(consumer) = epilogue_of(&code, at, reads, program) {
            join(&mut code, at, consumer, reads, program);
        }
    }
    // Backward, so that a chain is joined from its end: each kernel is merged once, into one that is complete.
    for at in (0..code.len()).rev() {
        if let Some(consumer) = prologue_of(&code, at, reads, program) {
            join(&mut code, at, consumer, reads, program);
        }
    }
    code.into_iter().flatten().collect()
}

/// Makes two kernels one, in the place of the second, where that is possible.
fn join(code: &mut [Option<Instruction>], at: usize, consumer: usize, reads: &mut [u32], program: &mut Program) {
    let (Some(producer), Some(into)) = (code[at].take(), code[consumer].take()) else { return };
    match merge::merge(&producer, &into, program) {
        Some(merged) => {
            forget_reads(&producer, &into, &merged, reads);
            code[consumer] = Some(merged);
        }
        None => (code[at], code[consumer]) = (Some(producer), Some(into)),
    }
}

/// The one kernel that reads what the reduction at `at` computes, where it is an epilogue.
fn epilogue_of(code: &[Option<Instruction>], at: usize, reads: &[u32], program: &Program) -> Option<usize> {
    let Operation::Kernel { kernel, outputs, .. } = &code[at].as_ref()?.operation else { return None };
    let [output] = outputs.as_slice() else { return None };
    if is_injective(&program.kernel(*kernel).func) {
        return None;
    }
    let consumer = only_consumer(code, at, reads)?;
    let Operation::Kernel { kernel, inputs, .. } = &code[consumer].as_ref()?.operation else { return None };
    let Kernel { func, inputs: count } = program.kernel(*kernel);
    if !is_injective(func) {
        return None;
    }
    let buffers: Vec<BufferId> = func.buffer_params().collect();
    let input = inputs.iter().position(|register| *register == output.to)?;
    epilogue::follows(func, *buffers.get(input)?, buffers.get(*count..)?).then_some(consumer)
}

/// The one kernel that reads what the kernel at `at` computes, where the latter may be done as part of it.
fn prologue_of(code: &[Option<Instruction>], at: usize, reads: &[u32], program: &Program) -> Option<usize> {
    let Operation::Kernel { kernel, .. } = &code[at].as_ref()?.operation else { return None };
    if !is_injective(&program.kernel(*kernel).func) {
        return None;
    }
    only_consumer(code, at, reads)
}

/// The one kernel of the block that reads what the kernel at `at` computes, once.
fn only_consumer(code: &[Option<Instruction>], at: usize, reads: &[u32]) -> Option<usize> {
    let Operation::Kernel { outputs, .. } = &code[at].as_ref()?.operation else { return None };
    let mut consumer = None;
    for output in outputs {
        match reads[output.to.0 as usize] {
            0 => continue,
            1 => {}
            _ => return None,
        }
        let reader = (at + 1..code.len()).find(|at| {
            let mut found = false;
            if let Some(instruction) = &code[*at] {
                instruction.operation.for_each_read(&mut |register| found |= register == output.to);
            }
            found
        })?;
        if consumer.is_some_and(|other| other != reader) {
            return None;
        }
        consumer = Some(reader);
    }
    let consumer = consumer?;
    matches!(code[consumer].as_ref()?.operation, Operation::Kernel { .. }).then_some(consumer)
}

/// A merged kernel reads an input once that both read.
fn forget_reads(producer: &Instruction, into: &Instruction, merged: &Instruction, reads: &mut [u32]) {
    for instruction in [producer, into] {
        instruction.operation.for_each_read(&mut |register| {
            let count = &mut reads[register.0 as usize];
            *count = count.saturating_sub(1);
        });
    }
    merged.operation.for_each_read(&mut |register| reads[register.0 as usize] += 1);
}

/// Whether every block computes elements one by one, from nothing the function itself computes.
fn is_injective(func: &PrimFunc) -> bool {
    let mut injective = true;
    func.body.walk(&mut |stmt| match stmt {
        Stmt::Block(block) => {
            injective &= block.iters.iter().all(|iter| iter.kind == IterKind::Spatial)
                && block.init.is_none()
                && block.predicate.is_none()
                && (block.allocations.is_empty() || block.iters.is_empty());
        }
        Stmt::Seq(_) | Stmt::For { .. } | Stmt::Store { .. } => {}
        _ => injective = false,
    });
    injective
}

/// Numbers kernels anew, without those that nothing runs.
fn drop_unused(program: &mut Program) {
    let mut new_ids: Vec<Option<KernelId>> = vec![None; program.kernels.len()];
    let mut kept: Vec<Kernel> = Vec::new();
    let mut procedures = std::mem::take(&mut program.procedures);
    for procedure in &mut procedures {
        for_each_kernel(&mut procedure.code, &mut |kernel| {
            let slot = &mut new_ids[kernel.0 as usize];
            *kernel = *slot.get_or_insert_with(|| {
                kept.push(program.kernels[kernel.0 as usize].clone());
                KernelId(kept.len() as u32 - 1)
            });
        });
    }
    program.procedures = procedures;
    program.kernels = kept;
}

fn for_each_kernel(code: &mut [Instruction], visit: &mut dyn FnMut(&mut KernelId)) {
    for instruction in code {
        match &mut instruction.operation {
            Operation::Kernel { kernel, .. } => visit(kernel),
            Operation::If { arms, otherwise, .. } => {
                for (condition, _, branch) in arms {
                    for_each_kernel(condition, visit);
                    for_each_kernel(&mut branch.code, visit);
                }
                for_each_kernel(&mut otherwise.code, visit);
            }
            _ => {}
        }
    }
}

/// Adds a kernel.
fn add_kernel(program: &mut Program, func: PrimFunc, inputs: usize) -> KernelId {
    program.kernels.push(Kernel { func: Arc::new(func), inputs });
    KernelId(program.kernels.len() as u32 - 1)
}
