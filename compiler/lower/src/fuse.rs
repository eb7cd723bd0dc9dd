//! Joining kernels: what computes element by element goes behind the kernel whose result it reads, else into the kernel
//! that reads it.
//!
//! An *epilogue* first: a kernel that makes each element from one element of what a reduction computed, and is all that
//! reads it, is joined to the reduction (a convolution with its normalisation and activation), so that a schedule can keep
//! the element in a register between the two. Then *prologues*: a kernel whose outputs are all read once, by one other kernel, and which does no reduction, becomes part of that
//! kernel; its outputs become temporaries. Whether they stay buffers or vanish into index expressions is the schedule's
//! to say (`rx_schedule::inline`).
//!
//! Between the two, *chains* of kernels of which the device makes one are joined (`chain`).
//!
//! A view between two kernels is no obstacle where the second can read the tensor as it is before the view (`reshape`), or
//! can run over the tensor's extents with the view behind it (`sink`). A
//! kernel that only moves elements (`moves`) becomes part of each of its few readers, and one that leaves them in
//! their order becomes a view.

mod block;
mod chain;
mod dead;
mod digits;
mod epilogue;
mod merge;
mod moves;
mod properties;
mod reshape;
mod rewrite;
mod sink;

pub(crate) use epilogue::followed_inputs;
pub use merge::{Merged, Pair};
pub(crate) use properties::Properties;
pub use rewrite::{Rewrite, Rewritten};

use crate::program::{Instruction, Kernel, KernelId, Operation, Output, Procedure, Program, Register};
use crate::queries::{Queries, rewritten};
use block::Block;
use rustc_hash::FxHashMap;
use rx_schedule::Preferences;
use smallvec::SmallVec;

/// The most buffers of a joined kernel: devices limit the size of an argument list.
const MAX_BUFFERS: usize = 48;

/// The most nests of a joined kernel: what is done to all of them again and again, pass after pass, stays linear in their number.
const MAX_NESTS: usize = 64;

/// The most readers of a kernel that only moves elements that each do so themselves.
const MAX_READERS: usize = 4;

/// The device that steps are run for, and the answers to their questions.
pub(crate) struct Context<'c> {
    pub(crate) preferences: &'c dyn Preferences,
    pub(crate) queries: &'c dyn Queries,
}

/// Removes what nothing reads.
pub(crate) fn remove_dead_code(program: &mut Program, context: &Context<'_>) {
    each_procedure(program, |procedure, program| dead::remove(procedure, program, context));
}

/// Makes views of kernels that leave elements in their order, and of views of views views of the first tensor.
pub(crate) fn find_views(program: &mut Program, context: &Context<'_>) {
    each_procedure(program, |procedure, program| {
        procedure.code = with_views(std::mem::take(&mut procedure.code), &mut FxHashMap::default(), program);
        dead::remove(procedure, program, context);
    });
}

/// Moves views below the kernels that follow a reduction ([`sink`]).
pub(crate) fn sink_views(program: &mut Program, context: &Context<'_>) {
    each_procedure(program, |procedure, program| {
        let mut reads = reads_of(procedure);
        sink::views(procedure, &mut reads, program, context);
    });
}

/// Joins to reductions what is computed of their results, element by element.
pub(crate) fn fuse_epilogues(program: &mut Program, context: &Context<'_>) {
    each_block(program, &mut |code, reads, program| {
        // Forward, so that a reduction takes what follows it, and then what follows that.
        for at in 0..code.len() {
            if let Some(reader) = epilogue_of(code, at, reads, program) {
                join(code, at, &reader, reads, program, context);
            }
        }
    });
}

/// Joins the chains of kernels of which the device makes one ([`chain`]).
pub(crate) fn fuse_chains(program: &mut Program, context: &Context<'_>) {
    if context.preferences.joins_chains() {
        let mut asked = chain::Asked::default();
        each_block(program, &mut |code, reads, program| chain::join(code, reads, program, (context, &mut asked)));
    }
}

/// Makes kernels that only move elements part of each of their few readers.
pub(crate) fn fuse_moves(program: &mut Program, context: &Context<'_>) {
    each_block(program, &mut |code, reads, program| {
        for at in (0..code.len()).rev() {
            for reader in readers_of_move(code, at, reads, program) {
                join(code, at, &reader, reads, program, context);
            }
        }
    });
}

