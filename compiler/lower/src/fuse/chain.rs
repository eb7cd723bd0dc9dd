//! Attention-like chains: fuses a sum of products (usually a matmul), the kernels that depend on it, and a second sum
//! of products into one kernel.
//!
//! ```text
//! s = kernel matmul(q, k)
//! m = kernel add(s, mask)              →     o = kernel fused_matmul_add_softmax_matmul(q, k, mask, v)
//! p = kernel softmax(m)
//! o = kernel matmul(p, v)
//! ```
//!
//! The intermediate tensors (the scores and the probabilities of attention) then never reach global memory.
//!
//! Requires:
//! - A chain begins at one sum of products and ends at the next. All direct and indirect readers of the first, through
//!   views and up to the second, are members of the chain, and none of them comes after the second. At least one member
//!   between the two is a reduction or otherwise not injective.
//! - Kernels after the end may belong to the chain if each is the only reader of its predecessor and reads at most one
//!   input element per output element, by cheap arithmetic (`is_light`: no reduction, no call such as `exp`).
//! - Other producers may belong to it if only members read them and they are of this kind (moves, scales, casts),
//!   or if their elements depend only on their indices and on symbols (iota, causal masks) and are cheap.
//! - The numbers of members are limited by the constants of this file.
//! - The device accepts the merged function as one kernel ([`rx_loops::TargetInfo`]), after its loops have been
//!   split along common axes (`delinearize`) and its elementwise temporaries inlined.
//!
//! Guarantees that the instructions are unchanged where the device declines. Kernels are matched by their loops, not by
//! their names.
//!
//! Reference: Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness" (2022).

use super::block::Block;
use super::delinearize::delinearize;
use super::reshape::reshaped;
use super::{Context, Properties, Rewrite, forget, merge};
use crate::loops::Loops;
use crate::program::{Instruction, Kernel, Operation, Output, Program, Register, Scalar};
use crate::queries::rewritten;
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_loops::Nest;
use rx_tir::func::{BufferId, PrimFunc};
use rx_tir::{BinaryOp, Expr, KernelBuilder, Stmt};
use smallvec::smallvec;

/// The maximum number of kernels from the first sum of products to the second, both included.
const MAX_BETWEEN: usize = 16;

/// The maximum number of kernels of a chain, not counting those after the second sum of products.
const MAX_KERNELS: usize = 40;

/// The maximum number of kernels of a chain after the second sum of products.
const MAX_AFTER: usize = 3;

