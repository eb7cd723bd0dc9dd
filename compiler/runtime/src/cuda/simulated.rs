//! Kernels simulated on the host.

use super::{Functions, check_failed, source};
use crate::backend::{Argument, Backend, Stage};
use crate::budget::Budget;
use crate::error::{BuildError, RunError};
use crate::interp::{bytes_of_memory, memory, typed};
use rx_base::{DType, Name};
use rx_cuda::rules::Target;
use rx_cuda::simulator::{Call, Options, Order, Simulator};
use rx_lower::{KernelId, Program};
use rx_tensor::{Scalar, Tensor};

/// The CUDA C, compiled by a C++ compiler and run on the host with a fiber per thread: to check kernels without a GPU.
#[derive(Default)]
pub struct Simulated {
    target: Target,
    simulator: Option<Simulator>,
    functions: Functions,
}

impl Simulated {
    /// For kernels made for a target.
    pub fn of(target: Target) -> Simulated {
        Simulated { target, ..Simulated::default() }
    }
}

impl Backend for Simulated {
    type Memory = Tensor;

    fn another(&self) -> Simulated {
        Simulated::of(self.target.clone())
    }

    fn build(&mut self, program: &Program, progress: &mut dyn FnMut(Stage)) -> Result<(), BuildError> {
        let (source, functions) = source(program, &self.target)?;
        let total = functions.funcs.len();
        let simulator = Simulator::build(&source, Options::default()).map_err(|error| BuildError {
            kernel: Name::from("cuda"),
            origins: Vec::new(),
            message: error.to_string(),
        })?;
        self.simulator = Some(simulator);
        self.functions = functions;
        progress(Stage { done: total, total });
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
        let Some(simulator) = &self.simulator else { return Err(RunError::other("the program was not built")) };
        let shapes: Vec<&[i64]> =
            inputs.iter().map(|input| input.shape).chain(outputs.iter().map(|output| output.1.as_slice())).collect();
        let (function, values) = self.functions.call(kernel, &shapes, scalars, budget)?;
        let mut tensors = Vec::with_capacity(shapes.len());
        for input in inputs {
            tensors.push(typed(input.memory, input.dtype, input.shape)?);
        }
        for (_, shape, dtype) in outputs.iter() {
            tensors.push(Tensor::zeros(*dtype, shape).map_err(memory)?);
        }
        let buffers: Vec<&[u8]> = tensors.iter().map(Tensor::bytes).collect();
        let call = Call { function, buffers: &buffers, values: &values, order: Order::Ascending };
        let outcome = simulator.run(&[call]).map_err(|error| RunError::other(error.to_string()))?;
        let results = match outcome.into_iter().next() {
            Some(Ok(results)) => results,
            Some(Err(fault)) => return Err(check_failed(&fault)),
            None => return Err(RunError::other("the simulator gave no answer")),
        };
        for ((memory_of, shape, dtype), bytes) in outputs.iter_mut().zip(results.into_iter().skip(inputs.len())) {
            *memory_of = Tensor::from_bytes(*dtype, shape, &bytes).map_err(memory)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}