/// Joins kernels to the one kernel that reads them.
pub(crate) fn fuse_producers(program: &mut Program, context: &Context<'_>) {
    each_block(program, &mut |code, reads, program| {
        // Backward, so that a chain is joined from its end: each kernel is merged once, into one that is complete.
        for at in (0..code.len()).rev() {
            if let Some(reader) = prologue_of(code, at, reads, program)
                && !is_whole(code, reader.at, program)
            {
                join(code, at, &reader, reads, program, context);
            }
        }
    });
    drop_unused(program);
}

/// Calls `change` on each procedure. Kernels that nothing calls any more stay until [`drop_unused`].
fn each_procedure(program: &mut Program, mut change: impl FnMut(&mut Procedure, &mut Program)) {
    for at in 0..program.procedures.len() {
        let mut procedure = std::mem::replace(&mut program.procedures[at], Procedure::empty());
        change(&mut procedure, program);
        program.procedures[at] = procedure;
    }
}

/// Changes the instructions of a block; it is given them, how often each register is read, and the program.
type ChangeBlock<'c> = dyn FnMut(&mut Block, &mut [u32], &mut Program) + 'c;

/// Calls `change` on the blocks of each procedure, inner ones first.
fn each_block(program: &mut Program, change: &mut ChangeBlock<'_>) {
    each_procedure(program, |procedure, program| {
        let mut reads = reads_of(procedure);
        let code = std::mem::take(&mut procedure.code);
        procedure.code = changed(code, &mut reads, program, change);
    });
}

fn changed(
    mut code: Vec<Instruction>,
    reads: &mut [u32],
    program: &mut Program,
    change: &mut ChangeBlock<'_>,
) -> Vec<Instruction> {
    for instruction in &mut code {
        if let Operation::If { arms, otherwise, .. } = &mut instruction.operation {
            for (condition, _, branch) in arms {
                *condition = changed(std::mem::take(condition), reads, program, change);
                branch.code = changed(std::mem::take(&mut branch.code), reads, program, change);
            }
            otherwise.code = changed(std::mem::take(&mut otherwise.code), reads, program, change);
        }
    }
    let mut block = Block::new(code, reads.len());
    change(&mut block, reads, program);
    block.into_code()
}

/// How often each register is read.
fn reads_of(procedure: &Procedure) -> Vec<u32> {
    let mut reads = vec![0; procedure.types.len()];
    for instruction in &procedure.code {
        instruction.operation.for_each_read(&mut |register| reads[register.0 as usize] += 1);
    }
    reads[procedure.result.0 as usize] += 1;
    reads
}

/// The code with kernels that leave elements in their order as views, and views of views as views of the first tensor.
fn with_views(
    mut code: Vec<Instruction>,
    views: &mut FxHashMap<Register, Register>,
    program: &Program,
) -> Vec<Instruction> {
    for instruction in &mut code {
        if let Operation::If { arms, otherwise, .. } = &mut instruction.operation {
            for (condition, _, branch) in arms {
                *condition = with_views(std::mem::take(condition), views, program);
                branch.code = with_views(std::mem::take(&mut branch.code), views, program);
            }
            otherwise.code = with_views(std::mem::take(&mut otherwise.code), views, program);
        }
        if let Operation::Kernel { kernel, inputs, outputs, .. } = &instruction.operation
            && let ([from], [output]) = (&inputs[..], &outputs[..])
            && program.kernel(*kernel).loops.properties().is_view
        {
            instruction.operation = Operation::View { to: output.to, from: *from, shape: output.shape.clone() };
        }
        if let Operation::View { to, from, .. } = &mut instruction.operation {
            *from = views.get(from).copied().unwrap_or(*from);
            views.insert(*to, *from);
        }
    }
    code
}

/// A kernel that reads what another computes, and the view through which it does.
struct Reader {
    at: usize,
    view: Option<usize>,
}