/// Fuses the chains of a block that the device schedules as one kernel. The fused kernels are marked as
/// [`Kernel::whole`], so that no prologue is merged into them later.
pub(super) fn join(
    block: &mut Block,
    reads: &mut [u32],
    program: &mut Program,
    (context, asked): (&Context<'_>, &mut Asked),
) {
    let of_places = of_places(block, program);
    for at in 0..block.len() {
        let Some(chain) = Chain::of(block, at, (reads, &of_places), program) else { continue };
        for wanted in (0..=chain.after.len()).rev().flat_map(|after| chain.with(after)) {
            let Some(instruction) = together(block, &wanted, program, (context, asked)) else { continue };
            let Some(last) = wanted.last() else { continue };
            replace(block, *last, instruction, reads);
            break;
        }
    }
}

/// The memoized results of [`one`]: by merged function, the fused function, or `None` where the device declined.
/// Networks repeat their layers, so most chains are looked up.
pub(super) type Asked = FxHashMap<Loops, Option<Loops>>;

/// Splits the loops of a merged function along common axes and inlines temporaries ([`united`]). Returns `None` where
/// the device does not schedule the result as one kernel.
fn one(asked: &mut Asked, loops: &Loops, context: &Context<'_>) -> Option<Loops> {
    let answer = asked.entry(loops.clone()).or_insert_with(|| {
        let one = rewritten(context.queries, &Rewrite::Unite { loops: loops.clone() })?;
        context.queries.can_schedule_as_one_kernel(&one, context.target_info).then_some(one)
    });
    answer.clone()
}

/// Splits the loops of a merged function along common axes, where possible, and inlines temporaries that one nest
/// fills element by element ([`rx_loops::inline_all`]).
pub(super) fn united(func: &PrimFunc) -> PrimFunc {
    rx_loops::simplify(&rx_loops::inline_all(&delinearize(&rx_loops::simplify(func))))
}

/// The members of a chain, as positions in the block.
struct Chain {
    /// The kernels from the first sum of products to the second, both included. These two are usually matmuls, but may
    /// be any kernels that [`is_product`] accepts, for example convolutions.
    between: Vec<usize>,
    /// Producers before or between these that may be fused as well.
    front: Vec<usize>,
    /// Kernels after the second sum of products that may be fused as well.
    after: Vec<usize>,
}

impl Chain {
    /// Matches the chain whose first sum of products is at position `at`.
    fn of(
        code: &Block,
        at: usize,
        (reads, of_places): (&[u32], &FxHashSet<usize>),
        program: &Program,
    ) -> Option<Chain> {
        function(code, at, program)?.is_product.then_some(())?;
        let (mut between, mut end, mut next) = (vec![at], None, 0);
        while let Some(member) = between.get(next).copied() {
            next += 1;
            if end == Some(member) {
                continue;
            }
            for reader in all_readers(code, member, reads)? {
                if between.contains(&reader) {
                    continue;
                }
                between.push(reader);
                if function(code, reader, program)?.is_product && end.replace(reader).is_some()
                    || between.len() > MAX_BETWEEN
                {
                    return None;
                }
            }
        }
        between.sort_unstable();
        let is_reduction = |at: &usize| function(code, *at, program).is_some_and(|properties| !properties.is_injective);
        let [_, inner @ .., last] = &between[..] else { return None };
        if end != Some(*last) || !inner.iter().any(is_reduction) {
            return None;
        }
        let after = after(code, *last, reads, program);
        let front = front(code, &between, (reads, of_places), program);
        Some(Chain { between, front, after })
    }

    /// Returns the sets of kernels to try, in order of preference: the chain and the first `after` kernels that follow
    /// it, first with all producers of `front`, then without them.
    fn with(&self, after: usize) -> impl Iterator<Item = Vec<usize>> {
        let fronts = if self.front.is_empty() { vec![&[][..]] } else { vec![&self.front[..], &[]] };
        fronts.into_iter().map(move |front| {
            let mut members = [front, &self.between, &self.after[..after]].concat();
            members.sort_unstable();
            members
        })
    }
}

/// Collects up to [`MAX_AFTER`] kernels after `last`. Each is the only reader of its predecessor and is light
/// ([`Properties::is_light`]).
fn after(code: &Block, last: usize, reads: &[u32], program: &Program) -> Vec<usize> {
    let (mut found, mut at) = (Vec::new(), last);
    while found.len() < MAX_AFTER
        && let Some([reader]) = all_readers(code, at, reads).as_deref()
        && function(code, *reader, program).is_some_and(|properties| properties.is_light)
    {
        at = *reader;
        found.push(at);
    }
    found
}

/// Collects the producers that the chain may compute itself: light kernels that only members read, and the kernels of
/// [`of_places`], which may be recomputed anywhere. Stops at [`MAX_KERNELS`] members.
fn front(
    code: &Block,
    between: &[usize],
    (reads, of_places): (&[u32], &FxHashSet<usize>),
    program: &Program,
) -> Vec<usize> {
    let (mut members, mut front, mut next) = (between.to_vec(), Vec::new(), 0);
    while let Some(member) = members.get(next).copied() {
        next += 1;
        let Some(Operation::Kernel { inputs, .. }) = code[member].as_ref().map(|one| &one.operation) else { continue };
        for input in inputs {
            let Some(maker) = maker(code, *input) else { continue };
            if members.contains(&maker) || members.len() >= MAX_KERNELS {
                continue;
            }
            let is_own =
                || all_readers(code, maker, reads).is_some_and(|all| all.iter().all(|at| members.contains(at)));
            let is_light = || function(code, maker, program).is_some_and(|properties| properties.is_light);
            if of_places.contains(&maker) || is_light() && is_own() {
                members.push(maker);
                front.push(maker);
                // A producer that two members read qualifies only after both are members, so start again.
                next = 0;
            }
        }
    }
    front
}

/// Returns the position of the kernel that writes a register, looking through views.
fn maker(code: &Block, register: Register) -> Option<usize> {
    let mut at = code.maker(register)?;
    while let Operation::View { from, .. } = &code[at].as_ref()?.operation {
        at = code.maker(*from)?;
    }
    Some(at)
}

/// Collects the cheap kernels ([`Properties::is_cheap`]) that read no register except the results of other such
/// kernels and views of them: their elements depend only on their indices and on symbols (iota, causal mask).
fn of_places(code: &Block, program: &Program) -> FxHashSet<usize> {
    let mut found = FxHashSet::default();
    for at in 0..code.len() {
        let Some(Operation::Kernel { kernel, inputs, scalars, .. }) = code[at].as_ref().map(|one| &one.operation)
        else {
            continue;
        };
        let known = |input: &Register| maker(code, *input).is_some_and(|maker| found.contains(&maker));
        let plain = scalars.iter().all(|scalar| !matches!(scalar, Scalar::Register(_)));
        if plain && program.kernel(*kernel).loops.properties().is_cheap && inputs.iter().all(known) {
            found.insert(at);
        }
    }
    found
}

/// Whether a top-level nest of a function is a sum of products of elements of different buffers, for example a matmul
/// or a convolution.
pub(super) fn is_product(func: &PrimFunc) -> bool {
    fn any(stmt: &Stmt, func: &PrimFunc) -> bool {
        match stmt {
            Stmt::Seq(statements) => statements.iter().any(|one| any(one, func)),
            Stmt::Block(block) if block.iters.is_empty() => any(&block.body, func),
            nest => Nest::of(nest, func)
                .and_then(|nest| nest.reduction())
                .is_some_and(|reduction| reduction.combine == BinaryOp::Add && is_of_two(&reduction.value)),
        }
    }
    any(&func.body, func)
}

/// Whether a value is, apart from casts, a product of two factors that both load from buffers, but from none in common.
fn is_of_two(value: &Expr) -> bool {
    let buffers = |expr: &Expr| {
        let mut buffers: FxHashSet<BufferId> = FxHashSet::default();
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, .. } = part {
                buffers.insert(*buffer);
            }
        });
        buffers
    };
    match value {
        Expr::Cast { value, .. } => is_of_two(value),
        Expr::Binary { op: BinaryOp::Mul, left, right } => {
            let (left, right) = (buffers(left), buffers(right));
            !left.is_empty() && !right.is_empty() && left.is_disjoint(&right)
        }
        _ => false,
    }
}

