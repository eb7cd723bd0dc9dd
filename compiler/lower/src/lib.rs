//! From Relax functions to a program of kernels.
//!
//! A [`Program`] is what every device runs: procedures of instructions over registers, and kernels, which are functions
//! of the loop-level IR. [`lower()`] makes it from an entry function and what it reaches; [`fuse`] joins kernels; [`plan`]
//! gives every kernel's output its place in memory.

pub mod dynamic;
pub mod fuse;
mod layout;
mod lower;
mod optimize;
pub mod plan;
mod preferences;
pub mod program;

pub use lower::{Module, Problem, lower, lower_watched};
pub use optimize::{alone, optimize};
pub use preferences::{NoPreferences, Preferences};
pub use program::{
    Constant, ConstantId, Instruction, Kernel, KernelId, Operation, Output, Procedure, ProcedureId, Program, Register,
    Scalar, StorageId,
};
