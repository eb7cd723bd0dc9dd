//! The state that buffers and modules of a device share: the driver, the memory pool, pending launches and the error of
//! a lost device.

use super::driver::{Driver, DriverFailure, DriverFailureKind, KernelLaunch};
use super::error::{DeviceError, Launched, MOST_NAMED};
use super::memory::{Block, DeviceBuffer, Pool, arena, size_of};
use super::queue::Queue;
use super::staging::Staging;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Core {
    pub(super) driver: Box<dyn Driver>,
    pub(super) pool: Pool,
    queue: RefCell<Queue>,
    staging: RefCell<Staging>,
    /// The last [`MOST_NAMED`] kernels launched since the last [`Core::wait`], for the error message if one fails.
    /// Consecutive launches of one kernel are one entry.
    running: RefCell<VecDeque<Launched>>,
    /// The message of the error after which the device is lost; `None` if it is not lost.
    lost: RefCell<Option<String>>,
    /// The time that the host waits for kernels before it gives up; `None` is no limit.
    pub(super) limit: Cell<Option<Duration>>,
    /// The result of the next call of [`super::Device::busy`]. Each successful [`Core::wait`] adds the time since the
    /// first launch after the previous wait, if there was one.
    pub(super) busy: Cell<Duration>,
}

impl Core {
    pub(super) fn new(driver: Box<dyn Driver>) -> Core {
        Core {
            driver,
            pool: Pool::default(),
            queue: RefCell::default(),
            staging: RefCell::default(),
            running: RefCell::default(),
            lost: RefCell::default(),
            limit: Cell::default(),
            busy: Cell::default(),
        }
    }

    /// Converts a driver error; `operation` is the one that failed. Records the error if the device is lost.
    pub(super) fn failed(&self, operation: &'static str, refused: DriverFailure) -> DeviceError {
        match refused.kind {
            DriverFailureKind::Lost => {
                let kernels = self.running.take().into();
                self.is_lost(DeviceError::Failed { kernels, message: refused.message })
            }
            DriverFailureKind::TooLong => {
                let kernels = self.running.take().into();
                self.is_lost(DeviceError::TooLong { kernels, limit: self.limit.get().unwrap_or_default() })
            }
            DriverFailureKind::Memory => DeviceError::Memory { bytes: 0, mem_info: self.driver.mem_info().ok() },
            DriverFailureKind::Call => DeviceError::Driver { operation, message: refused.message },
        }
    }

    /// Records that the device is lost. Returns the error.
    fn is_lost(&self, error: DeviceError) -> DeviceError {
        self.lost.borrow_mut().get_or_insert_with(|| error.to_string());
        self.queue.borrow_mut().forget();
        self.driver.give_up();
        error
    }

    /// Checks that the device is usable.
    ///
    /// # Errors
    /// If the device is lost.
    pub(super) fn works(&self) -> Result<(), DeviceError> {
        self.lost.borrow().as_ref().map_or(Ok(()), |why| Err(DeviceError::Lost(why.clone())))
    }

    /// Allocates from the pool's free list, otherwise from the driver. If the driver is out of memory, frees all idle
    /// blocks and retries.
    pub(super) fn allocate(self: &Rc<Core>, bytes: usize) -> Result<DeviceBuffer, DeviceError> {
        self.works()?;
        let wanted = || DeviceError::Memory { bytes: bytes as u64, mem_info: self.driver.mem_info().ok() };
        let size = size_of(bytes).ok_or_else(wanted)?;
        let (at, size) = match self.pool.take(size) {
            Some(idle) => idle,
            None => {
                let first = self.driver.allocate(size);
                let given = match first {
                    Err(DriverFailure { kind: DriverFailureKind::Memory, .. }) => {
                        self.trim()?;
                        self.driver.allocate(size)
                    }
                    other => other,
                };
                let at = given.map_err(|refused| match refused.kind {
                    DriverFailureKind::Memory => wanted(),
                    _ => self.failed("allocating memory", refused),
                })?;
                self.pool.is_used(size);
                (at, size)
            }
        };
        Ok(DeviceBuffer::new(Rc::new(Block::new(self.clone(), at, size)), 0, bytes))
    }

