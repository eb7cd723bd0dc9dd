//! The host's processor as a device: kernels are scheduled and compiled by `rx-cpu`. A kernel that cannot be compiled
//! is interpreted.

use crate::backend::{Backend, KernelCall, Stage};
use crate::error::{BuildError, Fault, RunError};
use crate::fuel::{Fuel, out_of_iterations};
use crate::interp::interpret;
use rx_cpu::{CpuKernel, CpuModule, Scratch};
use rx_lower::Program;
use rx_tensor::Tensor;
use std::sync::Arc;

/// A device that compiles kernels for the host's processor.
#[derive(Default)]
pub struct Cpu {
    /// The built kernels, by kernel id.
    kernels: Vec<Built>,
    scratch: Scratch,
    /// Messages that name the kernels that are interpreted, with the reason.
    remarks: Vec<String>,
}

enum Built {
    Compiled(Arc<CpuKernel>),
    Interpreted(Box<rx_interp::Program>),
}

impl Backend for Cpu {
    type Memory = Tensor;

    fn new_instance(&self) -> Cpu {
        Cpu::default()
    }

    fn build(&mut self, program: &Program, progress: &mut dyn FnMut(Stage)) -> Result<(), BuildError> {
        let (index, kernels) = program.distinct();
        let funcs: Vec<_> = kernels.into_iter().map(|kernel| kernel.func()).collect();
        let total = funcs.len();
        let module = CpuModule::compile_with(&funcs.iter().collect::<Vec<_>>(), &mut |done| {
            progress(Stage { done, total });
        });
        for (kernel, at) in program.kernels.iter().zip(index) {
            let compiled = module.as_ref().map_err(Clone::clone).and_then(|module| module.kernel(at));
            self.kernels.push(match compiled {
                Ok(compiled) => Built::Compiled(compiled.clone()),
                Err(reason) => {
                    let remark = format!("kernel `{}` is interpreted: {reason}", kernel.name);
                    if !self.remarks.contains(&remark) {
                        self.remarks.push(remark);
                    }
                    Built::Interpreted(Box::new(interpret(&kernel.func())?))
                }
            });
        }
        Ok(())
    }

    fn remarks(&self) -> &[String] {
        &self.remarks
    }

    fn run(&mut self, call: KernelCall<'_, Tensor>, fuel: &mut Fuel) -> Result<(), RunError> {
        let compiled = match self.kernels.get(call.kernel.0 as usize) {
            Some(Built::Compiled(compiled)) => compiled,
            Some(Built::Interpreted(program)) => return crate::interp::run(program, call, fuel),
            None => return Err(RunError::other("the kernel was not built")),
        };
        let KernelCall { inputs, outputs, scalars, .. } = call;
        let shapes: Vec<Vec<i64>> = outputs.iter().map(|(_, shape, _)| shape.clone()).collect();
        let shapes: Vec<&[i64]> =
            inputs.iter().map(|input| input.shape).chain(shapes.iter().map(Vec::as_slice)).collect();
        let mut buffers: Vec<rx_cpu::Argument<'_>> =
            inputs.iter().map(|input| rx_cpu::Argument::Read(input.memory.bytes())).collect();
        buffers.extend(outputs.iter_mut().map(|(memory, ..)| rx_cpu::Argument::Write(memory.bytes_mut())));
        let mut limits = rx_cpu::Limits { iterations: fuel.iterations, bytes: fuel.bytes };
        let done = compiled.run_within(&mut buffers, &shapes, scalars, &mut self.scratch, &mut limits);
        fuel.iterations = limits.iterations;
        done.map_err(fault)
    }
}

fn fault(error: rx_cpu::RunError) -> RunError {
    match error {
        rx_cpu::RunError::OutOfBounds { site, buffer, axis, index, extent } => RunError {
            origin: site.origin,
            fault: Fault::OutOfBounds { operator: site.operator, buffer, axis, index, extent },
        },
        rx_cpu::RunError::DivisionByZero { site } | rx_cpu::RunError::Assert { site, .. } => {
            RunError { origin: site.origin, fault: Fault::Other(error.to_string()) }
        }
        rx_cpu::RunError::Iterations => out_of_iterations(),
        other => RunError::other(other.to_string()),
    }
}
