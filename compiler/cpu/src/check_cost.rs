//! Measures the cost of a function's index checks and assertions: runs its code with and without them on the same
//! arguments. All other checks, for example of divisors, are in both.
//!
//! Code without checks is used for this purpose only, and only where it is safe: after the code with checks has run on
//! bit-identical arguments and none of its checks failed. Both depend only on their arguments and on cleared
//! temporaries, so all indices that were in range for the one are in range for the other.

use crate::error::{CompileError, RunError};
use crate::kernel::{Argument, CpuKernel, CpuModule, Scratch};
use rx_loops::schedule_unguarded;
use rx_tensor::Scalar;
use rx_tir::PrimFunc;
use std::sync::Arc;
use std::time::Duration;

/// A function compiled with its index checks and assertions, and without them. Both kernels have its other checks.
pub struct CheckCost {
    checked: Arc<CpuKernel>,
    /// Private: running it is safe under the conditions above only.
    unchecked: Arc<CpuKernel>,
}

/// The arguments of calls, in the order of [`CpuKernel::run`].
pub struct Arguments<'a> {
    /// The buffers' bytes.
    pub buffers: &'a [Vec<u8>],
    /// Their shapes.
    pub shapes: &'a [&'a [i64]],
    /// The scalars.
    pub scalars: &'a [Scalar],
}

impl CheckCost {
    /// Compiles the function both ways.
    ///
    /// # Errors
    /// If the function cannot be compiled.
    pub fn of(func: &PrimFunc) -> Result<CheckCost, CompileError> {
        let checked = CpuModule::compile(&[func])?.kernel(0)?.clone();
        let unchecked = CpuModule::compile_scheduled(&[func], schedule_unguarded, &mut |_| {})?.kernel(0)?.clone();
        Ok(CheckCost { checked, unchecked })
    }

    /// Returns the number of checks that the code without checks omits. They are counted in the code, not at run time:
    /// a check in a loop counts once for each copy of the loop's body, of which vectorized and split loops may have
    /// several.
    pub fn checks(&self) -> usize {
        self.checked.check_count().saturating_sub(self.unchecked.check_count())
    }

    /// Measures the time of this many calls with checks and as many without them, with the caller's clock. Returns a
    /// pair `[with checks, without checks]` for each repetition; the order of the two calls alternates.
    ///
    /// # Errors
    /// As [`CpuKernel::run`].
    pub fn measure(
        &self,
        arguments: &Arguments<'_>,
        repetitions: usize,
        clock: &dyn Fn() -> Duration,
    ) -> Result<Vec<[Duration; 2]>, RunError> {
        let mut scratch = Scratch::default();
        let mut buffers = arguments.buffers.to_vec();
        let mut call = |kernel: &CpuKernel| -> Result<Duration, RunError> {
            for (buffer, original) in buffers.iter_mut().zip(arguments.buffers) {
                buffer.copy_from_slice(original);
            }
            scratch.clear();
            let mut passed: Vec<Argument<'_>> = buffers.iter_mut().map(|bytes| Argument::Write(bytes)).collect();
            let before = clock();
            kernel.run(&mut passed, arguments.shapes, arguments.scalars, &mut scratch)?;
            Ok(clock().saturating_sub(before))
        };
        // The checked call makes the unchecked calls safe. The two calls also allocate the memory for the temporaries,
        // so that the measured calls do not.
        call(&self.checked)?;
        call(&self.unchecked)?;
        let mut times = Vec::with_capacity(repetitions);
        for repetition in 0..repetitions {
            let mut time = [Duration::ZERO; 2];
            for which in [repetition % 2, (repetition + 1) % 2] {
                time[which] = call([&self.checked, &self.unchecked][which])?;
            }
            times.push(time);
        }
        Ok(times)
    }
}