    /// Allocates buffers of several sizes in one block.
    pub(super) fn allocate_together(self: &Rc<Core>, sizes: &[usize]) -> Result<Vec<DeviceBuffer>, DeviceError> {
        let all = || sizes.iter().fold(0u64, |all, bytes| all.saturating_add(*bytes as u64));
        let Some((offsets, bytes)) = arena(sizes) else {
            return Err(DeviceError::Memory { bytes: all(), mem_info: self.driver.mem_info().ok() });
        };
        let whole = self.allocate(bytes)?;
        Ok(offsets.iter().zip(sizes).map(|(offset, bytes)| whole.part(*offset as u64, *bytes)).collect())
    }

    /// Frees all idle blocks of the pool.
    fn trim(&self) -> Result<(), DeviceError> {
        self.wait()?;
        self.pool.drain().into_iter().for_each(|at| self.driver.free(at));
        // The driver may free memory in the order of the stream, and keep it in a separate pool until `free_idle`.
        self.wait()?;
        self.driver.free_idle().map_err(|refused| self.failed("freeing memory", refused))
    }

    /// Submits a launch. The queue may delay it, to replay repeated launches as a graph.
    pub(super) fn launch(&self, launch: KernelLaunch, of: Launched) -> Result<(), DeviceError> {
        self.works()?;
        let mut running = self.running.borrow_mut();
        if running.back() != Some(&of) {
            if running.len() == MOST_NAMED {
                running.pop_front();
            }
            running.push_back(of.clone());
        }
        drop(running);
        let launched = self.queue.borrow_mut().launch(&*self.driver, launch);
        launched.map_err(|refused| match refused.kind {
            DriverFailureKind::Lost => self.failed("launching a kernel", refused),
            _ => DeviceError::Launch { kernel: of, message: refused.message },
        })
    }

    /// Submits the launches that the queue has delayed.
    pub(super) fn flush(&self) -> Result<(), DeviceError> {
        self.works()?;
        let flushed = self.queue.borrow_mut().flush(&*self.driver, self.limit.get());
        flushed.map_err(|refused| self.failed("launching the kernels", refused))
    }

    /// Waits for all submitted work.
    pub(super) fn wait(&self) -> Result<(), DeviceError> {
        self.flush()?;
        let limit = self.limit.get();
        let waited = self.driver.record_event().and_then(|event| {
            let waited = self.driver.wait(event, limit);
            if let Some(start) = self.queue.borrow_mut().started() {
                if waited == Ok(true) {
                    let time = self.driver.milliseconds(start, event).unwrap_or(0.0);
                    self.busy.set(self.busy.get() + Duration::from_secs_f64(f64::from(time.max(0.0)) / 1e3));
                }
                self.driver.forget(start);
            }
            self.driver.forget(event);
            waited
        });
        match (waited.map_err(|refused| self.failed("waiting for the device", refused))?, limit) {
            (false, Some(limit)) => {
                let kernels = self.running.take().into();
                Err(self.is_lost(DeviceError::TooLong { kernels, limit }))
            }
            _ => {
                self.running.borrow_mut().clear();
                Ok(())
            }
        }
    }

    /// Copies bytes of the host to a buffer.
    pub(super) fn copy_to_device(&self, bytes: &[u8], to: &DeviceBuffer) -> Result<(), DeviceError> {
        // Delayed launches may use the memory that is overwritten.
        self.flush()?;
        let copied = self.staging.borrow_mut().up(&*self.driver, self.limit.get(), bytes, to.address());
        copied.map_err(|refused| self.failed("copying to the device", refused))
    }

    /// Copies a buffer to the host.
    pub(super) fn copy_to_host(&self, from: &DeviceBuffer, to: &mut [u8]) -> Result<(), DeviceError> {
        // This wait has the device's time limit. A copy that is not staged has no limit, so without this wait it could
        // wait forever for a kernel that never ends.
        self.wait()?;
        if to.is_empty() {
            return Ok(());
        }
        let copied = self.staging.borrow_mut().down(&*self.driver, self.limit.get(), from.address(), to);
        copied.map_err(|refused| self.failed("copying from the device", refused))
    }

    /// Fills a buffer with zeros.
    pub(super) fn clear(&self, buffer: &DeviceBuffer) -> Result<(), DeviceError> {
        self.flush()?;
        let cleared = self.driver.clear(buffer.address(), buffer.bytes());
        cleared.map_err(|refused| self.failed("clearing memory", refused))
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.pool.drain().into_iter().for_each(|at| self.driver.free(at));
    }
}
