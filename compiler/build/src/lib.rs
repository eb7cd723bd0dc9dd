//! From a checked file to the kernels that run, as queries over the database of checking: a function lowered to a program and the
//! steps of the pass pipeline over it ([`program`]), and each step's result as a module to be read ([`each_step`], [`to_module`]).
//!
//! # Invariants
//!
//! - Programs and texts after edits equal those from scratch; a property test over random edits compares them.
//! - The module of a step checks clean and computes the same as the program (`rx-execute`, test `steps`).

#![forbid(unsafe_code)]

mod file_module;
mod module;
mod program;
mod queries;
mod target;
mod texts;

pub use module::to_module;
pub use program::{LOWERING, each_step, program, watched_program};
pub use target::Target;
pub use texts::{cuda_listing, loops_text};