/// Returns the properties of the kernel at `at`, or `None` if there is no kernel.
fn function<'p>(code: &Block, at: usize, program: &'p Program) -> Option<&'p Properties> {
    match &code[at].as_ref()?.operation {
        Operation::Kernel { kernel, .. } => Some(program.kernel(*kernel).loops.properties()),
        _ => None,
    }
}

/// Returns the kernels that read the outputs of the kernel at `at`, directly or through views. Returns `None` if
/// another kind of instruction, or an instruction outside the block, reads them, or if the procedure returns them.
fn all_readers(code: &Block, at: usize, reads: &[u32]) -> Option<Vec<usize>> {
    let Operation::Kernel { outputs, .. } = &code[at].as_ref()?.operation else { return None };
    let mut found = Vec::new();
    let mut left: Vec<Register> = outputs.iter().map(|output| output.to).collect();
    while let Some(register) = left.pop() {
        let mut count = 0;
        for reader in code.readers(at, register) {
            let operation = &code[reader].as_ref()?.operation;
            operation.for_each_read(&mut |read| count += u32::from(read == register));
            match operation {
                Operation::Kernel { .. } if !found.contains(&reader) => found.push(reader),
                Operation::Kernel { .. } => {}
                Operation::View { to, .. } => left.push(*to),
                _ => return None,
            }
        }
        if count != reads[register.0 as usize] {
            return None;
        }
    }
    Some(found)
}

/// Merges the kernels at the positions `members`, in ascending order, into one instruction, to be put at the last of
/// them. Returns `None`, for example, where two of them cannot be merged, or the device does not schedule the result as
/// one kernel.
fn together(
    code: &Block,
    members: &[usize],
    program: &mut Program,
    (context, asked): (&Context<'_>, &mut Asked),
) -> Option<Instruction> {
    let (last, before) = members.split_last()?;
    let mut all = code[*last].clone()?;
    for at in before.iter().rev() {
        let producer = code[*at].as_ref()?;
        while let Some(view) = view_of(code, *at, &all) {
            let view = as_kernel(view, producer, program, context)?;
            all = merge::merge(&view, &all, program, context)?;
        }
        all = merge::merge(producer, &all, program, context)?;
    }
    let Operation::Kernel { kernel, .. } = &mut all.operation else { return None };
    let apart = program.kernel(*kernel).clone();
    let one = one(asked, &apart.loops, context)?;
    *kernel = program.add_kernel(Kernel { whole: true, ..apart.with(one) });
    Some(all)
}

/// Returns a view instruction that `consumer` reads and that views an output of the kernel at `producer`.
fn view_of<'c>(code: &'c Block, producer: usize, consumer: &Instruction) -> Option<&'c Instruction> {
    let Operation::Kernel { outputs, .. } = &code[producer].as_ref()?.operation else { return None };
    let Operation::Kernel { inputs, .. } = &consumer.operation else { return None };
    let mut views: Vec<usize> = outputs.iter().flat_map(|output| code.readers(producer, output.to)).collect();
    views.sort_unstable();
    views.into_iter().filter_map(|at| code[at].as_ref()).find(|one| match &one.operation {
        Operation::View { to, .. } => inputs.contains(to),
        _ => false,
    })
}

