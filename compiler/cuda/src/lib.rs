//! CUDA C of loop-level functions, its compilation, and its execution on a GPU or simulated.
//!
//! A function's top-level statements become kernels by schedule [`rules`], asked in order: each takes some statements or declines
//! with a reason, and the last takes everything.
//!
//! - [`module`] prints functions for a [`rules::Target`], [`listing`] for people; [`CudaFunction::plan`] lists the launches for
//!   given extents.
//!
//! With the feature `driver`, which all that runs kernels turns on:
//!
//! - `nvrtc` compiles the text for an architecture; `images` does so in parallel parts, and caches them.
//!   `images::resources` reads their registers and memory, `sass` disassembles them.
//! - `device` runs them on a GPU.
//! - `simulator` runs the same text on the CPU, compiled by a C++ compiler with a fiber for each thread.
//!
//! # Invariants
//!
//! - Looking for a driver, NVRTC or a compiler never panics, and reports what is missing. Unsafe code is in `device::live` and
//!   `nvrtc` only.
//! - A rule that cannot print the statements that it took has declined. A function that the fallback prints never fails for a
//!   rule.
//! - A sum is done in an order that depends on extents alone, so every run gives the same bits. Slices of a sum are added by a
//!   second kernel, in order. No value goes through atomics; attention finds the key range of a block by integer atomics in
//!   shared memory, which any order leaves the same.
//! - In a kernel whose threads synchronize, a failed check is noted and the thread goes on with a value in range: no barrier
//!   waits for a thread that ended.
//! - Every buffer begins at a multiple of 16 bytes, which 16-byte accesses rely on; device memory is allocated in multiples of
//!   512 bytes.
//! - Instructions of an architecture (`mma.sync`, `ldmatrix`, `cp.async`, on `sm_90a` `wgmma` and TMA) are used by helpers
//!   (`prelude`) only. The simulator implements them lane by lane, with each asynchronous copy completing as late as it may;
//!   `tests/kernels/hopper_faults.rs` checks that a kernel with a missing wait gives other results. No rule uses an instruction
//!   that the target does not have.

mod accumulate;
#[cfg(feature = "driver")]
pub mod device;
#[cfg(feature = "driver")]
pub mod images;
mod injective;
mod names;
#[cfg(feature = "driver")]
pub mod nvrtc;
mod parallel;
mod prelude;
mod printer;
pub mod rules;
#[cfg(feature = "driver")]
pub mod sass;
#[cfg(feature = "driver")]
pub mod simulator;
mod source;
mod statements;
mod work;

use printer::makes_one;
pub use printer::{Named, Scheduled, joined, listing, module, schedule};
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
