//! Kernel fusion: merges producer and consumer kernels, so that intermediate tensors need no memory.
//!
//! ```text
//! s = kernel matmul(x, w)                      y = kernel fused_matmul_add_relu(x, w, b)
//! t = kernel add(s, b)             →
//! y = kernel relu(t)
//! ```
//!
//! Fusion has three main stages:
//!
//! 1. *Epilogues*: an elementwise kernel that is the only reader of a reduction's result is merged into the reduction
//!    (for example a convolution followed by its normalization and activation). A schedule can then keep each element
//!    in a register.
//! 2. *Chains*: several kernels that the device can schedule as one (attention) are merged (`chain`).
//! 3. *Prologues*: an injective kernel whose outputs are each read at most once, all by the same kernel, is usually
//!    merged into that kernel. Its outputs become temporaries. Whether they remain buffers or are inlined into their
//!    reads is decided later (`rx_loops::inline`).
//!
//! A view between two kernels usually does not prevent fusion if the consumer can read the tensor under its shape
//! before the view (`reshape`), or can run over that shape, with the view moved after it (`sink`). A kernel that only
//! moves elements (`moves`, for example a transpose) is duplicated into its readers if these are few and injective. A
//! kernel that only copies all elements in order becomes a view.
//!
//! Requires registers that are written once. Guarantees that the values of the remaining registers are unchanged, and
//! that fusion divides no index.
//!
//! Reference: TVM's `src/relax/transform/fuse_ops.cc` and `fuse_tir.cc`.

mod block;
mod chain;
mod dead;
mod delinearize;
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
use rx_loops::TargetInfo;
use smallvec::SmallVec;

/// The maximum number of buffer parameters of a merged kernel: devices limit the size of an argument list.
const MAX_BUFFERS: usize = 48;

/// The maximum number of loop nests of a merged kernel. Every later pass visits all of them, so this bounds the compile
/// time.
const MAX_NESTS: usize = 64;

/// The maximum number of readers into which a kernel that only moves elements is duplicated.
const MAX_READERS: usize = 4;

/// The target information of the device, and the queries. Every fusion step takes them.
pub(crate) struct Context<'c> {
    /// The device's target information: whether it fuses chains, for example.
    pub(crate) target_info: &'c dyn TargetInfo,
    /// Computes (or looks up) merged and rewritten functions.
    pub(crate) queries: &'c dyn Queries,
}

/// Removes dead instructions and, where possible, the kernel outputs that nothing reads ([`dead`]).
pub(crate) fn remove_dead_code(program: &mut Program, context: &Context<'_>) {
    each_procedure(program, |procedure, program| dead::remove(procedure, program, context));
}

/// Replaces kernels whose output has all elements of their input in the same row-major order by views, makes each view
/// of a view refer to the original tensor, then removes dead code.
pub(crate) fn find_views(program: &mut Program, context: &Context<'_>) {
    each_procedure(program, |procedure, program| {
        procedure.code = with_views(std::mem::take(&mut procedure.code), &mut FxHashMap::default(), program);
        dead::remove(procedure, program, context);
    });
}

/// Moves views after the elementwise kernels that follow a reduction ([`sink`]).
pub(crate) fn sink_views(program: &mut Program, context: &Context<'_>) {
    each_procedure(program, |procedure, program| {
        let mut reads = reads_of(procedure);
        sink::views(procedure, &mut reads, program, context);
    });
}

/// Merges reductions with the elementwise kernel that is the only reader of their result (the epilogue).
pub(crate) fn fuse_epilogues(program: &mut Program, context: &Context<'_>) {
    each_block(program, &mut |code, reads, program| {
        // Forward order: a reduction first takes the kernel that follows it, then the kernel that follows the merged
        // one.
        for at in 0..code.len() {
            if let Some(reader) = epilogue_of(code, at, reads, program) {
                join(code, at, &reader, reads, program, context);
            }
        }
    });
}

/// Merges the chains of kernels that the device can schedule as one kernel ([`chain`]).
pub(crate) fn fuse_chains(program: &mut Program, context: &Context<'_>) {
    if context.target_info.joins_chains() {
        let mut asked = chain::Asked::default();
        each_block(program, &mut |code, reads, program| chain::join(code, reads, program, (context, &mut asked)));
    }
}

/// Duplicates kernels that only move elements into their readers, if these are injective and few ([`MAX_READERS`]).
pub(crate) fn fuse_moves(program: &mut Program, context: &Context<'_>) {
    each_block(program, &mut |code, reads, program| {
        for at in (0..code.len()).rev() {
            for reader in readers_of_move(code, at, reads, program) {
                join(code, at, &reader, reads, program, context);
            }
        }
    });
}

