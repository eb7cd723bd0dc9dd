//! The reference interpreter of the loop-level IR. All other ways to run a function are tested against it.
//!
//! The code prefers simplicity to speed. Every index is checked. Each operation rounds to its dtype: floats are
//! computed in `f64` and then rounded, which gives the correctly rounded result of `+ - * / sqrt` for the narrower
//! float dtypes; integers wrap. A local buffer that the function has not written reads as NaN, `True` or an unusual
//! integer.
//!
//! A [`Program`] is a function with resolved names and dtypes; [`run`] creates one and runs it once.
//!
//! Results that C leaves undefined are defined: a float outside an integer's range becomes the nearest value of the
//! range, and NaN becomes 0; a shift by the width or more gives 0 (−1 for a right shift of a negative number); the
//! smallest integer divided by −1 wraps.

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

/// The limits of a run, and the initial contents of local buffers. By default a run is unlimited and local buffers
/// contain unusual values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits<'a> {
    /// The maximal number of iterations of all loops together.
    pub iterations: Option<u64>,
    /// The maximal size in bytes of the function's local buffers together.
    pub bytes: Option<u64>,
    /// Whether local buffers are initialized with zeros instead of unusual values. If this changes a result, the
    /// function reads memory that it has not written.
    pub zeroed: bool,
    /// A flag that ends the run soon after it is set.
    pub cancel: Option<&'a AtomicBool>,
}

/// Runs a function. The arguments are one tensor for each buffer parameter and one scalar for each scalar parameter,
/// both in order.
///
/// # Errors
/// If the function cannot be translated ([`Program::new`]), the arguments do not match the parameters, memory for a
/// local buffer is missing, or the function performs an invalid operation. The contents of the buffers are then
/// unspecified.
pub fn run(func: &PrimFunc, buffers: &mut [Tensor], scalars: &[Scalar]) -> Result<(), RunError> {
    Program::new(func)?.run(buffers, scalars, Limits::default()).map(drop)
}
