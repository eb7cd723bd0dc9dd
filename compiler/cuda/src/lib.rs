//! CUDA C of loop-level functions, and everything between that text and numbers.
//!
//! A function's statements become kernels by schedule [`rules`], asked in order: each takes some statements or says why it
//! does not, and the last takes everything.
//!
//! - [`module`] prints functions for a [`rules::Target`], [`listing`] for people; [`CudaFunction::plan`] says what is launched for given extents.
//! - [`nvrtc`] compiles the text for an architecture; [`images`] does so in parts at once, and keeps them.
//!   [`images::resources`] reads what they need of a device, [`sass`] what they are made of.
//! - [`device`] runs it on a GPU.
//! - [`simulator`] runs the same text on the CPU, compiled by a C++ compiler.
//!
//! Probing for a driver, NVRTC or a compiler says what is missing; nothing here panics for the want of one.

mod accumulate;
pub mod device;
pub mod images;
mod injective;
mod names;
pub mod nvrtc;
mod parallel;
mod prelude;
mod printer;
pub mod rules;
pub mod sass;
pub mod simulator;
mod source;
mod statements;
mod work;

use printer::makes_one;
pub use printer::{listing, module};
pub use source::{
    Argument, ArgumentValue, BLOCK_SIZE, Check, CheckSite, Choice, CudaFunction, CudaSource, Fault, HostLoop,
    KernelInfo, Launch, LaunchShape, Listing, MOST_BLOCKS, MOST_LAUNCHES, MOST_ROUNDS, Plan, PlanError, Temporary,
    TensorForm, TensorMap, TensorMapValue,
};
pub use statements::Unsupported;
pub use work::LaunchSize;

/// A kernel's function as rules take it: without 4-bit dtypes, and with checks of the indices that nothing proves.
pub fn prepared(func: &rx_tir::PrimFunc) -> rx_tir::PrimFunc {
    rx_schedule::guards(&rx_schedule::legalize_sub_byte(func)).0
}
