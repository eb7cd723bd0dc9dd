//! CUDA C of loop-level functions by the plain rule, and everything between that text and numbers.
//!
//! The plain rule: each top-level loop nest of a function is one kernel, with one thread per element it computes. Loops
//! that write different elements become threads; the others run inside a thread, in order. Nothing is tiled and nothing
//! is shared between threads, so what is printed can be read against the loops it comes from. A nest that the analysis
//! cannot show independent runs in one thread.
//!
//! - [`module`] prints functions, [`listing`] for people; [`CudaFunction::plan`] says what is launched for given extents.
//! - [`nvrtc`] compiles the text for an architecture.
//! - [`device`] runs it on a GPU.
//! - [`simulator`] runs the same text on the CPU, compiled by a C++ compiler.
//!
//! Probing for a driver, NVRTC or a compiler says what is missing; nothing here panics for the want of one.

mod accumulate;
pub mod device;
mod injective;
mod names;
mod nests;
pub mod nvrtc;
mod parallel;
mod prelude;
mod printer;
pub mod simulator;
mod source;

pub use nests::Unsupported;
pub use printer::{listing, module};
pub use source::{
    Argument, ArgumentValue, BLOCK_SIZE, Check, CheckSite, CudaFunction, CudaSource, Fault, KernelInfo, Launch,
    Listing, MOST_ROUNDS, Plan, PlanError, Temporary,
};
