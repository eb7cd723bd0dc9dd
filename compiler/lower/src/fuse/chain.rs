//! Kernels of which the device makes one: a product, what is computed of it, and the product with that (the scores, the softmax and
//! the weighted sum of attention), so that what is between them never reaches memory.
//!
//! A chain is found by who reads whom, whatever the kernels are called: it begins at a sum of products; all that reads what it computes,
//! and what that computes, is in it, be it through views; and it ends at another sum of products. Some reduction must be between. What
//! else is worth having in it: kernels behind the end that are all that reads it, element by element; and in front of it those that make
//! each element of one (moves, scales, casts), and masks that are made of nothing but places. All are put together, loops by the same axes
//! (`digits`), and the device says whether it makes one kernel of that. If not, the program stays as it is.

use super::digits::by_digits;
use super::reshape::reshaped;
use super::{forget, is_injective, merge, readers};
use crate::program::{Instruction, Kernel, Operation, Output, Program, Register, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::Dim;
use rx_base::name::name;
use rx_schedule::Nest;
use rx_schedule::Preferences;
use rx_tir::func::{BufferId, PrimFunc};
use rx_tir::{BinaryOp, Expr, KernelBuilder, Stmt};
use std::sync::Arc;

/// The most kernels from one product to the other.
const MAX_BETWEEN: usize = 16;

/// The most kernels of a chain.
const MAX_KERNELS: usize = 40;

/// The most kernels behind the second product.
const MAX_BEHIND: usize = 3;

/// Joins the chains of a block that the device makes one kernel of. Nothing more is joined to such a kernel.
pub(super) fn join(
    code: &mut [Option<Instruction>],
    reads: &mut [u32],
    program: &mut Program,
    (preferences, asked): (&dyn Preferences, &mut Asked),
) {
    for at in 0..code.len() {
        let Some(chain) = Chain::of(code, at, reads, program) else { continue };
        for wanted in chain.variants() {
            let Some(instruction) = together(code, &wanted, program, (preferences, asked)) else { continue };
            let Some(last) = wanted.last() else { continue };
            replace(code, *last, instruction, reads);
            break;
        }
    }
}

/// What was made of functions, and none of those that the device makes no one kernel of: networks repeat their layers.
#[derive(Default)]
pub(super) struct Asked(Vec<(Arc<PrimFunc>, Option<PrimFunc>)>);

impl Asked {
    /// A function of several kernels as one, if the device makes one kernel of it.
    fn one(&mut self, func: &Arc<PrimFunc>, preferences: &dyn Preferences) -> Option<PrimFunc> {
        if let Some((_, answer)) = self.0.iter().find(|(known, _)| known.does_the_same(func)) {
            return answer.clone();
        }
        let one = rx_schedule::simplify(&rx_schedule::inline_all(&by_digits(&rx_schedule::simplify(func))));
        let answer = preferences.makes_one(&one).then_some(one);
        self.0.push((Arc::clone(func), answer.clone()));
        answer
    }
}

/// Kernels by their places in the code, in order.
struct Chain {
    /// From one product to the other.
    between: Vec<usize>,
    /// What may be done in front of them as part of the chain, and behind.
    front: Vec<usize>,
    behind: Vec<usize>,
}

impl Chain {
    /// The chain that begins at a place.
    fn of(code: &[Option<Instruction>], at: usize, reads: &[u32], program: &Program) -> Option<Chain> {
        is_product(function(code, at, program)?).then_some(())?;
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
                if is_product(function(code, reader, program)?) && end.replace(reader).is_some()
                    || between.len() > MAX_BETWEEN
                {
                    return None;
                }
            }
        }
        between.sort_unstable();
        let is_reduction = |at: &usize| function(code, *at, program).is_some_and(|func| !is_injective(func));
        let [_, inner @ .., last] = &between[..] else { return None };
        if end != Some(*last) || !inner.iter().any(is_reduction) {
            return None;
        }
        let behind = behind(code, *last, reads, program);
        let front = front(code, &between, reads, program);
        Some(Chain { between, front, behind })
    }

    /// What may be made one kernel, the most first.
    fn variants(&self) -> Vec<Vec<usize>> {
        let mut variants = Vec::new();
        for count in (0..=self.behind.len()).rev() {
            for front in [&self.front[..], &[]] {
                let parts = front.iter().chain(&self.between).chain(&self.behind[..count]);
                let mut members: Vec<usize> = parts.copied().collect();
                members.sort_unstable();
                if !variants.contains(&members) {
                    variants.push(members);
                }
            }
        }
        variants
    }
}

