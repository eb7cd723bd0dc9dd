//! Runs kernels on a GPU through the CUDA driver.
//!
//! All work goes through one stream, so it runs in the order in which it is submitted. Launches are asynchronous; an
//! error of a kernel is reported by a later call, at the latest when a buffer is read or [`Device::synchronize`] is
//! called. [`Module::finish`] also reports checks that failed in kernels. Calls of the driver go through the trait
//! [`driver::Driver`], so that everything except these calls is tested without a device, by a mock driver
//! ([`mock_driver::MockDriver`]).
//!
//! - Freed memory stays in a pool for later allocations (`memory`).
//! - A sequence of several launches that repeats is usually captured as a CUDA graph and replayed (`queue`).
//! - After an error that invalidates the driver's context, or a kernel that exceeds the time limit, every call that
//!   needs the device returns [`DeviceError::Lost`] with that error's message. The process and the other devices
//!   continue to work.

mod core;
mod cudarc_driver;
pub mod driver;
mod error;
mod memory;
pub mod mock_driver;
mod queue;
mod staging;

#[cfg(test)]
mod tests;

use self::core::Core;
use crate::images::{self, Image, ImageCache};
use crate::source::{ArgumentValue, CudaSource, Launch, TensorMapValue};
use cudarc_driver::CudarcDriver;
pub(crate) use cudarc_driver::driver_version;
use driver::{Code, Driver, KernelHandle, KernelLaunch, MemInfo, Tensor};
pub use error::{DeviceError, Launched, MOST_NAMED};
pub use memory::DeviceBuffer;
use std::rc::Rc;
use std::time::Duration;

/// A GPU.
#[derive(Debug)]
pub struct Device {
    core: Rc<Core>,
}

impl Device {
    /// Opens the first device.
    ///
    /// # Errors
    /// If there is no driver or no device, if the first device is too old, or if the driver fails.
    pub fn probe() -> Result<Device, DeviceError> {
        Ok(Device::of(CudarcDriver::probe()?))
    }

    /// Creates a device on top of a driver.
    pub fn of(driver: impl Driver + 'static) -> Device {
        Device { core: Rc::new(Core::new(Box::new(driver))) }
    }

    /// Returns the name, for example `NVIDIA H200`.
    pub fn name(&self) -> &str {
        self.core.driver.name()
    }

    /// Returns the architecture: 90 for `sm_90`.
    pub fn arch(&self) -> u32 {
        self.core.driver.arch()
    }

    /// Returns the number of multiprocessors, or [`crate::rules::UNITS`] if it is not known.
    pub fn units(&self) -> u32 {
        self.core.driver.units()
    }

    /// Sets the time that the host waits for kernels before it reports the device as hung; `None` is no limit. The host
    /// cannot stop a kernel, so after that the device is lost. Some waits have no limit, for example that of a copy to
    /// the device when pinned memory cannot be allocated.
    pub fn limit(&self, limit: Option<Duration>) {
        self.core.limit.set(limit);
    }

    /// Returns the free and the total memory, if the driver reports them.
    pub fn mem_info(&self) -> Option<MemInfo> {
        self.core.driver.mem_info().ok()
    }

    /// Returns the peak of the total size of the blocks of device memory that buffers use, in bytes. Idle blocks of the
    /// pool do not count.
    pub fn peak_bytes(&self) -> u64 {
        self.core.pool.peak()
    }

    /// Returns the time that the device worked since the last call of this function, by the device's clock: the sum of
    /// the intervals from the first launch after the host waited for all work to the next such wait.
    pub fn busy(&self) -> Duration {
        self.core.busy.take()
    }

    /// Allocates a buffer with undefined contents.
    ///
    /// # Errors
    /// If the device does not have enough memory or is lost, if an earlier kernel failed or exceeded the time limit, or
    /// if the driver fails.
    pub fn allocate(&self, bytes: usize) -> Result<DeviceBuffer, DeviceError> {
        self.core.allocate(bytes)
    }

    /// Allocates several buffers with undefined contents in one block of device memory. The block returns to the pool
    /// with the last of them.
    ///
    /// # Errors
    /// If the device does not have enough memory or is lost, if an earlier kernel failed or exceeded the time limit, or
    /// if the driver fails.
    pub fn allocate_together(&self, sizes: &[usize]) -> Result<Vec<DeviceBuffer>, DeviceError> {
        self.core.allocate_together(sizes)
    }

    /// Copies bytes of the host to a new buffer.
    ///
    /// # Errors
    /// If the device does not have enough memory or is lost, if an earlier kernel failed or exceeded the time limit, or
    /// if the driver fails.
    pub fn upload(&self, bytes: &[u8]) -> Result<DeviceBuffer, DeviceError> {
        let buffer = self.allocate(bytes.len())?;
        if !bytes.is_empty() {
            self.core.copy_to_device(bytes, &buffer)?;
        }
        Ok(buffer)
    }