/// Makes two kernels one, in the place of the second, where that is possible.
fn join(code: &mut Block, at: usize, reader: &Reader, reads: &mut [u32], program: &mut Program, context: &Context<'_>) {
    let (Some(producer), Some(consumer)) = (&code[at], &code[reader.at]) else { return };
    let merged = match reader.view.map(|view| code[view].as_ref()) {
        None => merge::merge(producer, consumer, program, context),
        Some(view) => view
            .and_then(|view| without_view(producer, view, consumer, program, context))
            .and_then(|into| merge::merge(producer, &into, program, context)),
    };
    let Some(merged) = merged else { return };
    forget(consumer, reads);
    // What others read stays for them.
    let unread = |instruction: &Instruction, reads: &[u32]| match &instruction.operation {
        Operation::Kernel { outputs, .. } => outputs.iter().all(|output| reads[output.to.0 as usize] == 0),
        Operation::View { to, .. } => reads[to.0 as usize] == 0,
        _ => false,
    };
    for before in reader.view.into_iter().chain([at]) {
        if code[before].as_ref().is_some_and(|one| unread(one, reads))
            && let Some(gone) = code[before].take()
        {
            forget(&gone, reads);
        }
    }
    merged.operation.for_each_read(&mut |register| reads[register.0 as usize] += 1);
    code.put(reader.at, merged);
}

/// The consumer as it is where it reads what the producer computes, not a view of it.
fn without_view(
    producer: &Instruction,
    view: &Instruction,
    consumer: &Instruction,
    program: &mut Program,
    context: &Context<'_>,
) -> Option<Instruction> {
    let Operation::Kernel { kernel: of, outputs: made, .. } = &producer.operation else { return None };
    let Operation::View { to, from, shape } = &view.operation else { return None };
    let Operation::Kernel { kernel, inputs, outputs, scalars } = &consumer.operation else { return None };
    let made = made.iter().find(|output| output.to == *from)?;
    let at = inputs.iter().position(|input| input == to)?;
    // What follows a reduction has its elements one by one, whatever their places are called.
    let is_cut = program.kernel(*of).loops.properties().is_injective;
    let own = program.kernel(*kernel);
    let (loops, buffer) = (own.loops.clone(), own.loops.buffer_params().nth(at)?);
    let (from_shape, to_shape) = (made.shape.clone(), shape.clone());
    let rewrite = Rewrite::Reshape { loops, buffer, from: from_shape, to: to_shape, is_cut };
    let own = own.with(rewritten(context.queries, &rewrite)?);
    let mut inputs = inputs.clone();
    inputs[at] = *from;
    let kernel = program.add_kernel(own);
    let operation = Operation::Kernel { kernel, inputs, outputs: outputs.clone(), scalars: scalars.clone() };
    Some(Instruction { origin: consumer.origin, operation })
}

/// The one kernel that reads what the reduction at `at` computes, where it is an epilogue.
fn epilogue_of(code: &Block, at: usize, reads: &[u32], program: &Program) -> Option<Reader> {
    let Operation::Kernel { kernel, outputs, .. } = &code[at].as_ref()?.operation else { return None };
    let [_] = outputs.as_slice() else { return None };
    if program.kernel(*kernel).loops.properties().is_injective {
        return None;
    }
    let reader = only_reader(code, at, reads)?;
    let read = read_by(code, &reader, outputs)?;
    let Operation::Kernel { kernel, inputs, .. } = &code[reader.at].as_ref()?.operation else { return None };
    let kernel = program.kernel(*kernel);
    let input = inputs.iter().position(|register| *register == read)?;
    (kernel.loops.properties().is_injective && kernel.follows(input)).then_some(reader)
}

/// What a reader reads of a kernel with these outputs: one of them, or a view.
fn read_by(code: &Block, reader: &Reader, outputs: &[Output]) -> Option<Register> {
    match reader.view {
        None => outputs.first().map(|output| output.to),
        Some(view) => match &code[view].as_ref()?.operation {
            Operation::View { to, .. } => Some(*to),
            _ => None,
        },
    }
}

/// The one kernel that reads what the kernel at `at` computes, where the latter may be done as part of it.
fn prologue_of(code: &Block, at: usize, reads: &[u32], program: &Program) -> Option<Reader> {
    let Operation::Kernel { kernel, .. } = &code[at].as_ref()?.operation else { return None };
    let properties = program.kernel(*kernel).loops.properties();
    if !properties.is_injective {
        return None;
    }
    let reader = only_reader(code, at, reads)?;
    // Through a view elements are computed where they are read, not stored for readers that read them often.
    (reader.view.is_none() || properties.is_move || is_injective_at(code, reader.at, program)).then_some(reader)
}

