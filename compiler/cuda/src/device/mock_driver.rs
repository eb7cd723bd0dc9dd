//! A mock driver for tests, without a device: it records most of its calls, keeps memory on the host, and fails at the
//! call that the test chooses. Kernels compute nothing.

use super::driver::{
    Address, Code, Driver, DriverFailure, DriverFailureKind, Event, Graph, KernelHandle, KernelLaunch, MemInfo, Pinned,
};
use crate::rules::UNITS;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// The mock driver; clones share the state and the recorded calls.
#[derive(Clone, Debug, Default)]
pub struct MockDriver(Rc<State>);

#[derive(Debug, Default)]
struct State {
    calls: RefCell<Vec<String>>,
    memory: RefCell<BTreeMap<Address, Vec<u8>>>,
    next: Cell<Address>,
    /// The size of all memory, in bytes; 0 is no limit.
    total: Cell<u64>,
    pinned: RefCell<Vec<Vec<u8>>>,
    kernels: RefCell<Vec<String>>,
    events: Cell<usize>,
    graphs: Cell<usize>,
    codes: Cell<usize>,
    failure: RefCell<Option<(&'static str, DriverFailure)>>,
    is_hanging: Cell<bool>,
}

impl MockDriver {
    /// Creates a driver of a device with `total` bytes of memory; 0 is no limit.
    pub fn with_memory(total: u64) -> MockDriver {
        let mock_driver = MockDriver::default();
        mock_driver.0.total.set(total);
        mock_driver
    }

    /// Takes the calls recorded since the last call of this function, each as a name and its subject, for example
    /// `allocate 512`.
    pub fn calls(&self) -> Vec<String> {
        self.0.calls.take()
    }

    /// Makes the next call of this name fail, for example `launch`, `wait` or `copy_to_host`. The call must be one that
    /// is recorded and can fail. Replaces an earlier request that has not taken effect.
    pub fn fails_at(&self, call: &'static str, kind: DriverFailureKind, message: &str) {
        *self.0.failure.borrow_mut() = Some((call, DriverFailure { kind, message: message.to_owned() }));
    }

    /// Makes every later wait with a time limit time out, as if a kernel ran forever.
    pub fn hangs(&self) {
        self.0.is_hanging.set(true);
    }

    /// Returns the number of bytes that are allocated and not freed.
    pub fn allocated(&self) -> u64 {
        self.0.memory.borrow().values().map(|block| block.len() as u64).sum()
    }

    fn note(&self, call: &'static str, about: &str) -> Result<(), DriverFailure> {
        self.0.calls.borrow_mut().push(format!("{call} {about}").trim_end().to_owned());
        let mut failure = self.0.failure.borrow_mut();
        match failure.take() {
            Some((at, refused)) if at == call => Err(refused),
            other => {
                *failure = other;
                Ok(())
            }
        }
    }

    /// Calls `work` with `bytes` bytes of device memory, beginning at `at`.
    fn with(&self, at: Address, bytes: usize, work: impl FnOnce(&mut [u8])) -> Result<(), DriverFailure> {
        let mut memory = self.0.memory.borrow_mut();
        let block = memory.range_mut(..=at).next_back();
        let part = block.and_then(|(start, block)| {
            let start = usize::try_from(at - start).ok()?;
            block.get_mut(start..start.checked_add(bytes)?)
        });
        match part {
            Some(part) => {
                work(part);
                Ok(())
            }
            None => Err(DriverFailure {
                kind: DriverFailureKind::Lost,
                message: format!("an access at {at:#x} is outside all memory"),
            }),
        }
    }
}

impl Driver for MockDriver {
    fn name(&self) -> &str {
        "a mock driver"
    }

    fn arch(&self) -> u32 {
        80
    }

    fn units(&self) -> u32 {
        UNITS
    }

    fn mem_info(&self) -> Result<MemInfo, DriverFailure> {
        let total = self.0.total.get();
        Ok(MemInfo { free: total.saturating_sub(self.allocated()), total })
    }

    fn allocate(&self, bytes: usize) -> Result<Address, DriverFailure> {
        self.note("allocate", &bytes.to_string())?;
        let total = self.0.total.get();
        if total > 0 && self.allocated() + bytes as u64 > total {
            return Err(DriverFailure { kind: DriverFailureKind::Memory, message: "out of memory".to_owned() });
        }
        let at = self.0.next.get() + 0x1000;
        self.0.next.set(at + bytes as u64);
        self.0.memory.borrow_mut().insert(at, vec![0xcd; bytes]);
        Ok(at)
    }

    fn free(&self, at: Address) {
        let _ = self.note("free", "");
        self.0.memory.borrow_mut().remove(&at);
    }

    fn clear(&self, at: Address, bytes: usize) -> Result<(), DriverFailure> {
        self.note("clear", &bytes.to_string())?;
        self.with(at, bytes, |part| part.fill(0))
    }

