//! What a device does: memory and kernels.

use crate::budget::Budget;
use crate::error::{BuildError, RunError};
use crate::memory::Memory;
use rx_base::DType;
use rx_lower::{KernelId, NoPreferences, Preferences, Program};
use rx_tensor::Scalar;
use std::time::Duration;

/// A step of building, for progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Kernels done.
    pub done: usize,
    /// Kernels in all.
    pub total: usize,
}

/// A tensor in a device's memory as a kernel takes it. The memory may be larger than the tensor.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a, M> {
    /// The memory; the tensor is dense from its start.
    pub memory: &'a M,
    /// Extents, each ≥ 0.
    pub shape: &'a [i64],
    /// The element type.
    pub dtype: DType,
}

/// A call of a kernel. Buffers are in the order of the function's buffer parameters.
pub struct KernelCall<'a, M> {
    /// Which kernel.
    pub kernel: KernelId,
    /// The tensors that it reads.
    pub inputs: &'a [Argument<'a, M>],
    /// The tensors that it writes: memory, shape and dtype.
    pub outputs: &'a mut [(M, Vec<i64>, DType)],
    /// Values of its scalar parameters.
    pub scalars: &'a [Scalar],
}

/// A device that runs kernels.
pub trait Backend: Sized {
    /// A piece of the device's memory.
    type Memory: Memory<Self>;

    /// Builds every kernel of a program.
    ///
    /// # Errors
    /// Where a kernel cannot be built.
    fn build(&mut self, program: &Program, progress: &mut dyn FnMut(Stage)) -> Result<(), BuildError>;

    /// The same device, nothing built: tensors of the one are tensors of the other.
    fn another(&self) -> Self;

    /// What programs for it should be like.
    fn preferences(&self) -> &dyn Preferences {
        &NoPreferences
    }

    /// What the user should know of the last build, a sentence each: kernels that do not run as the device would have it.
    fn remarks(&self) -> &[String] {
        &[]
    }

    /// Runs a kernel and takes its rounds from `budget`.
    ///
    /// # Errors
    /// Where the arguments do not fit the function, a check in it fails, or the budget does not do.
    fn run(&mut self, call: KernelCall<'_, Self::Memory>, budget: &mut Budget) -> Result<(), RunError>;

    /// How long the device worked since this was asked last, by a clock of its own.
    fn busy(&mut self) -> Option<Duration> {
        None
    }

    /// The most bytes of the device's memory that were needed at the same time, where it counts them.
    fn peak_bytes(&self) -> Option<u64> {
        None
    }

    /// Waits until everything asked for is done.
    ///
    /// # Errors
    /// Where something that was running failed.
    fn finish(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}
