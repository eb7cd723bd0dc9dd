//! Kernels on a CUDA device.

use super::{Functions, check_failed, not_built, source};
use crate::backend::{Backend, KernelCall, Stage};
use crate::error::{BuildError, RunError};
use crate::fuel::Fuel;
use crate::memory::{Memory, typed};
use rx_base::DType;
use rx_cuda::CudaSource;
use rx_cuda::device::{Device, DeviceBuffer, DeviceError, Module};
use rx_cuda::images::{self, Image, ImageCache};
use rx_cuda::nvrtc::NvrtcError;
use rx_cuda::rules::{RuleOrder, Target};
use rx_lower::{Program, TargetInfo};
use rx_tensor::Tensor;
use std::rc::Rc;
use std::time::Duration;

/// Compiles CUDA C to machine code for an architecture. The callback receives the number of compiled parts and their
/// total number.
type Compile = fn(&CudaSource, u32, &mut dyn FnMut(usize, usize)) -> Result<Vec<Image>, NvrtcError>;

/// A CUDA device.
pub struct Cuda {
    device: Rc<Device>,
    target: Target,
    compile: Compile,
    module: Option<Module>,
    functions: Functions,
}

/// The limit that [`Cuda::probe`] sets on the time that kernels may take before the device is considered hung.
const TIME_LIMIT: Duration = Duration::from_secs(600);

impl Cuda {
    /// Returns the target that kernels are generated for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Opens the first device.
    ///
    /// # Errors
    /// If there is no driver or no device, if the first device is too old, or if the driver fails. A missing NVRTC is
    /// found only in [`Backend::build`].
    pub fn probe() -> Result<Cuda, DeviceError> {
        let device = Device::probe()?;
        device.limit(Some(TIME_LIMIT));
        // Closing the driver would wait for kernels of a device that was given up. Leak a reference, so that the driver
        // stays open until the process ends.
        let device = Rc::new(device);
        std::mem::forget(device.clone());
        Ok(Cuda::of(device, |source, arch, progress| images::compile(source, arch, &ImageCache::of_user(), progress)))
    }

    /// Creates a backend for a device and a compiler of CUDA C.
    pub fn of(device: Rc<Device>, compile: Compile) -> Cuda {
        let target = Target { arch: device.arch(), units: device.units(), ..Target::default() };
        Cuda { device, target, compile, module: None, functions: Functions::default() }
    }

    /// Sets the order of the schedule rules.
    #[must_use]
    pub fn with_rules(mut self, rules: RuleOrder) -> Cuda {
        self.target.rules = rules;
        self
    }

    /// Sets whether products of `float32` may round their operands to tf32 ([`Target::tf32`]).
    #[must_use]
    pub fn with_tf32(mut self, tf32: bool) -> Cuda {
        self.target.tf32 = tf32;
        self
    }

    /// Sets how long kernels may take before the device is given up. [`Cuda::probe`] sets ten minutes.
    #[must_use]
    pub fn within(self, limit: Duration) -> Cuda {
        self.device.limit(Some(limit));
        self
    }

    /// Returns the device's name.
    pub fn name(&self) -> &str {
        self.device.name()
    }
}

impl Backend for Cuda {
    type Memory = DeviceBuffer;

    fn target_info(&self) -> &dyn TargetInfo {
        &self.target
    }

    fn new_instance(&self) -> Cuda {
        Cuda { target: self.target.clone(), ..Cuda::of(self.device.clone(), self.compile) }
    }

    fn build(&mut self, program: &Program, progress: &mut dyn FnMut(Stage)) -> Result<(), BuildError> {
        let (source, functions) = source(program, &self.target)?;
        let total = functions.funcs.len();
        // The compiler counts parts of one or more kernels; convert the numbers to kernels.
        let mut reported = |done: usize, of: usize| progress(Stage { done: total * done / of.max(1), total });
        let images = (self.compile)(&source, self.device.arch(), &mut reported)
            .map_err(|error| not_built(DeviceError::from(error)))?;
        self.module = Some(self.device.load_images(source, &images).map_err(not_built)?);
        self.functions = functions;
        Ok(())
    }

    fn run(&mut self, call: KernelCall<'_, DeviceBuffer>, fuel: &mut Fuel) -> Result<(), RunError> {
        let KernelCall { kernel, inputs, outputs, scalars } = call;
        let Some(module) = &self.module else { return Err(RunError::other("the program was not built")) };
        let shapes: Vec<&[i64]> =
            inputs.iter().map(|input| input.shape).chain(outputs.iter().map(|output| output.1.as_slice())).collect();
        let (function, values) = self.functions.call(kernel, &shapes, scalars, fuel)?;
        let buffers: Vec<&DeviceBuffer> =
            inputs.iter().map(|input| input.memory).chain(outputs.iter().map(|output| &output.0)).collect();
        module.launch(function, &buffers, &values).map_err(device_fault)
    }

    fn busy(&mut self) -> Option<Duration> {
        Some(self.device.busy())
    }

    fn peak_bytes(&self) -> Option<u64> {
        Some(self.device.peak_bytes())
    }

    fn finish(&mut self) -> Result<(), RunError> {
        self.module.as_ref().map_or(Ok(()), |module| module.finish().map_err(device_fault))
    }
}

impl Memory<Cuda> for DeviceBuffer {
    const IS_HOST: bool = false;

    fn allocate(cuda: &mut Cuda, bytes: usize) -> Result<DeviceBuffer, RunError> {
        cuda.device.allocate(bytes).map_err(device_fault)
    }

    fn allocate_together(cuda: &mut Cuda, sizes: &[usize]) -> Result<Option<Vec<DeviceBuffer>>, RunError> {
        match cuda.device.allocate_together(sizes) {
            Ok(parts) => Ok(Some(parts)),
            // The device has too little memory for all blocks at once. The caller then allocates each block when it
            // needs it, which may still succeed.
            Err(DeviceError::Memory { .. }) => Ok(None),
            Err(other) => Err(device_fault(other)),
        }
    }

    fn upload(cuda: &mut Cuda, tensor: &Tensor) -> Result<DeviceBuffer, RunError> {
        cuda.device.upload(tensor.bytes()).map_err(device_fault)
    }

    fn download(&self, cuda: &mut Cuda, dtype: DType, shape: &[i64]) -> Result<Tensor, RunError> {
        typed(&cuda.device.download(self).map_err(device_fault)?, dtype, shape)
    }
}

fn device_fault(error: DeviceError) -> RunError {
    match error {
        DeviceError::Fault(fault) => check_failed(&fault),
        other => {
            let origin = other.kernel().and_then(|kernel| kernel.origin);
            RunError { origin, ..RunError::other(other.to_string()) }
        }
    }
}