    fn copy_to_device(&self, from: &[u8], to: Address) -> Result<(), DriverFailure> {
        self.note("copy_to_device", &from.len().to_string())?;
        self.with(to, from.len(), |part| part.copy_from_slice(from))
    }

    fn copy_to_host(&self, from: Address, to: &mut [u8]) -> Result<(), DriverFailure> {
        self.note("copy_to_host", &to.len().to_string())?;
        self.with(from, to.len(), |part| to.copy_from_slice(part))
    }

    fn pin(&self, bytes: usize) -> Result<Pinned, DriverFailure> {
        self.note("pin", &bytes.to_string())?;
        let mut pinned = self.0.pinned.borrow_mut();
        pinned.push(vec![0; bytes]);
        Ok(Pinned(pinned.len() - 1))
    }

    fn write_pinned(&self, to: Pinned, bytes: &[u8]) -> Result<(), DriverFailure> {
        self.note("write_pinned", &to.0.to_string())?;
        if let Some(part) = self.0.pinned.borrow_mut().get_mut(to.0).and_then(|all| all.get_mut(..bytes.len())) {
            part.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn copy_pinned_to_device(&self, from: Pinned, bytes: usize, to: Address) -> Result<(), DriverFailure> {
        self.note("copy_pinned_to_device", &format!("{} {bytes}", from.0))?;
        let pinned = self.0.pinned.borrow().get(from.0).cloned().unwrap_or_default();
        self.with(to, bytes, |part| part.copy_from_slice(pinned.get(..bytes).unwrap_or_default()))
    }

    fn copy_to_pinned(&self, from: Address, to: Pinned, bytes: usize) -> Result<(), DriverFailure> {
        self.note("copy_to_pinned", &format!("{} {bytes}", to.0))?;
        let mut pinned = self.0.pinned.borrow_mut();
        self.with(from, bytes, |part| {
            if let Some(all) = pinned.get_mut(to.0).and_then(|all| all.get_mut(..bytes)) {
                all.copy_from_slice(part);
            }
        })
    }

    fn read_pinned(&self, from: Pinned, into: &mut [u8]) -> Result<(), DriverFailure> {
        self.note("read_pinned", &from.0.to_string())?;
        if let Some(part) = self.0.pinned.borrow().get(from.0).and_then(|all| all.get(..into.len())) {
            into.copy_from_slice(part);
        }
        Ok(())
    }

    fn load(&self, _: &[u8]) -> Result<Code, DriverFailure> {
        self.note("load", "")?;
        self.0.codes.set(self.0.codes.get() + 1);
        Ok(Code(self.0.codes.get()))
    }

    fn unload(&self, code: Code) {
        let _ = self.note("unload", &code.0.to_string());
    }

    fn kernel(&self, _: Code, name: &str, _: u32) -> Result<KernelHandle, DriverFailure> {
        let mut kernels = self.0.kernels.borrow_mut();
        kernels.push(name.to_owned());
        Ok(KernelHandle(kernels.len() - 1))
    }

    fn launch(&self, launch: &KernelLaunch) -> Result<(), DriverFailure> {
        let name = self.0.kernels.borrow().get(launch.kernel.0).cloned().unwrap_or_default();
        let tensors = launch.tensors.iter().map(|tensor| {
            let by = |extents: &[String]| extents.join(" x ");
            let extents: Vec<String> = tensor.form.extents.iter().map(u64::to_string).collect();
            let tile: Vec<String> = tensor.form.tile.iter().map(u32::to_string).collect();
            format!(", {} by {}", by(&extents), by(&tile))
        });
        self.note("launch", &format!("{name}{}", tensors.collect::<String>()))
    }

    fn record_event(&self) -> Result<Event, DriverFailure> {
        self.0.events.set(self.0.events.get() + 1);
        Ok(Event(self.0.events.get()))
    }

    fn wait(&self, _: Event, limit: Option<Duration>) -> Result<bool, DriverFailure> {
        self.note("wait", "")?;
        Ok(limit.is_none() || !self.0.is_hanging.get())
    }

    fn milliseconds(&self, _: Event, _: Event) -> Result<f32, DriverFailure> {
        Ok(1.0)
    }

    fn forget(&self, _: Event) {}

    fn begin_capture(&self) -> Result<(), DriverFailure> {
        self.note("begin_capture", "")
    }

    fn end_capture(&self) -> Result<Graph, DriverFailure> {
        self.note("end_capture", "")?;
        self.0.graphs.set(self.0.graphs.get() + 1);
        Ok(Graph(self.0.graphs.get()))
    }

    fn replay(&self, graph: Graph) -> Result<(), DriverFailure> {
        self.note("replay", &graph.0.to_string())
    }

    fn drop_graph(&self, graph: Graph) {
        let _ = self.note("drop_graph", &graph.0.to_string());
    }
}
