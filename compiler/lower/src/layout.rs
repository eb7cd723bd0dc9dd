//! Channels last: tensors that only kernels see lie in memory as convolutions read them fast.
//!
//! Where a device reads several channels of a pixel at once ([`Preferences::channels_together`]), a convolution whose data has its
//! channels last is faster than one that gathers what it reads. So tensors that a kernel makes and only kernels read may lie in
//! another order of their axes than they are written in: their channels last, the other axes as they are. Kernels that write or
//! read them follow (`rewrite`); no kernel is added that only turns a tensor. What enters and what is returned lies as it is written.
//!
//! - What a kernel's loops tell of axes (`reading`): of a sum of products by the roles of its loops which axis of its data, its
//!   weight and its result is the channel; of other loops which axes of two tensors are one, because one loop walks both.
//! - Which tensors of a procedure may lie otherwise (`registers`), and groups of those that go together (`groups`): from a
//!   convolution's data along kernels that compute element by element, over windows, or along sums.
//! - Whether a group is worth it (`cost`): bytes that are read apart before must be more than after.
//! - Weights (`weights`) are put in order once by a procedure that keeps its result.
//!
//! Layout assignment of this kind is XLA's (`layout_assignment.cc`): constraints of some instructions, spread to the others.

mod cost;
mod groups;
mod reading;
mod registers;
mod rewrite;
mod weights;

use crate::program::{Instruction, KernelId, Operation, Procedure, Program, Register};
use groups::{Group, Node};
use reading::Reading;
use registers::{Registers, Use};
use rewrite::{Orders, Rewriter};
use rustc_hash::FxHashMap;
use rx_base::DType;
use rx_schedule::Preferences;
use rx_tir::PrimFunc;
use rx_tir::permute::reordered;

/// Which axis of a tensor each axis in memory is, outermost first.
type Order = Vec<usize>;

/// Puts channels last where the device is faster then.
pub(crate) fn assign(program: &mut Program, preferences: &dyn Preferences) {
    let together = |dtype: DType| preferences.channels_together(dtype).filter(|count| *count > 1);
    let wants = |func: &PrimFunc| func.buffers.iter().any(|buffer| together(buffer.dtype).is_some());
    if !program.kernels.iter().any(|kernel| wants(&kernel.loops)) {
        return;
    }
    let readings: Vec<Option<Reading>> =
        program.kernels.iter().map(|kernel| Reading::of(&kernel.loops, &together)).collect();
    // Kernels that are added have no readings; no procedure is looked at twice.
    for at in 0..program.procedures.len() {
        let registers = Registers::of(&program.procedures[at], program, &readings, at == 0);
        let groups = groups::of(&registers, program, &readings);
        if groups.is_empty() {
            continue;
        }
        let mut rewriter = Rewriter::default();
        let chosen: Vec<Group> =
            groups.into_iter().filter(|group| is_worth(group, &registers, program, &mut rewriter, &together)).collect();
        apply(at, &chosen, &registers, program, &mut rewriter);
    }
    crate::fuse::drop_unused(program);
}

/// The orders of a kernel's buffers where the groups' tensors have their channels last.
fn orders_of(groups: &[&Group], number: usize, one: &Use) -> Orders {
    let mut orders = Orders::default();
    for group in groups {
        for (node, order) in &group.nodes {
            let buffers: Vec<_> = match node {
                Node::Local(of, buffer) if *of == number => vec![*buffer],
                Node::Local(..) => Vec::new(),
                Node::Register(register) => one.buffers_of(*register).collect(),
            };
            orders.extend(buffers.into_iter().map(|buffer| (buffer, order.clone())));
        }
    }
    orders
}

/// Whether less is read apart where a group's tensors have their channels last.
fn is_worth(
    group: &Group,
    registers: &Registers,
    program: &Program,
    rewriter: &mut Rewriter,
    together: &dyn Fn(DType) -> Option<i64>,
) -> bool {
    let mut gain = 0.0;
    for (number, one) in registers.uses.iter().enumerate() {
        let func = &program.kernel(one.kernel).loops;
        let orders = orders_of(&[group], number, one);
        if !orders.is_empty() {
            let after = rewriter.func(one.kernel, func, &orders);
            gain += cost::apart(func, together) - cost::apart(&after, together);
        }
    }
    gain > 0.0
}

/// Rewrites a procedure's kernels for the groups that were chosen.
fn apply(at: usize, groups: &[Group], registers: &Registers, program: &mut Program, rewriter: &mut Rewriter) {
    if groups.is_empty() {
        return;
    }
    let groups: Vec<&Group> = groups.iter().collect();
    let mut orders_of_registers: FxHashMap<Register, Order> = FxHashMap::default();
    let mut kernels: Vec<KernelId> = Vec::new();
    for (number, one) in registers.uses.iter().enumerate() {
        let orders = orders_of(&groups, number, one);
        for (register, buffer) in &one.buffers {
            if let Some(order) = orders.get(buffer) {
                orders_of_registers.insert(*register, order.clone());
            }
        }
        kernels.push(match orders.is_empty() {
            true => one.kernel,
            false => rewriter.kernel(one.kernel, &orders, program),
        });
    }
    let mut procedure = std::mem::replace(&mut program.procedures[at], Procedure::empty());
    let copies = weights::copies(&mut procedure, registers, &orders_of_registers, program);
    let mut next = kernels.into_iter();
    rewrite_code(&mut procedure.code, &mut next, &orders_of_registers, &copies);
    program.procedures[at] = procedure;
}

/// Gives kernel instructions, in the order of [`Registers::uses`], their kernels, and their outputs the shapes they have then.
fn rewrite_code(
    code: &mut [Instruction],
    kernels: &mut dyn Iterator<Item = KernelId>,
    orders: &FxHashMap<Register, Order>,
    copies: &FxHashMap<Register, Register>,
) {
    for instruction in code {
        match &mut instruction.operation {
            Operation::Kernel { kernel, inputs, outputs, .. } => {
                *kernel = kernels.next().unwrap_or(*kernel);
                for input in inputs {
                    *input = copies.get(input).copied().unwrap_or(*input);
                }
                for output in outputs {
                    if let Some(order) = orders.get(&output.to) {
                        output.shape = reordered(&output.shape, order).into();
                    }
                }
            }
            Operation::If { arms, otherwise, .. } => {
                for (condition, _, branch) in arms {
                    rewrite_code(condition, kernels, orders, copies);
                    rewrite_code(&mut branch.code, kernels, orders, copies);
                }
                rewrite_code(&mut otherwise.code, kernels, orders, copies);
            }
            _ => {}
        }
    }
}
