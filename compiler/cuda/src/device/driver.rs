//! The interface of a device's driver: the calls that the layers above need, so that a mock driver can replace it in
//! tests.

use crate::source::TensorForm;
use std::fmt;
use std::time::Duration;

/// The address of device memory.
pub type Address = u64;

/// The number of a loaded module of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub usize);

/// The number of a kernel of loaded code. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelHandle(pub usize);

/// The number of a pinned (page-locked) buffer of the host, which the device accesses directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned(pub usize);

/// The number of an event: a point of the stream. The number may be reused after [`Driver::forget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event(pub usize);

/// The number of a CUDA graph: launches that are submitted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph(pub usize);

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLaunch {
    /// The kernel.
    pub kernel: KernelHandle,
    /// The numbers of blocks on the axes x, y and z.
    pub grid: [u32; 3],
    /// The numbers of threads of a block on the axes x, y and z.
    pub block: [u32; 3],
    /// The dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// The arguments in order: addresses, and scalars in the low bytes.
    pub arguments: Vec<u64>,
    /// The tensors that are passed as tensor maps, after the arguments.
    pub tensors: Vec<Tensor>,
}

/// A tensor whose tiles a kernel copies by TMA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The address of its first element.
    pub at: Address,
    /// The layout of its elements and tiles.
    pub form: TensorForm,
}

/// An error of a driver call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DriverFailure {
    /// The consequence for later calls.
    pub kind: DriverFailureKind,
    /// The message, usually the driver's.
    pub message: String,
}

/// The consequence of a driver error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverFailureKind {
    /// There is not enough memory; after freeing some, the call may succeed.
    Memory,
    /// The context must not be used any more, for example after a kernel's access to an illegal address.
    Lost,
    /// The work did not end within the time limit.
    TooLong,
    /// Another error: later calls may succeed.
    Call,
}

/// The sizes of a device's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemInfo {
    /// The free memory.
    pub free: u64,
    /// The total memory.
    pub total: u64,
}

/// The driver of a device, with one stream: work on the device runs in the order of the calls. Most calls return before
/// it has ended. A call may report an error of earlier work.
///
/// The caller guarantees that addresses are those of allocated memory, and that arguments match the parameters of the
/// kernel.
pub trait Driver: fmt::Debug {
    /// Returns the name of the device.
    fn name(&self) -> &str;

    /// Returns the architecture: 90 for `sm_90`.
    fn arch(&self) -> u32;

    /// Returns the number of multiprocessors, or [`crate::rules::UNITS`] if it is not known.
    fn units(&self) -> u32;

    /// Returns the free and the total memory.
    ///
    /// # Errors
    /// An error of the driver.
    fn mem_info(&self) -> Result<MemInfo, DriverFailure>;

    /// Allocates memory with undefined contents.
    ///
    /// # Errors
    /// [`DriverFailureKind::Memory`] if there is not enough memory, or another error of the driver.
    fn allocate(&self, bytes: usize) -> Result<Address, DriverFailure>;

    /// Frees memory when the stream reaches this point, and may wait for that.
    fn free(&self, at: Address);

    /// Gives freed memory that the driver keeps in a pool back to the system.
    ///
    /// # Errors
    /// An error of the driver.
    fn free_idle(&self) -> Result<(), DriverFailure> {
        Ok(())
    }

    /// Marks the device as lost: its work will not end, or has failed. Afterwards the driver need not free memory, code
    /// or graphs, and dropping it waits for nothing.
    fn give_up(&self) {}

    /// Sets bytes to zero.
    ///
    /// # Errors
    /// An error of the driver.
    fn clear(&self, at: Address, bytes: usize) -> Result<(), DriverFailure>;

    /// Copies bytes to the device, and may wait for the copy. After the return the caller may change them.
    ///
    /// # Errors
    /// An error of the driver.
    fn copy_to_device(&self, from: &[u8], to: Address) -> Result<(), DriverFailure>;

    /// Copies bytes from the device, and waits for the copy.
    ///
    /// # Errors
    /// An error of the driver or of earlier work.
    fn copy_to_host(&self, from: Address, to: &mut [u8]) -> Result<(), DriverFailure>;

