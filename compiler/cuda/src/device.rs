//! Running the kernels on a GPU, through the driver.
//!
//! Everything goes through one stream, so it happens in the order it is asked for. Launches do not wait; errors of kernels
//! show when a buffer is read or [`Module::finish`] is called.
#![allow(unsafe_code)]

use crate::images::{self, Image, Kept};
use crate::nvrtc::NvrtcError;
use crate::source::{ArgumentValue, CudaSource, Fault, Launch, PlanError};
use cudarc::driver::sys::{CUevent_flags, CUfunction_attribute, CUresult};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What goes wrong with a device.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceError {
    /// The driver's library is not there.
    NoDriver,
    /// The driver has no device.
    NoDevice,
    /// The driver's answer to something.
    Driver {
        /// What was asked.
        what: &'static str,
        /// Its answer.
        message: String,
    },
    /// Memory that the device has not.
    Memory {
        /// How many bytes were wanted.
        bytes: u64,
    },
    /// The kernels are not compiled.
    Nvrtc(NvrtcError),
    /// A call cannot be launched.
    Plan(PlanError),
    /// A call passes another number of buffers, or one of another size.
    Buffer(String),
    /// A check in a kernel failed.
    Fault(Fault),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::NoDriver => f.write_str("no CUDA driver: libcuda is not found"),
            DeviceError::NoDevice => f.write_str("the CUDA driver has no device"),
            DeviceError::Driver { what, message } => write!(f, "CUDA: {what}: {message}"),
            DeviceError::Memory { bytes } => write!(f, "the device has no {bytes} bytes of memory left"),
            DeviceError::Nvrtc(error) => error.fmt(f),
            DeviceError::Plan(error) => error.fmt(f),
            DeviceError::Buffer(what) => f.write_str(what),
            DeviceError::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for DeviceError {}

impl From<NvrtcError> for DeviceError {
    fn from(error: NvrtcError) -> DeviceError {
        DeviceError::Nvrtc(error)
    }
}

impl From<PlanError> for DeviceError {
    fn from(error: PlanError) -> DeviceError {
        DeviceError::Plan(error)
    }
}

fn failed(what: &'static str) -> impl Fn(DriverError) -> DeviceError {
    move |error| DeviceError::Driver { what, message: error.to_string() }
}

/// A GPU.
#[derive(Debug)]
pub struct Device {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    name: String,
    arch: u32,
}

/// Memory of a device.
#[derive(Debug)]
pub struct DeviceBuffer {
    slice: CudaSlice<u8>,
    bytes: usize,
}

impl DeviceBuffer {
    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Device {
    /// The first device.
    ///
    /// # Errors
    /// What is missing.
    pub fn probe() -> Result<Device, DeviceError> {
        // SAFETY: loads the driver's library by its own names, and nothing else.
        let is_present = catch_unwind(|| unsafe { cudarc::driver::sys::is_culib_present() });
        if !is_present.unwrap_or(false) {
            return Err(DeviceError::NoDriver);
        }
        // The library looks up functions when they are first called, and panics where a driver is too old to have one.
        catch_unwind(AssertUnwindSafe(Device::open)).unwrap_or(Err(DeviceError::Driver {
            what: "opening the device",
            message: "the driver has not all functions that are needed".to_owned(),
        }))
    }

    fn open() -> Result<Device, DeviceError> {
        let count = match CudaContext::device_count() {
            Ok(count) => count,
            Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => 0,
            Err(error) => return Err(failed("counting devices")(error)),
        };
        if count < 1 {
            return Err(DeviceError::NoDevice);
        }
        let context = CudaContext::new(0).map_err(failed("opening the device"))?;
        // SAFETY: events order work of different streams; all of this context's goes through one.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(failed("making a stream"))?;
        let name = context.name().map_err(failed("asking for the device's name"))?;
        let (major, minor) = context.compute_capability().map_err(failed("asking for the compute capability"))?;
        let arch = u32::try_from(major * 10 + minor).unwrap_or(0);
        Ok(Device { context, stream, name, arch })
    }

    /// Its name: `NVIDIA H200`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of its architecture: 90 for `sm_90`.
    pub fn arch(&self) -> u32 {
        self.arch
    }

    /// Memory whose contents are undefined.
    ///
    /// # Errors
    /// Where the device has not as much.
    pub fn allocate(&self, bytes: usize) -> Result<DeviceBuffer, DeviceError> {
        // The driver makes no buffer of 0 bytes.
        // SAFETY: bytes have no invalid values; the host reads none before a kernel or copy wrote it, or reads garbage.
        let slice = unsafe { self.stream.alloc::<u8>(bytes.max(1)) }.map_err(|error| match error {
            DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => DeviceError::Memory { bytes: bytes as u64 },
            error => failed("allocating memory")(error),
        })?;
        Ok(DeviceBuffer { slice, bytes })
    }

    /// A copy of the host's bytes.
    ///
    /// # Errors
    /// Where the device has not as much memory.
    pub fn upload(&self, bytes: &[u8]) -> Result<DeviceBuffer, DeviceError> {
        let mut buffer = self.allocate(bytes.len())?;
        if !bytes.is_empty() {
            self.stream.memcpy_htod(bytes, &mut buffer.slice).map_err(failed("copying to the device"))?;
        }
        Ok(buffer)
    }

    /// The bytes of a buffer, after all that was asked for before.
    ///
    /// # Errors
    /// Where a kernel before failed.
    pub fn download(&self, buffer: &DeviceBuffer) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = self.stream.clone_dtoh(&buffer.slice).map_err(failed("copying from the device"))?;
        self.synchronize()?;
        bytes.truncate(buffer.bytes);
        Ok(bytes)
    }

    /// Waits for all that was asked for.
    ///
    /// # Errors
    /// Where a kernel failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.stream.synchronize().map_err(failed("waiting for the device"))
    }

    /// How many milliseconds the device needed for what `work` asks for.
    ///
    /// # Errors
    /// `work`'s, and the driver's.
    pub fn milliseconds(&self, work: impl FnOnce() -> Result<(), DeviceError>) -> Result<f32, DeviceError> {
        let timed = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let before = self.stream.record_event(timed).map_err(failed("recording an event"))?;
        work()?;
        let after = self.stream.record_event(timed).map_err(failed("recording an event"))?;
        before.elapsed_ms(&after).map_err(failed("waiting for the device"))
    }

    /// Compiles kernels for this device, those that are not kept, and loads them. `progress` is told how many parts are
    /// compiled, of how many.
    ///
    /// # Errors
    /// Where NVRTC is not found or refuses the text, or the driver the code.
    pub fn load(
        &self,
        source: CudaSource,
        kept: &Kept,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Module<'_>, DeviceError> {
        let images = images::compile(&source, self.arch, kept, progress)?;
        self.load_images(source, images)
    }

    /// Loads kernels compiled before: [`images::compile`] of the source for this device.
    ///
    /// # Errors
    /// Where the driver refuses the code, or a kernel is in no image.
    pub fn load_images(&self, source: CudaSource, images: Vec<Image>) -> Result<Module<'_>, DeviceError> {
        let mut kernels: Vec<Vec<Option<CudaFunction>>> =
            source.functions.iter().map(|function| vec![None; function.kernels.len()]).collect();
        for image in images {
            let loaded =
                self.context.load_module(Ptx::from_binary(image.code)).map_err(failed("loading the kernels"))?;
            for (function, number) in image.kernels {
                let info = source.functions.get(function).and_then(|function| function.kernels.get(number));
                let slot = kernels.get_mut(function).and_then(|kernels| kernels.get_mut(number));
                let (Some(info), Some(slot)) = (info, slot) else { continue };
                let kernel = loaded.load_function(&info.name).map_err(failed("finding a kernel"))?;
                allow_shared(&kernel, info.shape.shared_bytes)?;
                *slot = Some(kernel);
            }
        }
        let all = |kernels: Vec<Option<CudaFunction>>| kernels.into_iter().collect::<Option<Vec<_>>>();
        let kernels = kernels.into_iter().map(all).collect::<Option<Vec<_>>>().ok_or_else(|| DeviceError::Driver {
            what: "loading the kernels",
            message: "a kernel is in no image".to_owned(),
        })?;
        let cell = RefCell::new(self.upload(&[0; CELL_BYTES])?);
        Ok(Module { device: self, source, kernels, cell })
    }
}

