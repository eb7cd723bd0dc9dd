//! CUDA C of loop-level functions, its compilation, and its execution on a GPU or simulated.
//!
//! Schedule [`rules`] turn a function's top-level statements into kernels. They are tried in order: each takes some
//! statements or declines with a reason, and the last takes any statement.
//!
//! - [`module`] prints functions for a [`rules::Target`], [`listing`] for people; [`CudaFunction::plan`] lists the
//!   launches for given extents.
//!
//! With the feature `driver`, which crates that run kernels enable:
//!
//! - `nvrtc` compiles the text for an architecture; `images` does so in parallel parts, and caches them.
//!   `images::resources` reads the resource usage of compiled kernels, `sass` disassembles them.
//! - `device` runs them on a GPU.
//! - `simulator` runs the same text on the CPU, compiled by a C++ compiler with a fiber for each thread.
//!
//! # Invariants
//!
//! - Looking for a driver, NVRTC or a compiler never panics, and reports what is missing. Unsafe code is in
//!   `device::cudarc_driver` and `nvrtc` only.
//! - A rule that takes statements and then cannot print them counts as having declined. So a function that the fallback
//!   can print never fails because of another rule.
//! - The order of the additions of a sum depends on the extents and the [`rules::Target`] alone, so every run gives the
//!   same bits. If several blocks compute slices of a sum, a second kernel adds the slices, in order. No result is
//!   accumulated by atomics; attention computes the key range of a block by integer atomics in shared memory, whose
//!   result does not depend on the order.
//! - In a kernel whose threads synchronize, a thread whose check fails records the error and continues with a valid
//!   value (index 0, divisor 1), so that no barrier waits for a thread that has exited.
//! - Every buffer begins at a multiple of 16 bytes, which 16-byte accesses rely on; device memory is allocated in
//!   multiples of 512 bytes.
//! - Only helpers (`prelude`) contain instructions of an architecture: `mma.sync`, `ldmatrix`, `cp.async`, and `wgmma`
//!   and TMA of `sm_90a`. No rule uses one that the target does not have. The simulator implements them. It completes
//!   an asynchronous copy as late as allowed, or at once if threads run in descending order;
//!   `tests/kernels/hopper_faults.rs` checks that a kernel with a missing wait does not give the right result.

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

use printer::can_schedule_as_one_kernel;
pub use printer::{Named, Scheduled, joined, listing, module, schedule};
pub use source::{
    Argument, ArgumentValue, BLOCK_SIZE, Check, CheckSite, Choice, CudaFunction, CudaSource, Fault, HostLoop,
    KernelInfo, Launch, LaunchShape, Listing, MOST_BLOCKS, MOST_ITERATIONS, MOST_LAUNCHES, Plan, PlanError, Temporary,
    TensorForm, TensorMap, TensorMapValue,
};
pub use statements::Unsupported;
pub use work::LaunchSize;

/// Returns the function in the form that rules take: 4-bit dtypes are replaced where [`rx_loops::legalize_sub_byte`]
/// does so, and indices that are not proved to be in bounds are checked.
pub fn prepared(func: &rx_tir::PrimFunc) -> rx_tir::PrimFunc {
    rx_loops::guards(&rx_loops::legalize_sub_byte(func)).0
}
