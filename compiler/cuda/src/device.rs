//! Running the kernels on a GPU, through the driver.
//!
//! Everything goes through one stream, so it happens in the order it is asked for. Launches do not wait; errors of kernels
//! show when a buffer is read or [`Module::finish`] is called. What is asked of the driver is a trait ([`driver::Driver`]), so that all but
//! the calls themselves is tested without a device ([`recorder::Recorder`]).
//!
//! - Memory that nobody needs any more is kept for the next who asks (`memory`).
//! - A sequence of launches that repeats is captured once as a CUDA graph and replayed (`queue`).
//! - After a failure that ends the driver's context every call says so at once; the process and the CPU are as usable as before.

mod core;
pub mod driver;
mod error;
mod live;
mod memory;
mod queue;
pub mod recorder;
mod staging;

#[cfg(test)]
mod tests;

use self::core::Core;
use crate::images::{self, Image, Kept};
use crate::source::{ArgumentValue, CudaSource, Launch, TensorMapValue};
use driver::{Code, Driver, KernelHandle, KernelLaunch, Room, Tensor};
pub use error::{DeviceError, Launched, MOST_NAMED};
use live::Live;
pub(crate) use live::driver_version;
pub use memory::DeviceBuffer;
use std::rc::Rc;
use std::time::Duration;

/// A GPU.
#[derive(Debug)]
pub struct Device {
    core: Rc<Core>,
}

impl Device {
    /// The first device.
    ///
    /// # Errors
    /// What is missing.
    pub fn probe() -> Result<Device, DeviceError> {
        Ok(Device::of(Live::probe()?))
    }

    /// The device of a driver.
    pub fn of(driver: impl Driver + 'static) -> Device {
        Device { core: Rc::new(Core::new(Box::new(driver))) }
    }

    /// Its name: `NVIDIA H200`.
    pub fn name(&self) -> &str {
        self.core.driver.name()
    }

    /// The number of its architecture: 90 for `sm_90`.
    pub fn arch(&self) -> u32 {
        self.core.driver.arch()
    }

    /// How many multiprocessors it has.
    pub fn units(&self) -> u32 {
        self.core.driver.units()
    }

    /// How long the host waits for kernels before it gives the device up; without a limit it waits for ever. A kernel cannot be stopped
    /// from outside, so nothing runs on the device after that, in this process.
    pub fn limit(&self, limit: Option<Duration>) {
        self.core.limit.set(limit);
    }

    /// How much memory there is, where the driver says it.
    pub fn room(&self) -> Option<Room> {
        self.core.driver.room().ok()
    }

    /// The most bytes of its memory that were needed at the same time.
    pub fn peak_bytes(&self) -> u64 {
        self.core.pool.peak()
    }

    /// How long the device worked since this was asked last, by its own clock: from the first launch to where the host waited, each time.
    pub fn busy(&self) -> Duration {
        self.core.busy.take()
    }

    /// Memory whose contents are undefined.
    ///
    /// # Errors
    /// Where the device has not as much.
    pub fn allocate(&self, bytes: usize) -> Result<DeviceBuffer, DeviceError> {
        self.core.allocate(bytes)
    }

    /// Memory of several sizes whose contents are undefined, in one block of the device's; it is kept as long as one of them is.
    ///
    /// # Errors
    /// Where the device has not as much.
    pub fn allocate_together(&self, sizes: &[usize]) -> Result<Vec<DeviceBuffer>, DeviceError> {
        self.core.allocate_together(sizes)
    }

    /// A copy of the host's bytes.
    ///
    /// # Errors
    /// Where the device has not as much memory.
    pub fn upload(&self, bytes: &[u8]) -> Result<DeviceBuffer, DeviceError> {
        let buffer = self.allocate(bytes.len())?;
        if !bytes.is_empty() {
            self.core.copy_up(bytes, &buffer)?;
        }
        Ok(buffer)
    }

