//! Limits on the work and the memory of a run.

use crate::error::RunError;

/// The limits of a run. The default is unlimited, so a run may never end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The maximal number of loop iterations. An executed instruction counts as [`PER_INSTRUCTION`] of them. Iterations
    /// of compiled code are counted before it runs if its arguments determine their number.
    pub iterations: Option<u64>,
    /// The maximal size in bytes of all results of kernels and host functions together. In the interpreter and on the
    /// CPU, the intermediate buffers of a kernel run may use as many bytes as are left, but do not reduce them.
    pub bytes: Option<u64>,
}

/// The number of iterations that an executed instruction counts as: it takes longer than an interpreted iteration, some
/// 2 µs in a test build.
pub const PER_INSTRUCTION: u64 = 16;

/// The remainder of a run's limits.
#[derive(Clone, Copy, Debug)]
pub struct Fuel {
    /// Loop iterations, including those that instructions count as.
    pub iterations: u64,
    /// Bytes of memory.
    pub bytes: u64,
}

impl Fuel {
    /// Creates the fuel of a run that has not started.
    pub fn of(limits: Limits) -> Fuel {
        Fuel { iterations: limits.iterations.unwrap_or(u64::MAX), bytes: limits.bytes.unwrap_or(u64::MAX) }
    }

    /// Subtracts iterations from the fuel.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn take_iterations(&mut self, iterations: u64) -> Result<(), RunError> {
        self.iterations = self.iterations.checked_sub(iterations).ok_or_else(out_of_iterations)?;
        Ok(())
    }

    /// Subtracts bytes from the fuel.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn take_bytes(&mut self, bytes: usize) -> Result<(), RunError> {
        let left = self.bytes.checked_sub(bytes as u64);
        self.bytes = left.ok_or_else(|| RunError::other("stopped: it needs more memory than is allowed"))?;
        Ok(())
    }
}

/// Returns the error of a run that has exhausted its iterations.
pub(crate) fn out_of_iterations() -> RunError {
    RunError::other("stopped: it needs more iterations of loops and calls than is allowed")
}
