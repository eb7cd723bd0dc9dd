//! The interface to a device's memory, and its implementation for host memory, which the interpreter, the CPU and
//! simulated CUDA use.

use crate::backend::Argument;
use crate::error::RunError;
use rx_base::DType;
use rx_tensor::{Tensor, TensorError};

/// A block of memory of the device `D`.
pub trait Memory<D>: Sized {
    /// Whether this is host memory. The tensors of suspended calls then count toward the bound on host memory.
    const IS_HOST: bool;

    /// Allocates at least `bytes` bytes, with arbitrary contents.
    ///
    /// # Errors
    /// If there is not enough memory, or the device fails.
    fn allocate(device: &mut D, bytes: usize) -> Result<Self, RunError>;

    /// Allocates one block for each size at once, with arbitrary contents. `None` means that the caller must allocate
    /// each block when it needs it.
    ///
    /// # Errors
    /// If the device has failed.
    fn allocate_together(_device: &mut D, _sizes: &[usize]) -> Result<Option<Vec<Self>>, RunError> {
        Ok(None)
    }

    /// Allocates memory and copies the tensor into it.
    ///
    /// # Errors
    /// If there is not enough memory, or the device fails.
    fn upload(device: &mut D, tensor: &Tensor) -> Result<Self, RunError>;

    /// Moves the tensor into device memory. Nothing is copied if the device's memory is the host's.
    ///
    /// # Errors
    /// As [`Memory::upload`].
    fn take(device: &mut D, tensor: Tensor) -> Result<Self, RunError> {
        Self::upload(device, &tensor)
    }

    /// Copies the tensor of this dtype and shape that the memory contains to the host.
    ///
    /// # Errors
    /// If the device has failed, the tensor is larger than the memory, or there is not enough host memory.
    fn download(&self, device: &mut D, dtype: DType, shape: &[i64]) -> Result<Tensor, RunError>;
}

impl<D> Memory<D> for Tensor {
    const IS_HOST: bool = true;

    fn allocate(_device: &mut D, bytes: usize) -> Result<Tensor, RunError> {
        let extent = i64::try_from(bytes).map_err(|_| RunError::other("too much memory is asked for"))?;
        Tensor::zeros(DType::UINT8, &[extent]).map_err(tensor_error)
    }

    fn upload(_device: &mut D, tensor: &Tensor) -> Result<Tensor, RunError> {
        tensor.duplicate().map_err(tensor_error)
    }

    fn take(_device: &mut D, tensor: Tensor) -> Result<Tensor, RunError> {
        Ok(tensor)
    }

    fn download(&self, _device: &mut D, dtype: DType, shape: &[i64]) -> Result<Tensor, RunError> {
        typed(self.bytes(), dtype, shape)
    }
}

/// Copies the leading bytes of `bytes` into a tensor of this dtype and shape.
pub(crate) fn typed(bytes: &[u8], dtype: DType, shape: &[i64]) -> Result<Tensor, RunError> {
    let count = shape.iter().try_fold(1u64, |count, extent| count.checked_mul(u64::try_from(*extent).ok()?));
    let needed = count.and_then(|count| usize::try_from(count.checked_mul(dtype.bytes())?).ok());
    let bytes = needed.and_then(|needed| bytes.get(..needed));
    let bytes = bytes.ok_or_else(|| RunError::other("a tensor is larger than its memory"))?;
    Tensor::from_bytes(dtype, shape, bytes).map_err(tensor_error)
}

/// Creates tensors for the buffers of a kernel: copies of its inputs, then zeros for its outputs.
pub(crate) fn tensors(
    inputs: &[Argument<'_, Tensor>],
    outputs: &[(Tensor, Vec<i64>, DType)],
) -> Result<Vec<Tensor>, RunError> {
    let inputs = inputs.iter().map(|input| typed(input.memory.bytes(), input.dtype, input.shape));
    let outputs = outputs.iter().map(|(_, shape, dtype)| Tensor::zeros(*dtype, shape).map_err(tensor_error));
    inputs.chain(outputs).collect()
}

pub(crate) fn tensor_error(error: TensorError) -> RunError {
    RunError::other(error.to_string())
}
