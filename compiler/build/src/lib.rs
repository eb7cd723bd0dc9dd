//! Builds programs from checked files: lowers a function ([`program`]), runs the steps of the pass pipeline, converts
//! the result of each step to a readable module ([`to_module`]), and prints the kernels ([`listing`]).
//!
//! - [`program`] lowers a function for a [`Device`], and [`watched_program`] for an interpreter that reports the values
//!   of variables. A construct that has no lowering is a diagnostic, usually at its statement.
//! - [`pipeline`] runs passes and steps on a module, and checks the module after each. [`passes`] prints their results
//!   as one text.
//! - [`listing`] prints the kernels of a program as loops and as CUDA C, with the statements that each comes from.
//!
//! # Invariants
//!
//! - The module of a step has no errors and computes the same values as the program (`rx-driver`, test `steps`).
//! - Nothing here executes a program or needs a device: the language server depends on this crate.
//! - Programs and texts after edits equal those that are built from scratch; a property test over random edits compares
//!   them.
//! - A query on a snapshot of a workspace is cancelled by a pending edit. It checks for one in each kernel query.

#![forbid(unsafe_code)]

mod device;
mod file_module;
pub mod listing;
mod module;
pub mod passes;
pub mod pipeline;
mod program;
mod queries;

pub use device::Device;
pub use module::to_module;
pub use program::{LOWERING, Lowered, each_step, function_kind, program, watched_program};
