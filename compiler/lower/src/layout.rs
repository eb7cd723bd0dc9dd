//! Layout assignment: stores the data of convolutions channels last in memory (NHWC), where the device reads that
//! faster.
//!
//! ```text
//! y: [1, 64, 56, 56] = kernel relu(x)                y: [1, 56, 56, 64] = kernel relu'(x)
//! z: [1, 64, 56, 56] = kernel conv2d(y, w)     →     z: [1, 56, 56, 64] = kernel conv2d'(y, w')
//! return kernel mean(z)                              return kernel mean'(z)
//! ```
//!
//! Requires a device that reads several channels of a pixel in one access ([`TargetInfo::channel_vector_width`]). Only
//! weights, tensors that only kernels write and read, and temporaries of kernels may change; the kernels that use them
//! are rewritten (`rewrite`). The other axes keep their order.
//!
//! Guarantees that no value that enters or leaves a procedure changes its layout, and that no kernel is added that only
//! transposes an intermediate tensor.
//!
//! The steps:
//!
//! - `reading` analyzes the loops of each kernel. In a sum of products, the roles of the loops (M, N, K) give the
//!   channel axes of data, weight and result. In other nests, axes of two tensors correspond if the same loop indexes
//!   both.
//! - `registers` finds the tensors of a procedure whose layout may change. `groups` finds sets of tensors that change
//!   together: it propagates from a convolution's data and result through elementwise kernels, windows and reductions.
//! - `cost` decides whether a group changes: the bytes that are loaded uncoalesced must decrease.
//! - `weights` transposes the weights, by procedures whose results are memoized.
//!
//! Reference: XLA's `layout_assignment.cc`, which also propagates the constraints of some instructions to the others.
//! TVM's counterpart is `src/relax/transform/convert_layout.cc`.

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
use rx_loops::TargetInfo;
use rx_tir::PrimFunc;
use rx_tir::permute::reordered;

/// A layout as a permutation: for each axis in memory, outermost first, the axis of the tensor. For example,
/// `[0, 2, 3, 1]` is NHWC for an NCHW tensor.
type Order = Vec<usize>;

/// Assigns channels-last layouts in all procedures where they reduce the cost. Does nothing if the device prefers none.
pub(crate) fn assign(program: &mut Program, target_info: &dyn TargetInfo) {
    let together = |dtype: DType| target_info.channel_vector_width(dtype).filter(|count| *count > 1);
    let wants = |func: &PrimFunc| func.buffers.iter().any(|buffer| together(buffer.dtype).is_some());
    if !program.kernels.iter().any(|kernel| wants(&kernel.loops)) {
        return;
    }
    let readings: Vec<Option<Reading>> =
        program.kernels.iter().map(|kernel| Reading::of(&kernel.loops, &together)).collect();
    // The kernels that rewriting adds have no readings, and need none: a procedure is analyzed at most once, before it
    // is rewritten.
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

/// Returns the layouts of a kernel call's buffers if the tensors of `groups` are stored channels last. `number` is the
/// call's position in [`Registers::uses`].
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

/// Whether the channels-last layout of a group reduces the bytes that are loaded uncoalesced.
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

/// Rewrites the kernels and weights of the procedure at index `at` for the chosen groups.
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

/// Rewrites the kernel calls: each gets the next of `kernels`, which are in the order of [`Registers::uses`]. An input
/// that has a transposed copy (`copies`) is replaced by it, and the shape of an output with a new layout (`orders`) is
/// permuted.
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