/// Returns a view of an output of `producer` as a kernel that copies elements. Its loops are a common refinement of
/// both shapes.
fn as_kernel(
    view: &Instruction,
    producer: &Instruction,
    program: &mut Program,
    context: &Context<'_>,
) -> Option<Instruction> {
    let Operation::View { to, from, shape } = &view.operation else { return None };
    let Operation::Kernel { outputs, .. } = &producer.operation else { return None };
    let made = outputs.iter().find(|output| output.to == *from)?;
    let rewrite = Rewrite::View { from: made.shape.clone(), to: shape.clone(), dtype: made.dtype };
    let kernel = context.queries.rewrite(&rewrite)?;
    let scalars = kernel.scalars.clone();
    let kernel = program.add_kernel(Kernel::new(kernel.loops.clone(), 1, None));
    let output = Output { to: *to, shape: shape.clone(), dtype: made.dtype, storage: None };
    let operation = Operation::Kernel { kernel, inputs: smallvec![*from], outputs: smallvec![output], scalars };
    Some(Instruction { origin: view.origin, operation })
}

/// Builds a kernel that copies a tensor of shape `from` into one of shape `to`, in row-major order. Its loops are the
/// common factors of both shapes, so no index needs a division. For example, `[6, 4]` viewed as `[2, 12]` has the loops
/// `a < 2, b < 3, c < 4`: the kernel stores `out[a, b * 4 + c] = x[a * 3 + b, c]`. Also returns the arguments of its
/// scalar parameters. Returns `None`, for example, where [`common_splits`] finds no such factors.
pub(super) fn view_kernel(from: &[Dim], to: &[Dim], dtype: DType) -> Option<(PrimFunc, Vec<Scalar>)> {
    let mut builder = KernelBuilder::new(name(""));
    let [x, out] = ["x", "out"].map(|text| builder.param(text, to, dtype));
    builder.compute(out, |builder, at| builder.load(x, at));
    let scalars = builder.scalar_values().into_iter().map(Scalar::Int).collect();
    let splits = common_splits(from, to)?;
    let func = reshaped(&builder.finish(), x, (&splits, to), true)?;
    Some((reshaped(&func, x, (from, &splits), true)?, scalars))
}

/// Returns the coarsest shape of which both shapes are regroupings, without extents of 1: `[6, 4]` and `[2, 12]` give
/// `[2, 3, 4]`. Returns `None` where no such shape is found.
fn common_splits(a: &[Dim], b: &[Dim]) -> Option<Vec<Dim>> {
    let moves = |dim: &&Dim| dim.as_constant() != Some(1);
    let (mut a, mut b) = (a.iter().filter(moves).cloned(), b.iter().filter(moves).cloned());
    let quotient = |all: &Dim, part: &Dim| {
        let quotient = all.floor_div(part);
        (!quotient.is_error() && &quotient * part == *all).then_some(quotient)
    };
    let (mut splits, mut of_a, mut of_b) = (Vec::new(), a.next(), b.next());
    while let (Some(left), Some(right)) = (&of_a, &of_b) {
        if left == right {
            splits.push(left.clone());
            (of_a, of_b) = (a.next(), b.next());
        } else if let Some(rest) = quotient(left, right) {
            splits.push(right.clone());
            (of_a, of_b) = (Some(rest), b.next());
        } else {
            let rest = quotient(right, left)?;
            splits.push(left.clone());
            (of_a, of_b) = (a.next(), Some(rest));
        }
    }
    (of_a.is_none() && of_b.is_none()).then_some(splits)
}

/// Puts the fused instruction at position `last`, and removes the earlier kernels and views that nothing reads any
/// more.
fn replace(code: &mut Block, last: usize, instruction: Instruction, reads: &mut [u32]) {
    instruction.operation.for_each_read(&mut |register| reads[register.0 as usize] += 1);
    if let Some(old) = code.put(last, instruction) {
        forget(&old, reads);
    }
    for before in code[..last].iter_mut().rev() {
        let is_unread = match before.as_ref().map(|one| &one.operation) {
            Some(Operation::Kernel { outputs, .. }) => outputs.iter().all(|output| reads[output.to.0 as usize] == 0),
            Some(Operation::View { to, .. }) => reads[to.0 as usize] == 0,
            _ => false,
        };
        if is_unread && let Some(gone) = before.take() {
            forget(&gone, reads);
        }
    }
}