/// The kernels behind `last` that are all that reads what it and they compute, and make each element of one of it.
fn behind(code: &[Option<Instruction>], last: usize, reads: &[u32], program: &Program) -> Vec<usize> {
    let (mut found, mut at) = (Vec::new(), last);
    while found.len() < MAX_BEHIND
        && let Some([reader]) = all_readers(code, at, reads).as_deref()
        && function(code, *reader, program).is_some_and(is_light)
    {
        at = *reader;
        found.push(at);
    }
    found
}

/// The kernels in front of a chain that it may do itself: nothing else reads what they compute, and they make each element of one;
/// or they compute it of places alone.
fn front(code: &[Option<Instruction>], between: &[usize], reads: &[u32], program: &Program) -> Vec<usize> {
    let made = makers(code);
    let of_places = of_places(code, &made, program);
    let (mut members, mut front, mut next) = (between.to_vec(), Vec::new(), 0);
    while let Some(member) = members.get(next).copied() {
        next += 1;
        let Some(Operation::Kernel { inputs, .. }) = code[member].as_ref().map(|one| &one.operation) else { continue };
        for input in inputs {
            let Some(maker) = maker(code, &made, *input) else { continue };
            if members.contains(&maker) || members.len() >= MAX_KERNELS {
                continue;
            }
            let is_own =
                || all_readers(code, maker, reads).is_some_and(|all| all.iter().all(|at| members.contains(at)));
            let is_light = || function(code, maker, program).is_some_and(is_light);
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

/// Which instruction makes a register.
fn makers(code: &[Option<Instruction>]) -> FxHashMap<Register, usize> {
    let mut made = FxHashMap::default();
    for (at, instruction) in code.iter().enumerate() {
        match instruction.as_ref().map(|one| &one.operation) {
            Some(Operation::Kernel { outputs, .. }) => made.extend(outputs.iter().map(|output| (output.to, at))),
            Some(Operation::View { to, .. }) => _ = made.insert(*to, at),
            _ => {}
        }
    }
    made
}

/// The kernel that makes a register, or what it is a view of.
fn maker(code: &[Option<Instruction>], made: &FxHashMap<Register, usize>, register: Register) -> Option<usize> {
    let mut at = *made.get(&register)?;
    while let Operation::View { from, .. } = &code[at].as_ref()?.operation {
        at = *made.get(from)?;
    }
    Some(at)
}

/// The kernels that read no tensor but those of each other: what they compute is known from its place.
fn of_places(code: &[Option<Instruction>], made: &FxHashMap<Register, usize>, program: &Program) -> FxHashSet<usize> {
    let mut found = FxHashSet::default();
    for at in 0..code.len() {
        let Some(Operation::Kernel { kernel, inputs, scalars, .. }) = code[at].as_ref().map(|one| &one.operation)
        else {
            continue;
        };
        let func = &program.kernel(*kernel).func;
        let known = inputs.iter().all(|input| maker(code, made, *input).is_some_and(|maker| found.contains(&maker)));
        let plain = scalars.iter().all(|scalar| !matches!(scalar, Scalar::Register(_)));
        if known && plain && is_injective(func) && !values_of(func).iter().any(is_costly) {
            found.insert(at);
        }
    }
    found
}

/// Whether a kernel makes each element of at most one, by arithmetic that may as well be done at every reader.
fn is_light(func: &PrimFunc) -> bool {
    let loads = |value: &Expr| {
        let mut loads = 0;
        value.walk(&mut |part| loads += usize::from(matches!(part, Expr::Load { .. })));
        loads
    };
    is_injective(func) && values_of(func).iter().all(|value| loads(value) <= 1 && !is_costly(value))
}

fn is_costly(value: &Expr) -> bool {
    let mut costly = false;
    value.walk(&mut |part| costly |= matches!(part, Expr::Call { .. }));
    costly
}

/// What a function stores.
fn values_of(func: &PrimFunc) -> Vec<Expr> {
    let mut values = Vec::new();
    func.body.walk(&mut |stmt| {
        if let Stmt::Store { value, .. } = stmt {
            values.push(value.clone());
        }
    });
    values
}

/// Whether a function adds up products of elements of different tensors.
fn is_product(func: &PrimFunc) -> bool {
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

fn function<'p>(code: &[Option<Instruction>], at: usize, program: &'p Program) -> Option<&'p PrimFunc> {
    match &code[at].as_ref()?.operation {
        Operation::Kernel { kernel, .. } => Some(&program.kernel(*kernel).func),
        _ => None,
    }
}

/// The kernels that read what the one at `at` computes, be it through views; `None` where something else does.
fn all_readers(code: &[Option<Instruction>], at: usize, reads: &[u32]) -> Option<Vec<usize>> {
    let Operation::Kernel { outputs, .. } = &code[at].as_ref()?.operation else { return None };
    let mut found = Vec::new();
    let mut left: Vec<Register> = outputs.iter().map(|output| output.to).collect();
    while let Some(register) = left.pop() {
        let mut count = 0;
        for reader in readers(code, at, register) {
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
    code: &[Option<Instruction>],
    members: &[usize],
    program: &mut Program,
    (preferences, asked): (&dyn Preferences, &mut Asked),
) -> Option<Instruction> {
    let (last, before) = members.split_last()?;
    let mut all = code[*last].clone()?;
    for at in before.iter().rev() {
        let producer = code[*at].as_ref()?;
        while let Some(view) = view_of(code, producer, &all) {
            let view = as_kernel(view, producer, program)?;
            all = merge::merge(&view, &all, program)?;
        }
        all = merge::merge(producer, &all, program)?;
    }
    let Operation::Kernel { kernel, .. } = &mut all.operation else { return None };
    let Kernel { func, inputs, .. } = program.kernel(*kernel).clone();
    let mut func = asked.one(&func, preferences)?;
    func.origins = program.kernel(*kernel).func.origins.clone();
    *kernel = program.add_kernel(Kernel { whole: true, ..Kernel::new(func, inputs) });
    Some(all)
}

/// A view of what `producer` computes that `consumer` reads.
fn view_of<'c>(
    code: &'c [Option<Instruction>],
    producer: &Instruction,
    consumer: &Instruction,
) -> Option<&'c Instruction> {
    let Operation::Kernel { outputs, .. } = &producer.operation else { return None };
    let Operation::Kernel { inputs, .. } = &consumer.operation else { return None };
    code.iter().flatten().find(|one| match &one.operation {
        Operation::View { to, from, .. } => inputs.contains(to) && outputs.iter().any(|output| output.to == *from),
        _ => false,
    })
}

/// A view of what `producer` computes as a kernel that moves elements, along the loops of both shapes.
fn as_kernel(view: &Instruction, producer: &Instruction, program: &mut Program) -> Option<Instruction> {
    let Operation::View { to, from, shape } = &view.operation else { return None };
    let Operation::Kernel { outputs, .. } = &producer.operation else { return None };
    let made = outputs.iter().find(|output| output.to == *from)?;
    let mut builder = KernelBuilder::new(name(""));
    let [x, out] = ["x", "out"].map(|text| builder.param(text, shape, made.dtype));
    builder.compute(out, |builder, at| builder.load(x, at));
    let scalars = builder.scalar_values().into_iter().map(Scalar::Int).collect();
    // By the digits of both shapes: the loops are cut into them, and the tensor's indices composed of them.
    let digits = digits_of(&made.shape, shape)?;
    let func = reshaped(&builder.finish(), x, (&digits, shape), true)?;
    let func = reshaped(&func, x, (&made.shape, &digits), true)?;
    let kernel = program.add_kernel(Kernel::new(func, 1));
    let output = Output { to: *to, shape: shape.clone(), dtype: made.dtype, storage: None };
    let operation = Operation::Kernel { kernel, inputs: vec![*from], outputs: vec![output], scalars };
    Some(Instruction { origin: view.origin, operation })
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
fn replace(code: &mut [Option<Instruction>], last: usize, instruction: Instruction, reads: &mut [u32]) {
    instruction.operation.for_each_read(&mut |register| reads[register.0 as usize] += 1);
    if let Some(old) = code[last].replace(instruction) {
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
