//! The reference interpreter as a [`Backend`]: memory is host memory and every access is bounds-checked.

use crate::backend::{Backend, KernelCall, Stage};
use crate::error::{BuildError, Fault, RunError};
use crate::fuel::{Fuel, out_of_iterations};
use crate::memory::tensors;
use rx_interp::{Limit, Limits};
use rx_lower::Program;
use rx_tensor::Tensor;
use rx_tir::PrimFunc;

/// A device that interprets kernels.
#[derive(Default)]
pub struct Interpreter {
    programs: Vec<rx_interp::Program>,
}

impl Backend for Interpreter {
    type Memory = Tensor;

    fn new_instance(&self) -> Interpreter {
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

    fn run(&mut self, call: KernelCall<'_, Tensor>, fuel: &mut Fuel) -> Result<(), RunError> {
        let Some(program) = self.programs.get(call.kernel.0 as usize) else {
            return Err(RunError::other("the kernel was not built"));
        };
        run(program, call, fuel)
    }
}

/// Prepares a kernel for interpretation.
pub(crate) fn interpret(func: &PrimFunc) -> Result<rx_interp::Program, BuildError> {
    rx_interp::Program::new(func).map_err(|error| BuildError {
        kernel: func.name,
        origins: func.origins.clone(),
        message: error.to_string(),
    })
}

/// Interprets a kernel, replaces the memory of the call's outputs by the results, and takes the executed iterations
/// from `fuel`.
pub(crate) fn run(
    program: &rx_interp::Program,
    KernelCall { inputs, outputs, scalars, .. }: KernelCall<'_, Tensor>,
    fuel: &mut Fuel,
) -> Result<(), RunError> {
    let mut buffers = tensors(inputs, outputs)?;
    let limits = Limits { iterations: Some(fuel.iterations), bytes: Some(fuel.bytes), ..Limits::default() };
    let iterations = program.run(&mut buffers, scalars, limits).map_err(fault)?;
    fuel.take_iterations(iterations)?;
    for ((memory, ..), result) in outputs.iter_mut().zip(buffers.split_off(inputs.len())) {
        *memory = result;
    }
    Ok(())
}

fn fault(error: rx_interp::RunError) -> RunError {
    let origin = error.site().and_then(|site| site.origin);
    let fault = match error {
        rx_interp::RunError::OutOfBounds { site, buffer, axis, index, extent } => {
            Fault::OutOfBounds { operator: site.operator, buffer, axis: axis as u32, index, extent }
        }
        rx_interp::RunError::Stopped(Limit::Iterations) => return out_of_iterations(),
        other => Fault::Other(other.to_string()),
    };
    RunError { origin, fault }
}
