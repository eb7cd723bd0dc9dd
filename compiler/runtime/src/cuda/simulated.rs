//! Simulation of CUDA kernels on the host.

use super::{Functions, check_failed, not_built, source};
use crate::backend::{Backend, KernelCall, Stage};
use crate::error::{BuildError, RunError};
use crate::fuel::Fuel;
use crate::memory::{tensor_error, tensors};
use rx_base::Name;
use rx_cuda::rules::Target;
use rx_cuda::simulator::{Call, Options, Order, Simulator};
use rx_lower::{Program, TargetInfo};
use rx_tensor::Tensor;

/// A device that compiles the CUDA C with a C++ compiler and runs it on the host, with one fiber per CUDA thread. It
/// checks kernels without a GPU.
#[derive(Default)]
pub struct Simulated {
    target: Target,
    is_strict: bool,
    simulator: Option<Simulator>,
    functions: Functions,
}

/// The thread orders that strict mode tries. Other runs use the first only.
const ORDERS: [Order; 3] = [Order::Ascending, Order::Descending, Order::Shuffled(1)];

impl Simulated {
    /// Returns the target that kernels are generated for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Creates a simulated device with the properties of `target`.
    pub fn of(target: Target) -> Simulated {
        Simulated { target, ..Simulated::default() }
    }

    /// Enables strict mode. Sanitizers report out-of-bounds accesses and undefined behaviour, and every kernel runs
    /// with several orders of its threads; it is an error if the results depend on the order. Several times slower.
    #[must_use]
    pub fn strict(self) -> Simulated {
        Simulated { is_strict: true, ..self }
    }
}

impl Backend for Simulated {
    type Memory = Tensor;

    fn target_info(&self) -> &dyn TargetInfo {
        &self.target
    }

    fn new_instance(&self) -> Simulated {
        Simulated { is_strict: self.is_strict, ..Simulated::of(self.target.clone()) }
    }

    fn build(&mut self, program: &Program, progress: &mut dyn FnMut(Stage)) -> Result<(), BuildError> {
        let (source, functions) = source(program, &self.target)?;
        let total = functions.funcs.len();
        let options = Options { sanitize: self.is_strict };
        self.simulator = Some(Simulator::build(&source, options).map_err(not_built)?);
        self.functions = functions;
        progress(Stage { done: total, total });
        Ok(())
    }

    fn run(&mut self, call: KernelCall<'_, Tensor>, fuel: &mut Fuel) -> Result<(), RunError> {
        let KernelCall { kernel, inputs, outputs, scalars } = call;
        let Some(simulator) = &self.simulator else { return Err(RunError::other("the program was not built")) };
        let shapes: Vec<&[i64]> =
            inputs.iter().map(|input| input.shape).chain(outputs.iter().map(|output| output.1.as_slice())).collect();
        let (function, values) = self.functions.call(kernel, &shapes, scalars, fuel)?;
        let tensors = tensors(inputs, outputs)?;
        let buffers: Vec<&[u8]> = tensors.iter().map(Tensor::bytes).collect();
        let orders = if self.is_strict { ORDERS.as_slice() } else { &ORDERS[..1] };
        let calls: Vec<Call<'_>> =
            orders.iter().map(|order| Call { function, buffers: &buffers, values: &values, order: *order }).collect();
        let outcomes = simulator.run(&calls).map_err(|error| RunError::other(error.to_string()))?;
        let mut outcomes = outcomes.into_iter();
        let results = match outcomes.next() {
            Some(Ok(results)) => results,
            // Do not compare failures between orders: if several checks fail, the first one may depend on the order.
            Some(Err(fault)) => return Err(check_failed(&fault)),
            None => return Err(RunError::other("the simulator gave no answer")),
        };
        for (outcome, order) in outcomes.zip(&orders[1..]) {
            if outcome.as_ref() != Ok(&results) {
                let func = self.functions.funcs.get(function).map_or(Name::from("cuda"), |func| func.name);
                return Err(RunError::other(format!(
                    "`{func}` gives another result where its threads run in another order ({order:?})"
                )));
            }
        }
        for ((memory_of, shape, dtype), bytes) in outputs.iter_mut().zip(results.into_iter().skip(inputs.len())) {
            *memory_of = Tensor::from_bytes(*dtype, shape, &bytes).map_err(tensor_error)?;
        }
        Ok(())
    }
}
