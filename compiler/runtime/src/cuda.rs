//! Kernels as CUDA C: on a device, or simulated on the host.

use crate::backend::{Argument, Backend, Stage};
use crate::budget::Budget;
use crate::distinct::distinct;
use crate::error::{BuildError, Fault, RunError};
use crate::interp::{bytes_of_memory, memory, typed};
use rx_base::{DType, Name};
use rx_cuda::device::{Device, DeviceBuffer, DeviceError, Module};
use rx_cuda::images::Kept;
use rx_cuda::rules::{RuleOrder, Target};
use rx_cuda::simulator::{Call, Options, Order, Simulator};
use rx_cuda::{Check, CudaSource};
use rx_lower::{KernelId, Program};
use rx_schedule::Rounds;
use rx_tensor::{Scalar, Tensor};
use rx_tir::{PrimFunc, bind_symbols};

/// A program's kernels as CUDA C, and which function each kernel is.
///
/// # Errors
/// Where a kernel has no CUDA C.
pub fn source(program: &Program, target: &Target) -> Result<(CudaSource, Functions), BuildError> {
    let (index, funcs) = distinct(program);
    let funcs: Vec<PrimFunc> = funcs.into_iter().map(|func| rx_schedule::guards(func).0).collect();
    let source = rx_cuda::module(&funcs.iter().collect::<Vec<_>>(), target).map_err(|error| BuildError {
        kernel: Name::from("cuda"),
        origins: Vec::new(),
        message: error.to_string(),
    })?;
    let rounds = funcs.iter().map(Rounds::of).collect();
    Ok((source, Functions { index, funcs, rounds }))
}

/// The CUDA C of some kernels' functions as it is built, to be read.
pub fn listing(funcs: &[&PrimFunc], target: &Target) -> rx_cuda::Listing {
    let guarded: Vec<PrimFunc> = funcs.iter().map(|func| rx_schedule::guards(func).0).collect();
    rx_cuda::listing(&guarded.iter().collect::<Vec<_>>(), target)
}

/// The functions of a CUDA source, and the function of each kernel.
#[derive(Default)]
pub struct Functions {
    index: Vec<usize>,
    funcs: Vec<PrimFunc>,
    rounds: Vec<Rounds>,
}

impl Functions {
    /// A kernel's function and the values of its variables, floats as the bits of their dtype. Its rounds are taken.
    fn call(
        &self,
        kernel: KernelId,
        shapes: &[&[i64]],
        scalars: &[Scalar],
        budget: &mut Budget,
    ) -> Result<(usize, Vec<Option<i64>>), RunError> {
        let at = self.index.get(kernel.0 as usize).copied();
        let func = at.and_then(|at| Some((at, self.funcs.get(at)?)));
        let (at, func) = func.ok_or_else(|| RunError::other("the kernel was not built"))?;
        let whole: Vec<i64> = scalars.iter().map(|scalar| scalar.as_int().unwrap_or(0)).collect();
        let mut values = bind_symbols(func, shapes, &whole).map_err(|error| RunError::other(error.to_string()))?;
        budget.take_rounds(self.rounds.get(at).map_or(0, |rounds| rounds.count(&values)))?;
        for (var, scalar) in func.scalar_params().zip(scalars) {
            let dtype = func.var(var).dtype;
            if dtype.is_float() {
                values[var.0 as usize] = Some(bits(scalar.as_float(), dtype)?);
            }
        }
        Ok((at, values))
    }
}

/// The bits of a float in a dtype.
fn bits(value: f64, dtype: DType) -> Result<i64, RunError> {
    let tensor = Tensor::from_scalar(dtype, Scalar::Float(value)).map_err(memory)?;
    Ok(tensor.bytes().iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte)).cast_signed())
}

/// A CUDA device.
pub struct Cuda {
    device: &'static Device,
    target: Target,
    module: Option<Module<'static>>,
    functions: Functions,
}

impl Cuda {
    /// The first device.
    ///
    /// # Errors
    /// What is missing.
    pub fn probe() -> Result<Cuda, DeviceError> {
        // The device is open until the process ends: modules and memory refer to it.
        let device = Box::leak(Box::new(Device::probe()?));
        let target = Target { arch: device.arch(), ..Target::default() };
        Ok(Cuda { device, target, module: None, functions: Functions::default() })
    }

    /// With these rules for schedules.
    #[must_use]
    pub fn with_rules(mut self, rules: RuleOrder) -> Cuda {
        self.target.rules = rules;
        self
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        self.device.name()
    }
}

impl Backend for Cuda {
    type Memory = DeviceBuffer;

    fn another(&self) -> Cuda {
        Cuda { device: self.device, target: self.target.clone(), module: None, functions: Functions::default() }
    }

    fn build(&mut self, program: &Program, progress: &mut dyn FnMut(Stage)) -> Result<(), BuildError> {
        let (source, functions) = source(program, &self.target)?;
        let total = functions.funcs.len();
        let failed = |error: DeviceError| BuildError {
            kernel: Name::from("cuda"),
            origins: Vec::new(),
            message: error.to_string(),
        };
        // Parts hold several kernels each, of about the same cost together.
        let mut told = |done: usize, of: usize| progress(Stage { done: total * done / of.max(1), total });
        self.module = Some(self.device.load(source, &Kept::of_user(), &mut told).map_err(failed)?);
        self.functions = functions;
        Ok(())
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceBuffer, RunError> {
        self.device.allocate(bytes).map_err(device_fault)
    }

    fn upload(&mut self, tensor: &Tensor) -> Result<DeviceBuffer, RunError> {
        self.device.upload(tensor.bytes()).map_err(device_fault)
    }

    fn download(&mut self, from: &DeviceBuffer, dtype: DType, shape: &[i64]) -> Result<Tensor, RunError> {
        let bytes = self.device.download(from).map_err(device_fault)?;
        let whole = Tensor::from_bytes(DType::UINT8, &[bytes.len() as i64], &bytes).map_err(memory)?;
        typed(&whole, dtype, shape)
    }

    fn run(
        &mut self,
        kernel: KernelId,
        inputs: &[Argument<'_, DeviceBuffer>],
        outputs: &mut [(DeviceBuffer, Vec<i64>, DType)],
        scalars: &[Scalar],
        budget: &mut Budget,
    ) -> Result<(), RunError> {
        let Some(module) = &self.module else { return Err(RunError::other("the program was not built")) };
        let shapes: Vec<&[i64]> =
            inputs.iter().map(|input| input.shape).chain(outputs.iter().map(|output| output.1.as_slice())).collect();
        let (function, values) = self.functions.call(kernel, &shapes, scalars, budget)?;
        let buffers: Vec<&DeviceBuffer> =
            inputs.iter().map(|input| input.memory).chain(outputs.iter().map(|output| &output.0)).collect();
        module.launch(function, &buffers, &values).map_err(device_fault)
    }

    fn finish(&mut self) -> Result<(), RunError> {
        self.module.as_ref().map_or(Ok(()), |module| module.finish().map_err(device_fault))
    }
}

fn device_fault(error: DeviceError) -> RunError {
    match error {
        DeviceError::Fault(fault) => check_failed(&fault),
        other => RunError::other(other.to_string()),
    }
}

fn check_failed(fault: &rx_cuda::Fault) -> RunError {
    let site = fault.at.site;
    let what = match fault.at.check {
        Check::Index { buffer, axis } => {
            Fault::OutOfBounds { operator: site.operator, buffer, axis, index: fault.index, extent: fault.extent }
        }
        _ => Fault::Other(fault.to_string()),
    };
    RunError { origin: site.origin, fault: what }
}

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