/// Merges injective kernels into their only reader (prologues), then removes unused kernels.
pub(crate) fn fuse_producers(program: &mut Program, context: &Context<'_>) {
    each_block(program, &mut |code, reads, program| {
        // Backward order: a chain of kernels is merged from its end, so each kernel is merged once.
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

/// Calls `change` on each procedure. Kernels that are no longer called remain in the program until [`drop_unused`].
fn each_procedure(program: &mut Program, mut change: impl FnMut(&mut Procedure, &mut Program)) {
    for at in 0..program.procedures.len() {
        let mut procedure = std::mem::replace(&mut program.procedures[at], Procedure::empty());
        change(&mut procedure, program);
        program.procedures[at] = procedure;
    }
}

/// A change of the instructions of a block. Its arguments are the block, the read count of each register, and the
/// program.
type ChangeBlock<'c> = dyn FnMut(&mut Block, &mut [u32], &mut Program) + 'c;

/// Calls `change` on every block of each procedure. Nested blocks come before the block that contains them.
fn each_block(program: &mut Program, change: &mut ChangeBlock<'_>) {
    each_procedure(program, |procedure, program| {
        let mut reads = reads_of(procedure);
        let code = std::mem::take(&mut procedure.code);
        procedure.code = changed(code, &mut reads, program, change);
    });
}

/// Applies `change` to the blocks nested in `code`, then to `code`. Returns the new instructions.
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

/// Returns the number of reads of each register, indexed by register number. The procedure's result counts as one read.
fn reads_of(procedure: &Procedure) -> Vec<u32> {
    let mut reads = vec![0; procedure.types.len()];
    for instruction in &procedure.code {
        instruction.operation.for_each_read(&mut |register| reads[register.0 as usize] += 1);
    }
    reads[procedure.result.0 as usize] += 1;
    reads
}

/// Replaces kernels whose output has all elements of their input in the same row-major order by views, and makes each
/// view of a view refer to the original tensor. `views` maps the register of each view to that tensor.
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

/// A kernel that reads the result of another one, possibly through a view.
struct Reader {
    /// The position of the reading kernel in the block.
    at: usize,
    /// The position of the view between the two kernels, if there is one.
    view: Option<usize>,
}

/// Merges the kernel at `at` into its reader and puts the merged kernel at the reader's position. Leaves the block
/// unchanged if they cannot be merged.
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
    // The producer and the view are removed only if no other instruction reads them.
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

/// Rewrites the consumer of a view so that it reads the producer's output directly. Returns `None` where the rewrite is
/// not possible ([`Rewrite::Reshape`]), for example because an index would need a division.
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
    // An epilogue must have the loops of its reduction, usually one per dim of the tensor. So after a reduction, a dim
    // of the tensor may not be several dims of the view.
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

/// Returns the only reader of the reduction at `at` (any kernel that is not injective), which must have one output, if
/// that reader is an epilogue: an injective kernel that reads the output element by element ([`Kernel::follows`]).
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

/// Returns the register that `reader` loads from a kernel with these outputs: its first output, or the view of it.
fn read_by(code: &Block, reader: &Reader, outputs: &[Output]) -> Option<Register> {
    match reader.view {
        None => outputs.first().map(|output| output.to),
        Some(view) => match &code[view].as_ref()?.operation {
            Operation::View { to, .. } => Some(*to),
            _ => None,
        },
    }
}

/// Returns the only reader of the kernel at `at`, if the kernel is a prologue: an injective kernel that may be merged
/// into that reader.
fn prologue_of(code: &Block, at: usize, reads: &[u32], program: &Program) -> Option<Reader> {
    let Operation::Kernel { kernel, .. } = &code[at].as_ref()?.operation else { return None };
    let properties = program.kernel(*kernel).loops.properties();
    if !properties.is_injective {
        return None;
    }
    let reader = only_reader(code, at, reads)?;
    // A producer that is merged through a view may be recomputed at every read, not buffered. So a reader that is not
    // injective, such as a reduction, is accepted only if the producer just moves elements.
    (reader.view.is_none() || properties.is_move || is_injective_at(code, reader.at, program)).then_some(reader)
}

/// Returns the readers of the kernel at `at`, if the kernel only moves elements and may be duplicated into all of them:
/// there are at least two and at most [`MAX_READERS`], all are injective and in this block, each reads the output (or
/// its view) once, and nothing else reads it.
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

/// Whether the kernel at `at` is complete as it is: the device schedules it as one kernel, so no prologue may be merged
/// into it.
fn is_whole(code: &Block, at: usize, program: &Program) -> bool {
    match code[at].as_ref().map(|one| &one.operation) {
        Some(Operation::Kernel { kernel, .. }) => program.kernel(*kernel).whole,
        _ => false,
    }
}

/// Whether the instruction at `at` is a kernel that is injective ([`Properties::is_injective`]).
fn is_injective_at(code: &Block, at: usize, program: &Program) -> bool {
    match code[at].as_ref().map(|one| &one.operation) {
        Some(Operation::Kernel { kernel, .. }) => program.kernel(*kernel).loops.properties().is_injective,
        _ => false,
    }
}

/// Returns the kernel that reads a register, given its reader `at`: the instruction at `at` itself, or the only reader
/// of the view at `at`.
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

/// Returns the only kernel of the block that reads the outputs of the kernel at `at`. Each output must be read at most
/// once; it may be read through a view if no other output is read.
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

/// Subtracts the reads of a removed instruction from the read counts.
fn forget(instruction: &Instruction, reads: &mut [u32]) {
    instruction.operation.for_each_read(&mut |register| {
        let count = &mut reads[register.0 as usize];
        *count = count.saturating_sub(1);
    });
}

/// Removes kernels that are never called, and renumbers the others in the order of their first calls.
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

/// Visits the kernel ids of all calls, in program order, branches included.
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
