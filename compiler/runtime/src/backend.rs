//! The interface of a device: it allocates memory, and builds and runs kernels.

use crate::error::{BuildError, RunError};
use crate::fuel::Fuel;
use crate::memory::Memory;
use rx_base::DType;
use rx_lower::{DefaultTargetInfo, KernelId, Program, TargetInfo};
use rx_tensor::Scalar;
use std::time::Duration;

/// The progress of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The number of kernels that are built so far.
    pub done: usize,
    /// The number of kernels to build. A device may count identical kernels once.
    pub total: usize,
}

/// A tensor in device memory that is passed to a kernel. The memory may be larger than the tensor.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a, M> {
    /// The memory. The tensor is compact and row-major, at offset 0.
    pub memory: &'a M,
    /// The extents, each ≥ 0.
    pub shape: &'a [i64],
    /// The element type.
    pub dtype: DType,
}

/// A call of a kernel. `inputs` followed by `outputs` are in the order of the kernel's buffer parameters.
pub struct KernelCall<'a, M> {
    /// The kernel.
    pub kernel: KernelId,
    /// The tensors that the kernel reads.
    pub inputs: &'a [Argument<'a, M>],
    /// The tensors that the kernel writes: memory, shape and dtype.
    pub outputs: &'a mut [(M, Vec<i64>, DType)],
    /// The values of the kernel's scalar parameters.
    pub scalars: &'a [Scalar],
}

/// A device that runs kernels.
pub trait Backend: Sized {
    /// A block of the device's memory.
    type Memory: Memory<Self>;

    /// Builds every kernel of a program.
    ///
    /// # Errors
    /// If a kernel cannot be built.
    fn build(&mut self, program: &Program, progress: &mut dyn FnMut(Stage)) -> Result<(), BuildError>;

    /// Creates a backend without kernels for the same device, so that both can access the same tensors.
    fn new_instance(&self) -> Self;

    /// Returns the properties of the device that lowering takes into account.
    fn target_info(&self) -> &dyn TargetInfo {
        &DefaultTargetInfo
    }

    /// Returns messages for the user about the build, one sentence each: for example, that a kernel is interpreted.
    fn remarks(&self) -> &[String] {
        &[]
    }

    /// Runs a kernel and takes its iterations from `fuel`.
    ///
    /// # Errors
    /// For example, if the arguments do not match the kernel's parameters, a run-time check in it fails, the fuel is
    /// exhausted, or the device fails.
    fn run(&mut self, call: KernelCall<'_, Self::Memory>, fuel: &mut Fuel) -> Result<(), RunError>;

    /// Returns the time that the device was busy since the previous call of this method, or `None` if the device has no
    /// clock.
    fn busy(&mut self) -> Option<Duration> {
        None
    }

    /// Returns the peak size in bytes of the device memory in use, if the device counts it.
    fn peak_bytes(&self) -> Option<u64> {
        None
    }

    /// Waits until all submitted work is complete.
    ///
    /// # Errors
    /// If some of the work failed.
    fn finish(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}
