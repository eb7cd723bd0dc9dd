//! From a checked file to the kernels that run: its functions lowered to a program ([`program`]), the steps of the pass pipeline
//! over that program, each step's result as a module to be read ([`to_module`]), and the kernels as text ([`listing`]).
//!
//! - [`program`] and [`watched_program`] lower a function for a [`Device`]; what has no lowering is a diagnostic at its statement.
//! - [`pipeline`]: a module on its way through passes and steps, each followed by a check; [`passes`]: their results as one text.
//! - [`listing`]: the kernels of a program as loops and as CUDA C, with the statements that each comes from.
//!
//! # Invariants
//!
//! - The module of a step checks clean and computes the same as the program (`rx-execute`, test `steps`).
//! - Nothing here executes a program, or needs a device: the language server depends on this crate.
//! - Programs and texts after edits equal those from scratch; a property test over random edits compares them.
//! - A query on a workspace's snapshot stops where an edit waits for it: before each kernel.

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
