//! The reference interpreter of the loop-level IR, with which every other way to run a function is compared.
//!
//! The code prefers simplicity to speed. Every index is checked. Each operation rounds to its dtype: floats are computed in `f64`
//! and then rounded, which for `+ - * / sqrt` of the narrower floats is the correctly rounded result; integers wrap. Memory that
//! the function has not written reads as NaN or as an odd number.
//!
//! A [`Program`] is the function with names resolved and dtypes sorted out; [`run`] makes one and runs it once.
//!
//! Results that C leaves open are defined: a float beyond an integer's range becomes the nearest end of the range and NaN becomes
//! 0; a shift by the width or more gives 0 (or -1 of a negative number shifted right); the smallest integer divided by -1 wraps.

mod arithmetic;
mod compile;
mod error;
mod intrinsics;
mod machine;
mod memory;
mod program;

pub use error::{Limit, RunError};
pub use program::Program;

use rx_tensor::{Scalar, Tensor};
use rx_tir::PrimFunc;
use std::sync::atomic::AtomicBool;

/// What ends a run that would go on, and what it finds. The default is no end, and odd values in fresh memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits<'a> {
    /// How many rounds all loops together may take, counted about.
    pub rounds: Option<u64>,
    /// How many bytes the buffers may have that the function allocates.
    pub bytes: Option<u64>,
    /// Memory that the function allocates begins as zeros, and not as odd values: where that changes a result, the function
    /// reads what nothing wrote.
    pub zeroed: bool,
    /// Ends the run soon after it is set.
    pub cancel: Option<&'a AtomicBool>,
}

/// Runs a function: one tensor per buffer parameter and one scalar per scalar parameter, both in order.
///
/// # Errors
/// Where the arguments do not fit the function, or it does what it must not; buffers are then in any state.
pub fn run(func: &PrimFunc, buffers: &mut [Tensor], scalars: &[Scalar]) -> Result<(), RunError> {
    Program::new(func)?.run(buffers, scalars, Limits::default()).map(drop)
}