    /// Copies a buffer to the host, after all work that was submitted before.
    ///
    /// # Errors
    /// If a kernel that was submitted before failed or exceeded the time limit, if the device is lost, or if the copy
    /// fails.
    pub fn download(&self, buffer: &DeviceBuffer) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = vec![0; buffer.bytes()];
        self.core.copy_to_host(buffer, &mut bytes)?;
        Ok(bytes)
    }

    /// Waits for all submitted work.
    ///
    /// # Errors
    /// If a kernel failed or exceeded the time limit, if the device is lost, or if the driver fails.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.core.wait()
    }

    /// Measures the time from before to after the work that `work` submits, by the device's clock, in milliseconds.
    ///
    /// # Errors
    /// The errors of `work`, of kernels and of the driver.
    pub fn milliseconds(&self, work: impl FnOnce() -> Result<(), DeviceError>) -> Result<f32, DeviceError> {
        let event = || {
            self.core.flush()?;
            self.core.driver.record_event().map_err(|refused| self.core.failed("recording an event", refused))
        };
        let before = event()?;
        let after = work().and_then(|()| event()).and_then(|after| self.core.wait().map(|()| after));
        let time = after.and_then(|after| {
            let time = self.core.driver.milliseconds(before, after);
            self.core.driver.forget(after);
            time.map_err(|failure| self.core.failed("reading the time between two events", failure))
        });
        self.core.driver.forget(before);
        time
    }

    /// Compiles the kernels that are not in `cache` for this device, and loads all of them. `progress` is called as by
    /// [`images::compile`].
    ///
    /// # Errors
    /// The errors of [`images::compile`] and [`Device::load_images`].
    pub fn load(
        &self,
        source: CudaSource,
        cache: &ImageCache,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Module, DeviceError> {
        let images = images::compile(&source, self.arch(), cache, progress)?;
        self.load_images(source, &images)
    }

    /// Loads compiled kernels: the result of [`images::compile`] for the source and this device.
    ///
    /// # Errors
    /// If the driver rejects the code or does not find a kernel in it, if a kernel of the source is in no image, if the
    /// device is lost or has not enough memory, or if an earlier kernel failed or exceeded the time limit.
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
            operation: "loading the kernels",
            message: "no image contains the kernel".to_owned(),
        })?;
        let cell = self.upload(&[0; CELL_BYTES])?;
        Ok(Module { core: self.core.clone(), source, codes, kernels, cell })
    }
}

/// The size in bytes of the error cell: three 64-bit integers, which are the number of the check plus 1, the index and
/// the extent.
const CELL_BYTES: usize = 24;

/// Loaded kernels of a device.
#[derive(Debug)]
pub struct Module {
    core: Rc<Core>,
    source: CudaSource,
    codes: Vec<Code>,
    /// The handles, by the indices of the function and of the kernel in it.
    kernels: Vec<Vec<KernelHandle>>,
    cell: DeviceBuffer,
}

impl Module {
    /// Returns the source of the kernels.
    pub fn source(&self) -> &CudaSource {
        &self.source
    }

    /// Launches the kernels of a function. `buffers` are the buffer parameters, outputs included; `values` are those of
    /// [`crate::CudaFunction::plan`]. Does not wait for the kernels: [`Module::finish`] reports whether they succeeded.
    ///
    /// # Errors
    /// If there is no such function, if the arguments do not match it, if the launches cannot be planned, if the driver
    /// rejects a launch, if the device is lost or has not enough memory, or if an earlier kernel failed or exceeded the
    /// time limit.
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
        // Accesses are proved or checked to be within these extents, so the buffers must have at least these sizes.
        let fits =
            passed.len() == plan.buffers.len() && passed.iter().zip(&plan.buffers).all(|(have, need)| have >= need);
        if !fits {
            let message = format!("{} takes buffers of {:?} bytes, {passed:?} are passed", info.name, plan.buffers);
            return Err(DeviceError::Buffer(message));
        }
        let temporaries = plan
            .temporaries
            .iter()
            .map(|bytes| {
                let bytes =
                    usize::try_from(*bytes).map_err(|_| DeviceError::Memory { bytes: *bytes, mem_info: None })?;
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
        // The temporaries return to the pool now: work that reuses them is submitted to the same stream, so it runs
        // after these launches.
        Ok(())
    }

    /// Returns the launch with the addresses of buffers and the values of scalars.
    fn arguments(
        &self,
        kernel: KernelHandle,
        launch: &Launch,
        buffers: &[&DeviceBuffer],
        temporaries: &[DeviceBuffer],
    ) -> Result<KernelLaunch, DeviceError> {
        let pointer = |buffer: Option<&DeviceBuffer>| {
            let missing = || DeviceError::Buffer("a buffer that a kernel takes was not allocated".to_owned());
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

    /// Waits for all submitted work, and resets the error cell if a check failed.
    ///
    /// # Errors
    /// [`DeviceError::Fault`] with the check that failed first, or an error of a kernel or of the driver.
    pub fn finish(&self) -> Result<(), DeviceError> {
        let mut bytes = [0; CELL_BYTES];
        self.core.copy_to_host(&self.cell, &mut bytes)?;
        let word =
            |at: usize| bytes.iter().skip(8 * at).take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let Some(fault) = self.source.fault([word(0), word(1), word(2)]) else { return Ok(()) };
        self.core.clear(&self.cell)?;
        Err(DeviceError::Fault(fault))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // Kernels must have ended before their code is unloaded. On a lost device it stays loaded.
        if self.core.wait().is_ok() {
            self.codes.iter().for_each(|code| self.core.driver.unload(*code));
        }
    }
}
