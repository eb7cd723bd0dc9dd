//! Lowers Relax functions to a program of kernels.
//!
//! A [`Program`] is the form that every device runs. It consists of procedures, whose instructions work on registers,
//! and kernels, which are functions in the loop-level IR (TensorIR). [`lower()`] builds a program from an entry
//! function and all functions reachable from it, with one kernel per call of an operator that is computed by loops. The
//! [`steps`] of the pass pipeline then optimize it: kernel fusion (`fuse`), channels-last layouts (`layout`) and the
//! static memory plan (`plan`). The crate depends on no device: a device states which rewrites are profitable through
//! [`TargetInfo`].
//!
//! For example:
//!
//! ```text
//! def main(x: R.Tensor((n, 4), "float32")):
//!     y = R.add(x, x)                              r1 = kernel add(r0, r0)
//!     z = R.nn.relu(y)          lower:             r2 = kernel relu(r1)
//!     return z                                     return r2
//!
//!                               fuse_producers:    r2 = kernel fused_add_relu(r0); return r2
//! ```
//!
//! - Memory that the module allocates explicitly is not allocated here. A prim_func that writes into a tensor defines a
//!   new register (`lower::memory`), shape heaps become dims, and packed functions become instructions
//!   (`lower::packed`).
//! - A call that would become a kernel or a view, and whose operand or result types are not fully known
//!   (`R.Tensor(ndim=2)`, `R.Any`), keeps its operator (`Operation::Dynamic`). At run time the types of its tensors and
//!   the values of its other operands determine a separate program, which is cached ([`dynamic`]).
//! - The functions of kernels are shared and compared by content ([`Loops`]). Most operations that create or change a
//!   function depend only on a key and are requested through [`Queries`], so that a database can cache the answers
//!   (`docs/decisions/0012-kernels-keyed-by-content.md`).
//! - `Operation::Bound` reports the values of variables; only [`lower_watched`] emits it.
//!
//! # Invariants
//!
//! - No register is written twice on a path. A kernel reads its inputs and writes its outputs; it has no other effect,
//!   except that a run-time check in it may fail.
//! - After the last step, kernels with different functions have different names.
//! - No step adds a division to an index: a view that would need one remains a kernel boundary.
//! - No kernel outside a chain (`fuse::chain`) reads a value between the chain's two products. The chain is fused only
//!   if the device can schedule it as one kernel. The CPU and the interpreter have no chains.
//! - The step `AssignLayouts` changes the layout of no value that leaves its procedure, and adds no kernel that only
//!   transposes an intermediate tensor. It changes no program for devices that do not request a layout. Run-time checks
//!   report the axes of the source program.
//! - Outputs share memory only if their lifetimes do not overlap. A value that may outlive its procedure has separate
//!   memory.

pub mod dynamic;
mod fuse;
mod layout;
mod loops;
mod lower;
mod names;
mod plan;
pub mod program;
mod queries;
pub mod steps;

pub use fuse::{Merged, Pair, Rewrite, Rewritten};
pub use loops::Loops;
pub use lower::{CallKernel, Module, OperatorCall, Problem, lower, lower_watched};
pub use program::{
    Constant, ConstantId, Instruction, Kernel, KernelId, Operation, Output, Procedure, ProcedureId, Program, Register,
    Scalar, StorageId,
};
pub use queries::{Direct, Queries};
pub use rx_loops::{DefaultTargetInfo, TargetInfo};