    /// The bytes of a buffer, after all that was asked for before.
    ///
    /// # Errors
    /// Where a kernel before failed.
    pub fn download(&self, buffer: &DeviceBuffer) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = vec![0; buffer.bytes()];
        self.core.copy_down(buffer, &mut bytes)?;
        Ok(bytes)
    }

    /// Waits for all that was asked for.
    ///
    /// # Errors
    /// Where a kernel failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.core.wait()
    }

    /// How many milliseconds the device needed for what `work` asks for.
    ///
    /// # Errors
    /// `work`'s, and the driver's.
    pub fn milliseconds(&self, work: impl FnOnce() -> Result<(), DeviceError>) -> Result<f32, DeviceError> {
        let mark = || {
            self.core.flush()?;
            self.core.driver.mark().map_err(|refused| self.core.failed("recording an event", refused))
        };
        let before = mark()?;
        work()?;
        let after = mark()?;
        self.core.wait()?;
        let time = self.core.driver.milliseconds(before, after);
        self.core.driver.forget(before);
        self.core.driver.forget(after);
        time.map_err(|refused| self.core.failed("asking for a time", refused))
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
    ) -> Result<Module, DeviceError> {
        let images = images::compile(&source, self.arch(), kept, progress)?;
        self.load_images(source, &images)
    }

    /// Loads kernels compiled before: [`images::compile`] of the source for this device.
    ///
    /// # Errors
    /// Where the driver refuses the code, or a kernel is in no image.
    pub fn load_images(&self, source: CudaSource, images: &[Image]) -> Result<Module, DeviceError> {
        let driver = &*self.core.driver;
        self.core.works()?;
        let mut kernels: Vec<Vec<Option<KernelHandle>>> =
            source.functions.iter().map(|function| vec![None; function.kernels.len()]).collect();
        let mut codes = Vec::new();
        for image in images {
            let code = driver.load(&image.code).map_err(|refused| self.core.failed("loading the kernels", refused))?;
            codes.push(code);
            for (function, number) in &image.kernels {
                let info = source.functions.get(*function).and_then(|function| function.kernels.get(*number));
                let slot = kernels.get_mut(*function).and_then(|kernels| kernels.get_mut(*number));
                let (Some(info), Some(slot)) = (info, slot) else { continue };
                let kernel = driver.kernel(code, &info.name, info.shape.shared_bytes);
                *slot = Some(kernel.map_err(|refused| self.core.failed("finding a kernel", refused))?);
            }
        }
        let all = |kernels: Vec<Option<KernelHandle>>| kernels.into_iter().collect::<Option<Vec<_>>>();
        let kernels = kernels.into_iter().map(all).collect::<Option<Vec<_>>>().ok_or_else(|| DeviceError::Driver {
            what: "loading the kernels",
            message: "a kernel is in no image".to_owned(),
        })?;
        let cell = self.upload(&[0; CELL_BYTES])?;
        Ok(Module { core: self.core.clone(), source, codes, kernels, cell })
    }
}

/// Bytes of the error cell: three numbers.
const CELL_BYTES: usize = 24;

/// Kernels on a device.
#[derive(Debug)]
pub struct Module {
    core: Rc<Core>,
    source: CudaSource,
    codes: Vec<Code>,
    /// By function and kernel.
    kernels: Vec<Vec<KernelHandle>>,
    cell: DeviceBuffer,
}

impl Module {
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
        let passed: Vec<u64> = buffers.iter().map(|buffer| buffer.bytes() as u64).collect();
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
                let bytes = usize::try_from(*bytes).map_err(|_| DeviceError::Memory { bytes: *bytes, room: None })?;
                self.core.allocate(bytes)
            })
            .collect::<Result<Vec<_>, _>>()?;
        for launch in &plan.launches {
            if let (Some(kernel), Some(named)) = (kernels.get(launch.kernel), info.kernels.get(launch.kernel)) {
                let launch = self.arguments(*kernel, launch, buffers, &temporaries)?;
                let name = named.name.clone();
                let of = Launched { kernel: name, function: info.name, origin: info.origins.first().copied() };
                self.core.launch(launch, of)?;
            }
        }
        // The temporaries are for others from here on: what those ask for comes behind these launches.
        Ok(())
    }

    fn arguments(
        &self,
        kernel: KernelHandle,
        launch: &Launch,
        buffers: &[&DeviceBuffer],
        temporaries: &[DeviceBuffer],
    ) -> Result<KernelLaunch, DeviceError> {
        let pointer = |buffer: Option<&DeviceBuffer>| {
            let missing = || DeviceError::Buffer("a kernel takes a buffer that is not there".to_owned());
            buffer.map(DeviceBuffer::address).ok_or_else(missing)
        };
        let value = |argument: ArgumentValue| match argument {
            ArgumentValue::Buffer(at) => pointer(buffers.get(at).copied()),
            ArgumentValue::Temporary(at) => pointer(temporaries.get(at)),
            ArgumentValue::Error => Ok(self.cell.address()),
            ArgumentValue::Scalar(value) => Ok(value.cast_unsigned()),
        };
        let arguments = launch.arguments.iter().map(|argument| value(*argument)).collect::<Result<Vec<u64>, _>>()?;
        let tensor = |map: &TensorMapValue| Ok(Tensor { at: value(map.buffer)? + map.offset, form: map.form.clone() });
        let tensors = launch.maps.iter().map(tensor).collect::<Result<Vec<_>, DeviceError>>()?;
        let Launch { grid, block, shared_bytes, .. } = *launch;
        Ok(KernelLaunch { kernel, grid, block, shared_bytes, arguments, tensors })
    }

    /// Waits for the launches, and says which check of a kernel failed first, if one did.
    ///
    /// # Errors
    /// The failed check, or the driver's error.
    pub fn finish(&self) -> Result<(), DeviceError> {
        let mut bytes = [0; CELL_BYTES];
        self.core.copy_down(&self.cell, &mut bytes)?;
        let word =
            |at: usize| bytes.iter().skip(8 * at).take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let Some(fault) = self.source.fault([word(0), word(1), word(2)]) else { return Ok(()) };
        self.core.clear(&self.cell)?;
        Err(DeviceError::Fault(fault))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // What was launched runs to its end before its code goes. A device that is lost has nothing to go.
        if self.core.wait().is_ok() {
            self.codes.iter().for_each(|code| self.core.driver.unload(*code));
        }
    }
}