/// The readers of a kernel that only moves elements, where each may move them for itself: several, all of which compute
/// element by element.
fn readers_of_move(code: &Block, at: usize, reads: &[u32], program: &Program) -> Vec<Reader> {
    let Some(Operation::Kernel { kernel, outputs, .. }) = code[at].as_ref().map(|one| &one.operation) else {
        return Vec::new();
    };
    let [output] = outputs.as_slice() else { return Vec::new() };
    if !program.kernel(*kernel).loops.properties().is_move {
        return Vec::new();
    }
    let mut found = Vec::new();
    for at in code.readers(at, output.to) {
        match code[at].as_ref().map(|one| &one.operation) {
            Some(Operation::View { to, .. }) => {
                found.extend(code.readers(at, *to).map(|reader| Reader { at: reader, view: Some(at) }));
                let count = found.iter().filter(|reader| reader.view == Some(at)).count();
                if reads[to.0 as usize] as usize != count {
                    return Vec::new();
                }
            }
            _ => found.push(Reader { at, view: None }),
        }
    }
    let all_injective = found.iter().all(|reader| is_injective_at(code, reader.at, program));
    let is_seen = reads[output.to.0 as usize] as usize != code.readers(at, output.to).count();
    match (2..=MAX_READERS).contains(&found.len()) && all_injective && !is_seen {
        true => found,
        false => Vec::new(),
    }
}

/// Whether the device makes one kernel of the function at a place as it is: nothing is joined to it.
fn is_whole(code: &Block, at: usize, program: &Program) -> bool {
    match code[at].as_ref().map(|one| &one.operation) {
        Some(Operation::Kernel { kernel, .. }) => program.kernel(*kernel).whole,
        _ => false,
    }
}

fn is_injective_at(code: &Block, at: usize, program: &Program) -> bool {
    match code[at].as_ref().map(|one| &one.operation) {
        Some(Operation::Kernel { kernel, .. }) => program.kernel(*kernel).loops.properties().is_injective,
        _ => false,
    }
}

/// The kernel that reads a register at `at`: itself, or as the only reader of a view there.
fn through_view(code: &Block, at: usize, reads: &[u32]) -> Option<Reader> {
    match &code[at].as_ref()?.operation {
        Operation::Kernel { .. } => Some(Reader { at, view: None }),
        Operation::View { to, .. } if reads[to.0 as usize] == 1 => {
            match code.readers(at, *to).collect::<SmallVec<[usize; 2]>>()[..] {
                [reader] if matches!(code[reader].as_ref()?.operation, Operation::Kernel { .. }) => {
                    Some(Reader { at: reader, view: Some(at) })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The one kernel of the block that reads what the kernel at `at` computes, once, be it through a view.
fn only_reader(code: &Block, at: usize, reads: &[u32]) -> Option<Reader> {
    let Operation::Kernel { outputs, .. } = &code[at].as_ref()?.operation else { return None };
    let mut only: Option<Reader> = None;
    for output in outputs {
        match reads[output.to.0 as usize] {
            0 => continue,
            1 => {}
            _ => return None,
        }
        let reader = through_view(code, code.readers(at, output.to).next()?, reads)?;
        if only.is_some_and(|other| other.at != reader.at || other.view.is_some() || reader.view.is_some()) {
            return None;
        }
        only = Some(reader);
    }
    only
}

/// An instruction that is gone reads nothing.
fn forget(instruction: &Instruction, reads: &mut [u32]) {
    instruction.operation.for_each_read(&mut |register| {
        let count = &mut reads[register.0 as usize];
        *count = count.saturating_sub(1);
    });
}

/// Numbers kernels in the order of their first calls, without those that nothing calls.
pub(crate) fn drop_unused(program: &mut Program) {
    let mut new_ids: Vec<Option<KernelId>> = vec![None; program.kernels.len()];
    let mut order: Vec<KernelId> = Vec::with_capacity(program.kernels.len());
    for procedure in &mut program.procedures {
        for_each_kernel(&mut procedure.code, &mut |kernel| {
            *kernel = *new_ids[kernel.0 as usize].get_or_insert_with(|| {
                order.push(*kernel);
                KernelId(order.len() as u32 - 1)
            });
        });
    }
    let is_kept = order.len() == program.kernels.len();
    if is_kept && order.iter().enumerate().all(|(at, old)| old.0 as usize == at) {
        return;
    }
    let mut left: Vec<Option<Kernel>> = std::mem::take(&mut program.kernels).into_iter().map(Some).collect();
    program.kernels = order.iter().filter_map(|old| left[old.0 as usize].take()).collect();
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
