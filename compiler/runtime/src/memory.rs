//! Memory of devices, and that of the host, which the interpreter, the CPU and simulated CUDA share.

use crate::backend::Argument;
use crate::error::RunError;
use rx_base::DType;
use rx_tensor::{Tensor, TensorError};

/// A piece of the memory of a device `D`.
pub trait Memory<D>: Sized {
    /// Whether it is the host's memory, so that tensors leave the host less.
    const IS_HOST: bool;

    /// Memory of at least `bytes`, with any contents.
    ///
    /// # Errors
    /// Where there is not enough.
    fn allocate(device: &mut D, bytes: usize) -> Result<Self, RunError>;

    /// Memory of each of these sizes, with any contents, all at once. `None`: each is to be asked for when it is needed.
    ///
    /// # Errors
    /// Where the device has failed.
    fn allocate_together(_device: &mut D, _sizes: &[usize]) -> Result<Option<Vec<Self>>, RunError> {
        Ok(None)
    }

    /// Memory that holds the tensor.
    ///
    /// # Errors
    /// Where there is not enough.
    fn upload(device: &mut D, tensor: &Tensor) -> Result<Self, RunError>;

    /// Memory that holds the tensor, which is given away: where the device's memory is the host's, nothing is copied.
    ///
    /// # Errors
    /// As [`Memory::upload`].
    fn take(device: &mut D, tensor: Tensor) -> Result<Self, RunError> {
        Self::upload(device, &tensor)
    }

    /// The tensor that the memory holds.
    ///
    /// # Errors
    /// Where the device has failed.
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

/// A tensor over the first of these bytes.
pub(crate) fn typed(bytes: &[u8], dtype: DType, shape: &[i64]) -> Result<Tensor, RunError> {
    let count = shape.iter().try_fold(1u64, |count, extent| count.checked_mul(u64::try_from(*extent).ok()?));
    let needed = count.and_then(|count| usize::try_from(count.checked_mul(dtype.bytes())?).ok());
    let bytes = needed.and_then(|needed| bytes.get(..needed));
    let bytes = bytes.ok_or_else(|| RunError::other("a tensor is larger than its memory"))?;
    Tensor::from_bytes(dtype, shape, bytes).map_err(tensor_error)
}

/// A kernel's buffers as tensors: its inputs, then its outputs as zeros.
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
