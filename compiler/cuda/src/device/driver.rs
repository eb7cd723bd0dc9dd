//! What is asked of a driver: the calls that a device is made of, so that all above them can be tested without one.

use crate::source::TensorForm;
use std::fmt;
use std::time::Duration;

/// Where memory of the device begins.
pub type Address = u64;

/// Code that was loaded, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub usize);

/// A kernel of loaded code, by its number; no other ever has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelHandle(pub usize);

/// Memory of the host that the device copies from and to by itself, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned(pub usize);

/// A point of the stream, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub usize);

/// Launches that are made at once, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph(pub usize);

/// How a kernel is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLaunch {
    /// Which.
    pub kernel: KernelHandle,
    /// Blocks on axes x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block on axes x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory beside what the kernel declares.
    pub shared_bytes: u32,
    /// Arguments in order: addresses, and scalars in their low bytes.
    pub arguments: Vec<u64>,
    /// What is passed behind them: tensors whose tiles it has copied.
    pub tensors: Vec<Tensor>,
}

/// A tensor whose tiles a kernel has copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Where it begins.
    pub at: Address,
    /// How it lies from there.
    pub form: TensorForm,
}

/// A call that was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// What this means for what comes after.
    pub kind: Refusal,
    /// The driver's words.
    pub message: String,
}

/// What a refusal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is not as much memory.
    Memory,
    /// A kernel did what no kernel may; every call from here on fails.
    Lost,
    /// What was waited for did not end in time.
    TooLong,
    /// Only this call failed.
    Call,
}

/// Bytes of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Not taken by anybody.
    pub free: u64,
    /// In all.
    pub total: u64,
}

/// A device's driver, with one stream: what is asked for is done in that order, and calls do not wait for it but where they say so.
///
/// Addresses that are passed are of memory that was allocated and not freed, arguments are those of the kernel: the layer above sees to it.
pub trait Driver: fmt::Debug {
    /// The device's name.
    fn name(&self) -> &str;

    /// Its architecture: 90 for `sm_90`.
    fn arch(&self) -> u32;

    /// How many multiprocessors it has.
    fn units(&self) -> u32;

    /// How much memory there is.
    ///
    /// # Errors
    /// The driver's.
    fn room(&self) -> Result<Room, Refused>;

    /// Memory with any contents.
    ///
    /// # Errors
    /// [`Refusal::Memory`] where there is not as much.
    fn allocate(&self, bytes: usize) -> Result<Address, Refused>;

    /// Gives memory back, in the stream's order.
    fn free(&self, at: Address);

    /// Gives the system what was given back and nobody needs.
    ///
    /// # Errors
    /// The driver's.
    fn free_idle(&self) -> Result<(), Refused> {
        Ok(())
    }

    /// What runs will not end, or ended badly: nothing is asked of the driver any more, and it waits for nothing when it goes.
    fn give_up(&self) {}

    /// Sets bytes to zero.
    ///
    /// # Errors
    /// The driver's.
    fn clear(&self, at: Address, bytes: usize) -> Result<(), Refused>;

    /// Copies to the device; when it returns, the host's bytes may change.
    ///
    /// # Errors
    /// The driver's.
    fn copy_up(&self, from: &[u8], to: Address) -> Result<(), Refused>;

    /// Copies from the device, and waits for it.
    ///
    /// # Errors
    /// The driver's, and what failed before.
    fn copy_down(&self, from: Address, to: &mut [u8]) -> Result<(), Refused>;

    /// Memory of the host for copies that do not wait.
    ///
    /// # Errors
    /// [`Refusal::Memory`] where there is not as much.
    fn pin(&self, bytes: usize) -> Result<Pinned, Refused>;

    /// Writes the first bytes of pinned memory; no copy from it goes on.
    ///
    /// # Errors
    /// Where they are more than it has.
    fn write_pinned(&self, to: Pinned, bytes: &[u8]) -> Result<(), Refused>;

    /// Copies the first bytes of pinned memory to the device, and does not wait.
    ///
    /// # Errors
    /// The driver's.
    fn copy_up_pinned(&self, from: Pinned, bytes: usize, to: Address) -> Result<(), Refused>;

    /// Copies from the device to the first bytes of pinned memory, and does not wait.
    ///
    /// # Errors
    /// The driver's.
    fn copy_down_pinned(&self, from: Address, to: Pinned, bytes: usize) -> Result<(), Refused>;

    /// Reads the first bytes of pinned memory; no copy to it goes on.
    ///
    /// # Errors
    /// Where they are more than it has.
    fn read_pinned(&self, from: Pinned, into: &mut [u8]) -> Result<(), Refused>;

    /// Loads a cubin, or PTX with a zero byte behind it.
    ///
    /// # Errors
    /// The driver's.
    fn load(&self, code: &[u8]) -> Result<Code, Refused>;

    /// Forgets code, of which no kernel runs or is in a graph that is replayed again.
    fn unload(&self, code: Code);

    /// A kernel by its name, which may have so many bytes of shared memory.
    ///
    /// # Errors
    /// The driver's.
    fn kernel(&self, code: Code, name: &str, shared_bytes: u32) -> Result<KernelHandle, Refused>;

    /// Launches a kernel.
    ///
    /// # Errors
    /// The driver's, and what failed before.
    fn launch(&self, launch: &KernelLaunch) -> Result<(), Refused>;

    /// The point of the stream behind all that was asked for.
    ///
    /// # Errors
    /// The driver's.
    fn mark(&self) -> Result<Mark, Refused>;

    /// Waits until a point is passed, at most so long; whether it is.
    ///
    /// # Errors
    /// What failed before it.
    fn wait(&self, mark: Mark, limit: Option<Duration>) -> Result<bool, Refused>;

    /// The device's time between two points that are passed.
    ///
    /// # Errors
    /// The driver's.
    fn milliseconds(&self, from: Mark, to: Mark) -> Result<f32, Refused>;

    /// Forgets a point.
    fn forget(&self, mark: Mark);

    /// Waits until a point is passed, and forgets it.
    ///
    /// # Errors
    /// What failed before it; [`Refusal::TooLong`] where that takes longer than the limit.
    fn pass(&self, mark: Mark, limit: Option<Duration>) -> Result<(), Refused> {
        let waited = self.wait(mark, limit);
        self.forget(mark);
        match waited? {
            true => Ok(()),
            false => Err(Refused { kind: Refusal::TooLong, message: "a kernel does not end".to_owned() }),
        }
    }

    /// Launches from here on are not made but become a graph.
    ///
    /// # Errors
    /// The driver's.
    fn begin_capture(&self) -> Result<(), Refused>;

    /// The graph of the launches since [`Driver::begin_capture`]; nothing is captured any more, also where it fails.
    ///
    /// # Errors
    /// The driver's.
    fn end_capture(&self) -> Result<Graph, Refused>;

    /// Makes a graph's launches.
    ///
    /// # Errors
    /// The driver's, and what failed before.
    fn replay(&self, graph: Graph) -> Result<(), Refused>;

    /// Forgets a graph, which does not run.
    fn drop_graph(&self, graph: Graph);
}
