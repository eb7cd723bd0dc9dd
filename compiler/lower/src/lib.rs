//! Lowers Relax functions to a program of kernels.
//!
//! A [`Program`] is what every device runs: procedures of instructions over registers, and kernels, which are functions of the
//! loop-level IR. [`lower()`] makes it from an entry function and what it reaches, with a kernel for each operator; the [`steps`]
//! of the pass pipeline take it to the kernels that a device runs: fusion (`fuse`), channels-last layouts (`layout`), the static
//! memory plan (`plan`). The crate knows no device; a device states its wishes by [`Preferences`].
//!
//! - Memory that a text allocates is not allocated here: a prim_func that writes into a tensor makes a new register
//!   (`lower::memory`), shape heaps become dims, and packed functions become instructions (`lower::packed`).
//! - A call whose operand types are open (`R.Tensor(ndim=2)`, `R.Any`) keeps its operator (`Operation::Dynamic`). At run time the
//!   types of its values make it a separate program, which is cached ([`dynamic`]).
//! - Kernels that do the same share one function ([`Loops`]). Whatever makes or changes a function depends on its key alone, and is
//!   asked of [`Queries`], so that a database can keep the answers (`docs/decisions/0012-kernels-keyed-by-content.md`).
//! - `Operation::Bound` reports the values of variables; only [`lower_watched`] emits it.
//!
//! # Invariants
//!
//! - Every register is written once on every path. A kernel reads its inputs and writes its outputs, and has no other effect.
//! - Kernels that differ have different names.
//! - No step adds a division to an index: a view that would need one stays a kernel boundary.
//! - A chain (`fuse::chain`) contains no value that another kernel reads, and is kept only if the device makes one kernel of it.
//!   The CPU and the interpreter have no chains.
//! - A layout changes no value that leaves its procedure, and adds no kernel that only transposes an activation. Without a device
//!   that asks for it, programs do not change. Checks name the axes of the program's text.
//! - Outputs share memory only if their lifetimes do not overlap. A value that may outlive its procedure has separate memory.

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
pub use rx_schedule::{NoPreferences, Preferences};