    /// Allocates a pinned buffer of the host, for asynchronous copies.
    ///
    /// # Errors
    /// [`DriverFailureKind::Memory`] if there is not enough memory, or another error of the driver.
    fn pin(&self, bytes: usize) -> Result<Pinned, DriverFailure>;

    /// Writes the first bytes of a pinned buffer. The caller guarantees that no copy from it is running.
    ///
    /// # Errors
    /// If the buffer is smaller than `bytes` or does not exist.
    fn write_pinned(&self, to: Pinned, bytes: &[u8]) -> Result<(), DriverFailure>;

    /// Copies the first bytes of a pinned buffer to the device, asynchronously.
    ///
    /// # Errors
    /// If the buffer is smaller than `bytes` or does not exist, or an error of the driver.
    fn copy_pinned_to_device(&self, from: Pinned, bytes: usize, to: Address) -> Result<(), DriverFailure>;

    /// Copies bytes from the device to the start of a pinned buffer, asynchronously.
    ///
    /// # Errors
    /// If the buffer is smaller than `bytes` or does not exist, or an error of the driver.
    fn copy_to_pinned(&self, from: Address, to: Pinned, bytes: usize) -> Result<(), DriverFailure>;

    /// Reads the first bytes of a pinned buffer. The caller guarantees that no copy to it is running.
    ///
    /// # Errors
    /// If the buffer is smaller than `into` or does not exist.
    fn read_pinned(&self, from: Pinned, into: &mut [u8]) -> Result<(), DriverFailure>;

    /// Loads a cubin, or PTX that ends in a zero byte.
    ///
    /// # Errors
    /// An error of the driver.
    fn load(&self, code: &[u8]) -> Result<Code, DriverFailure>;

    /// Unloads code. The caller guarantees that none of its kernels is running or is in a graph that is replayed later.
    fn unload(&self, code: Code);

    /// Returns the kernel called `name`, and allows it `shared_bytes` bytes of dynamic shared memory.
    ///
    /// # Errors
    /// An error of the driver.
    fn kernel(&self, code: Code, name: &str, shared_bytes: u32) -> Result<KernelHandle, DriverFailure>;

    /// Launches a kernel.
    ///
    /// # Errors
    /// An error of the driver or of earlier work.
    fn launch(&self, launch: &KernelLaunch) -> Result<(), DriverFailure>;

    /// Records an event after all submitted work.
    ///
    /// # Errors
    /// An error of the driver.
    fn record_event(&self) -> Result<Event, DriverFailure>;

    /// Waits for an event, at most for about the time `limit` (`None` is no limit). Returns whether the event has
    /// occurred.
    ///
    /// # Errors
    /// An error of the work before the event.
    fn wait(&self, event: Event, limit: Option<Duration>) -> Result<bool, DriverFailure>;

    /// Returns the time in milliseconds between two events that have occurred, by the device's clock.
    ///
    /// # Errors
    /// An error of the driver.
    fn milliseconds(&self, from: Event, to: Event) -> Result<f32, DriverFailure>;

    /// Destroys an event.
    fn forget(&self, event: Event);

    /// Waits for an event and destroys it.
    ///
    /// # Errors
    /// An error of the work before the event; [`DriverFailureKind::TooLong`] if the event does not occur within the
    /// limit.
    fn pass(&self, event: Event, limit: Option<Duration>) -> Result<(), DriverFailure> {
        let waited = self.wait(event, limit);
        self.forget(event);
        match waited? {
            true => Ok(()),
            false => {
                Err(DriverFailure { kind: DriverFailureKind::TooLong, message: "a kernel does not end".to_owned() })
            }
        }
    }

    /// Begins to capture launches: they are recorded into a graph, not executed.
    ///
    /// # Errors
    /// An error of the driver.
    fn begin_capture(&self) -> Result<(), DriverFailure>;

    /// Ends the capture and returns the graph of the launches since [`Driver::begin_capture`]. The capture ends in case
    /// of an error, too.
    ///
    /// # Errors
    /// An error of the driver.
    fn end_capture(&self) -> Result<Graph, DriverFailure>;

    /// Submits the launches of a graph.
    ///
    /// # Errors
    /// An error of the driver or of earlier work.
    fn replay(&self, graph: Graph) -> Result<(), DriverFailure>;

    /// Destroys a graph. The caller guarantees that it is not running.
    fn drop_graph(&self, graph: Graph);
}
