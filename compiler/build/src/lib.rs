//! From a checked file to the kernels that run: its functions lowered to a program ([`FileModule`]), the steps of the pass
//! pipeline over that program, and each step's result as a module to be read ([`to_module`]).
//!
//! # Invariants
//!
//! - The module of a step checks clean and computes the same as the program (`rx-execute`, test `steps`).

#![forbid(unsafe_code)]

mod file_module;
mod module;

pub use file_module::FileModule;
pub use module::to_module;
