//! From Relax functions to a program of kernels.
//!
//! A [`Program`] is what every device runs: procedures of instructions over registers, and kernels, which are functions
//! of the loop-level IR. [`lower()`] makes it from an entry function and what it reaches, with a kernel for each operator;
//! the [`steps`] of the pass pipeline take it to the kernels that a device runs.

pub mod dynamic;
mod fuse;
mod layout;
mod lower;
mod names;
mod plan;
pub mod program;
pub mod steps;

pub use lower::{Module, Problem, lower, lower_watched};
pub use program::{
    Constant, ConstantId, Instruction, Kernel, KernelId, Operation, Output, Procedure, ProcedureId, Program, Register,
    Scalar, StorageId,
};
pub use rx_schedule::{NoPreferences, Preferences};
