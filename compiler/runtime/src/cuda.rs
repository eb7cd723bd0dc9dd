//! Kernels as CUDA C: run on a GPU ([`Cuda`]) or simulated on the host ([`Simulated`]).

mod device;
mod simulated;

use crate::error::{BuildError, Fault, RunError};
use crate::fuel::Fuel;
use crate::memory::tensor_error;
pub use device::Cuda;
use rx_base::{DType, Name};
use rx_cuda::rules::Target;
use rx_cuda::{Check, CudaSource};
use rx_loops::IterationCount;
use rx_lower::{KernelId, Program};
use rx_tensor::{Scalar, Tensor};
use rx_tir::{PrimFunc, bind_symbols};
pub use simulated::Simulated;

/// Generates CUDA C for a program's kernels, and maps each kernel to its function. Identical kernels share a function.
///
/// # Errors
/// If a kernel cannot be translated to CUDA C.
pub fn source(program: &Program, target: &Target) -> Result<(CudaSource, Functions), BuildError> {
    let (index, kernels) = program.distinct();
    let funcs: Vec<_> = kernels.into_iter().map(|kernel| kernel.func()).collect();
    let funcs: Vec<PrimFunc> = funcs.iter().map(rx_cuda::prepared).collect();
    let source = rx_cuda::module(&funcs.iter().collect::<Vec<_>>(), target).map_err(not_built)?;
    let iterations = funcs.iter().map(IterationCount::of).collect();
    Ok((source, Functions { index, funcs, iterations }))
}

/// Creates the error of a failed build. It names no kernel, since all kernels are built together.
fn not_built(error: impl ToString) -> BuildError {
    BuildError { kernel: Name::from("cuda"), origins: Vec::new(), message: error.to_string() }
}

/// The functions of a CUDA source, with the function of each kernel and the number of iterations of each function.
#[derive(Default)]
pub struct Functions {
    index: Vec<usize>,
    funcs: Vec<PrimFunc>,
    iterations: Vec<IterationCount>,
}

impl Functions {
    /// Returns a kernel's function and the values of its variables, and takes its iterations from the fuel. A float
    /// value is passed as the bits of its dtype.
    fn call(
        &self,
        kernel: KernelId,
        shapes: &[&[i64]],
        scalars: &[Scalar],
        fuel: &mut Fuel,
    ) -> Result<(usize, Vec<Option<i64>>), RunError> {
        let at = self.index.get(kernel.0 as usize).copied();
        let func = at.and_then(|at| Some((at, self.funcs.get(at)?)));
        let (at, func) = func.ok_or_else(|| RunError::other("the kernel was not built"))?;
        let whole: Vec<i64> = scalars.iter().map(|scalar| scalar.as_int().unwrap_or(0)).collect();
        let mut values = bind_symbols(func, shapes, &whole).map_err(|error| RunError::other(error.to_string()))?;
        fuel.take_iterations(self.iterations.get(at).map_or(0, |iterations| iterations.count(&values)))?;
        for (var, scalar) in func.scalar_params().zip(scalars) {
            let dtype = func.var(var).dtype;
            if dtype.is_float() {
                values[var.0 as usize] = Some(bits(scalar.as_float(), dtype)?);
            }
        }
        Ok((at, values))
    }
}

/// Returns the bit pattern of a float in a dtype, zero-extended.
fn bits(value: f64, dtype: DType) -> Result<i64, RunError> {
    let tensor = Tensor::from_scalar(dtype, Scalar::Float(value)).map_err(tensor_error)?;
    Ok(tensor.bytes().iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte)).cast_signed())
}

fn check_failed(fault: &rx_cuda::Fault) -> RunError {
    let site = fault.at.site;
    let fault = match fault.at.check {
        Check::Index { buffer, axis } => {
            Fault::OutOfBounds { operator: site.operator, buffer, axis, index: fault.index, extent: fault.extent }
        }
        _ => Fault::Other(fault.to_string()),
    };
    RunError { origin: site.origin, fault }
}