/// A kernel may have more shared memory than every device gives unasked only where that is said before.
fn allow_shared(function: &CudaFunction, bytes: u32) -> Result<(), DeviceError> {
    const UNASKED: u32 = 48 << 10;
    if bytes <= UNASKED {
        return Ok(());
    }
    let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    function.set_attribute(most, bytes.cast_signed()).map_err(failed("asking for shared memory"))
}

/// Bytes of the error cell: three numbers.
const CELL_BYTES: usize = 24;

/// Kernels on a device.
#[derive(Debug)]
pub struct Module<'d> {
    device: &'d Device,
    source: CudaSource,
    /// By function and kernel.
    kernels: Vec<Vec<CudaFunction>>,
    cell: RefCell<DeviceBuffer>,
}

impl Module<'_> {
    /// What was loaded.
    pub fn source(&self) -> &CudaSource {
        &self.source
    }

    /// Launches a function's kernels: buffers as its buffer parameters, outputs too; values as
    /// [`crate::CudaFunction::plan`] takes them. Does not wait: [`Module::finish`] says whether all went well.
    ///
    /// # Errors
    /// Where the call does not fit the function, or a launch is refused.
    pub fn launch(
        &self,
        function: usize,
        buffers: &[&DeviceBuffer],
        values: &[Option<i64>],
    ) -> Result<(), DeviceError> {
        let (Some(info), Some(kernels)) = (self.source.functions.get(function), self.kernels.get(function)) else {
            return Err(DeviceError::Buffer(format!("there is no function {function}")));
        };
        let plan = info.plan(values)?;
        let passed: Vec<u64> = buffers.iter().map(|buffer| buffer.bytes as u64).collect();
        // What kernels access was proved or is checked against these extents; so buffers must have at least these bytes.
        let fits =
            passed.len() == plan.buffers.len() && passed.iter().zip(&plan.buffers).all(|(have, need)| have >= need);
        if !fits {
            let what = format!("{} takes buffers of {:?} bytes, {passed:?} are passed", info.name, plan.buffers);
            return Err(DeviceError::Buffer(what));
        }
        let temporaries = plan
            .temporaries
            .iter()
            .map(|bytes| {
                let bytes = usize::try_from(*bytes).map_err(|_| DeviceError::Memory { bytes: *bytes })?;
                self.device.allocate(bytes)
            })
            .collect::<Result<Vec<_>, _>>()?;
        for launch in &plan.launches {
            if let Some(kernel) = kernels.get(launch.kernel) {
                self.launch_kernel(kernel, launch, buffers, &temporaries)?;
            }
        }
        // Temporaries are freed behind the kernels: by the stream, or after waiting for it where the device cannot.
        if !temporaries.is_empty() && !self.device.context.has_async_alloc() {
            self.device.synchronize()?;
        }
        Ok(())
    }

    fn launch_kernel(
        &self,
        kernel: &CudaFunction,
        launch: &Launch,
        buffers: &[&DeviceBuffer],
        temporaries: &[DeviceBuffer],
    ) -> Result<(), DeviceError> {
        let cell = self.cell.borrow();
        let pointer = |buffer: Option<&DeviceBuffer>| {
            let buffer =
                buffer.ok_or_else(|| DeviceError::Buffer("a kernel takes a buffer that is not there".to_owned()))?;
            Ok::<u64, DeviceError>(buffer.slice.device_ptr(&self.device.stream).0)
        };
        let arguments = launch
            .arguments
            .iter()
            .map(|argument| match *argument {
                ArgumentValue::Buffer(at) => pointer(buffers.get(at).copied()),
                ArgumentValue::Temporary(at) => pointer(temporaries.get(at)),
                ArgumentValue::Error => pointer(Some(&cell)),
                ArgumentValue::Scalar(value) => Ok(value.cast_unsigned()),
            })
            .collect::<Result<Vec<u64>, _>>()?;
        let mut builder = self.device.stream.launch_builder(kernel);
        for argument in &arguments {
            builder.arg(argument);
        }
        let [grid, block] = [launch.grid, launch.block].map(|[x, y, z]| (x, y, z));
        let config = LaunchConfig { grid_dim: grid, block_dim: block, shared_mem_bytes: launch.shared_bytes };
        // SAFETY: the arguments are the printed kernel's, in its order: pointers are of 8 bytes, and of a scalar the driver
        // reads the low bytes that its type has. Buffers have the sizes the kernel was printed for, as checked by the
        // caller, live until the stream has passed this launch, and are written by nobody else meanwhile.
        unsafe { builder.launch(config) }.map_err(failed("launching a kernel"))?;
        Ok(())
    }

    /// Waits for the launches, and says which check of a kernel failed first, if one did.
    ///
    /// # Errors
    /// The failed check, or the driver's error.
    pub fn finish(&self) -> Result<(), DeviceError> {
        let mut cell = self.cell.borrow_mut();
        let bytes = self.device.download(&cell)?;
        let word =
            |at: usize| bytes.iter().skip(8 * at).take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let Some(fault) = self.source.fault([word(0), word(1), word(2)]) else { return Ok(()) };
        self.device.stream.memset_zeros(&mut cell.slice).map_err(failed("clearing the error cell"))?;
        Err(DeviceError::Fault(fault))
    }
}

#[cfg(test)]
mod tests {
    use super::{Device, DeviceError};

    #[test]
    fn probing_gives_a_device_or_says_what_is_missing() {
        match Device::probe() {
            Ok(device) => assert!(device.arch() >= 50, "{}", device.name()),
            Err(DeviceError::NoDriver | DeviceError::NoDevice | DeviceError::Driver { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
