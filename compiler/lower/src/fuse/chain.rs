//! Kernels of which the device makes one: a product, what is computed of it, and the product with that (the scores, the softmax and
//! the weighted sum of attention), so that what is between them never reaches memory.
//!
//! A chain is found by who reads whom, whatever the kernels are called: it begins at a sum of products; all that reads what it computes,
//! and what that computes, is in it, be it through views; and it ends at another sum of products. Some reduction must be between. What
//! else is worth having in it: kernels after the end that are all that reads it, element by element; and in front of it those that make
//! each element of one (moves, scales, casts), and masks that are made of nothing but places. All are put together, loops by the same axes
//! (`digits`), and the device says whether it makes one kernel of that. If not, the program stays as it is.

use super::block::Block;
use super::digits::by_digits;
use super::reshape::reshaped;
use super::{Context, Properties, Rewrite, forget, merge};
use crate::loops::Loops;
use crate::program::{Instruction, Kernel, Operation, Output, Program, Register, Scalar};
use crate::queries::rewritten;
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_schedule::Nest;
use rx_tir::func::{BufferId, PrimFunc};
use rx_tir::{BinaryOp, Expr, KernelBuilder, Stmt};
use smallvec::smallvec;

/// The most kernels from one product to the other.
const MAX_BETWEEN: usize = 16;

/// The most kernels of a chain.
const MAX_KERNELS: usize = 40;

/// The most kernels after the second product.
const MAX_AFTER: usize = 3;

/// Joins the chains of a block that the device makes one kernel of. Nothing more is joined to such a kernel.
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

/// What was made of functions, and none of those that the device makes no one kernel of: networks repeat their layers.
pub(super) type Asked = FxHashMap<Loops, Option<Loops>>;

/// A function of several kernels as one nest of loops, if the device makes one kernel of it.
fn one(asked: &mut Asked, loops: &Loops, context: &Context<'_>) -> Option<Loops> {
    let answer = asked.entry(loops.clone()).or_insert_with(|| {
        let one = rewritten(context.queries, &Rewrite::Unite { loops: loops.clone() })?;
        context.queries.makes_one(&one, context.preferences).then_some(one)
    });
    answer.clone()
}

/// The loops of a function of several kernels by the same axes, and temporaries computed where they are read.
pub(super) fn united(func: &PrimFunc) -> PrimFunc {
    rx_schedule::simplify(&rx_schedule::inline_all(&by_digits(&rx_schedule::simplify(func))))
}

/// Kernels by their places in the code, in order.
struct Chain {
    /// From one product to the other.
    between: Vec<usize>,
    /// What may be done in front of them as part of the chain, and after.
    front: Vec<usize>,
    after: Vec<usize>,
}

impl Chain {
    /// The chain that begins at a place.
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

    /// Two sets of kernels to fuse: from one product to the other with the first `after` kernels that follow, with those in front and
    /// without them.
    fn with(&self, after: usize) -> impl Iterator<Item = Vec<usize>> {
        let fronts = if self.front.is_empty() { vec![&[][..]] } else { vec![&self.front[..], &[]] };
        fronts.into_iter().map(move |front| {
            let mut members = [front, &self.between, &self.after[..after]].concat();
            members.sort_unstable();
            members
        })
    }
}

/// The kernels after `last` that are all that reads what it and they compute, and make each element of one of it.
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

/// The kernels in front of a chain that it may do itself: nothing else reads what they compute, and they make each element of one;
/// or they compute it of places alone.
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
                // What two members read may be the chain's own only now.
                next = 0;
            }
        }
    }
    front
}

/// The kernel that makes a register, or what it is a view of.
fn maker(code: &Block, register: Register) -> Option<usize> {
    let mut at = code.maker(register)?;
    while let Operation::View { from, .. } = &code[at].as_ref()?.operation {
        at = code.maker(*from)?;
    }
    Some(at)
}

/// The kernels that read no tensor but those of each other: what they compute is known from its place.
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

/// Whether a function adds up products of elements of different tensors.
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

/// Whether a value is a product of elements of different buffers.
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

fn function<'p>(code: &Block, at: usize, program: &'p Program) -> Option<&'p Properties> {
    match &code[at].as_ref()?.operation {
        Operation::Kernel { kernel, .. } => Some(program.kernel(*kernel).loops.properties()),
        _ => None,
    }
}

/// The kernels that read what the one at `at` computes, be it through views; `None` where something else does.
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

/// The instruction that does what those at some places do, the last in whose place it stands; `None` where the device does not
/// make one kernel of it.
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

/// A view of what the kernel at a place computes that `consumer` reads.
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

/// A view of what `producer` computes as a kernel that moves elements, along the loops of both shapes.
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

/// A kernel that moves the elements of a tensor of the extents `from` to one of the extents `to`, in order, and what is passed for
/// its scalars. Its loops are cut into the digits of both shapes, and the tensor's indices composed of them.
pub(super) fn view_kernel(from: &[Dim], to: &[Dim], dtype: DType) -> Option<(PrimFunc, Vec<Scalar>)> {
    let mut builder = KernelBuilder::new(name(""));
    let [x, out] = ["x", "out"].map(|text| builder.param(text, to, dtype));
    builder.compute(out, |builder, at| builder.load(x, at));
    let scalars = builder.scalar_values().into_iter().map(Scalar::Int).collect();
    let digits = digits_of(from, to)?;
    let func = reshaped(&builder.finish(), x, (&digits, to), true)?;
    Some((reshaped(&func, x, (from, &digits), true)?, scalars))
}

/// The extents of which those of two shapes are products, both in order; `None` where they have none in common.
fn digits_of(a: &[Dim], b: &[Dim]) -> Option<Vec<Dim>> {
    let moves = |dim: &&Dim| dim.as_constant() != Some(1);
    let (mut a, mut b) = (a.iter().filter(moves).cloned(), b.iter().filter(moves).cloned());
    let quotient = |all: &Dim, part: &Dim| {
        let quotient = all.floor_div(part);
        (!quotient.is_error() && &quotient * part == *all).then_some(quotient)
    };
    let (mut digits, mut of_a, mut of_b) = (Vec::new(), a.next(), b.next());
    while let (Some(left), Some(right)) = (&of_a, &of_b) {
        if left == right {
            digits.push(left.clone());
            (of_a, of_b) = (a.next(), b.next());
        } else if let Some(rest) = quotient(left, right) {
            digits.push(right.clone());
            (of_a, of_b) = (Some(rest), b.next());
        } else {
            let rest = quotient(right, left)?;
            digits.push(left.clone());
            (of_a, of_b) = (a.next(), Some(rest));
        }
    }
    (of_a.is_none() && of_b.is_none()).then_some(digits)
}

/// Puts the instruction in the place of the chain's last; what nobody reads any more is gone.
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
