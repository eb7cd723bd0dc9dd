//! The reference interpreter as a device: memory is bytes, every access is checked.

use crate::backend::{Argument, Backend, Stage};
use crate::budget::{Budget, out_of_rounds};
use crate::error::{BuildError, Fault, RunError};
use rx_base::DType;
use rx_interp::{Limit, Limits};
use rx_lower::{KernelId, Program};
use rx_tensor::{Scalar, Tensor};
use rx_tir::PrimFunc;

/// Interprets kernels.
#[derive(Default)]
pub struct Interpreter {
    programs: Vec<rx_interp::Program>,
}

impl Backend for Interpreter {
    type Memory = Tensor;

    fn another(&self) -> Interpreter {
        Interpreter::default()
    }

    fn build(&mut self, program: &Program, progress: &mut dyn FnMut(Stage)) -> Result<(), BuildError> {
        let total = program.kernels.len();
        for (done, kernel) in program.kernels.iter().enumerate() {
            self.programs.push(interpret(&kernel.func())?);
            progress(Stage { done: done + 1, total });
        }
        Ok(())
    }

    fn allocate(&mut self, bytes: usize) -> Result<Tensor, RunError> {
        bytes_of_memory(bytes)
    }

    fn upload(&mut self, tensor: &Tensor) -> Result<Tensor, RunError> {
        tensor.duplicate().map_err(memory)
    }

    fn take(&mut self, tensor: Tensor) -> Result<Tensor, RunError> {
        Ok(tensor)
    }

    fn download(&mut self, from: &Tensor, dtype: DType, shape: &[i64]) -> Result<Tensor, RunError> {
        typed(from, dtype, shape)
    }

    fn run(
        &mut self,
        kernel: KernelId,
        inputs: &[Argument<'_, Tensor>],
        outputs: &mut [(Tensor, Vec<i64>, DType)],
        scalars: &[Scalar],
        budget: &mut Budget,
    ) -> Result<(), RunError> {
        let Some(program) = self.programs.get(kernel.0 as usize) else {
            return Err(RunError::other("the kernel was not built"));
        };
        run(program, inputs, outputs, scalars, budget)
    }

    fn finish(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}

/// A function made ready to be interpreted.
pub(crate) fn interpret(func: &PrimFunc) -> Result<rx_interp::Program, BuildError> {
    rx_interp::Program::new(func).map_err(|error| BuildError {
        kernel: func.name,
        origins: func.origins.clone(),
        message: error.to_string(),
    })
}

/// Interprets a function, within limits.
pub(crate) fn run(
    program: &rx_interp::Program,
    inputs: &[Argument<'_, Tensor>],
    outputs: &mut [(Tensor, Vec<i64>, DType)],
    scalars: &[Scalar],
    budget: &mut Budget,
) -> Result<(), RunError> {
    let mut buffers = Vec::with_capacity(inputs.len() + outputs.len());
    for input in inputs {
        buffers.push(typed(input.memory, input.dtype, input.shape)?);
    }
    for (_, shape, dtype) in outputs.iter() {
        buffers.push(Tensor::zeros(*dtype, shape).map_err(memory)?);
    }
    let limits = Limits { rounds: Some(budget.rounds), bytes: Some(budget.bytes), ..Limits::default() };
    let rounds = program.run(&mut buffers, scalars, limits).map_err(fault)?;
    budget.take_rounds(rounds)?;
    for ((memory, ..), result) in outputs.iter_mut().zip(buffers.split_off(inputs.len())) {
        *memory = result;
    }
    Ok(())
}

/// A tensor over the first bytes of memory.
pub(crate) fn typed(memory_of: &Tensor, dtype: DType, shape: &[i64]) -> Result<Tensor, RunError> {
    let count = shape.iter().try_fold(1u64, |count, extent| count.checked_mul(u64::try_from(*extent).ok()?));
    let bytes = count.and_then(|count| usize::try_from(count.checked_mul(dtype.bytes())?).ok());
    let bytes = bytes.and_then(|bytes| memory_of.bytes().get(..bytes));
    let bytes = bytes.ok_or_else(|| RunError::other("a tensor is larger than its memory"))?;
    Tensor::from_bytes(dtype, shape, bytes).map_err(memory)
}

/// Memory of so many bytes.
pub(crate) fn bytes_of_memory(bytes: usize) -> Result<Tensor, RunError> {
    let extent = i64::try_from(bytes).map_err(|_| RunError::other("too much memory is asked for"))?;
    Tensor::zeros(DType::UINT8, &[extent]).map_err(memory)
}

pub(crate) fn memory(error: rx_tensor::TensorError) -> RunError {
    RunError::other(error.to_string())
}

fn fault(error: rx_interp::RunError) -> RunError {
    let origin = error.site().and_then(|site| site.origin);
    let fault = match error {
        rx_interp::RunError::OutOfBounds { site, buffer, axis, index, extent } => {
            Fault::OutOfBounds { operator: site.operator, buffer, axis: axis as u32, index, extent }
        }
        rx_interp::RunError::Stopped(Limit::Rounds) => return out_of_rounds(),
        other => Fault::Other(other.to_string()),
    };
    RunError { origin, fault }
}
