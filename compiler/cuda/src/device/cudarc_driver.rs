//! The CUDA driver of a GPU, called through the crate `cudarc`: the implementation of [`Driver`] outside tests.
#![allow(unsafe_code)]

use super::driver::{
    Address, Code, Driver, DriverFailure, DriverFailureKind, Event, Graph, KernelHandle, KernelLaunch, MemInfo, Pinned,
    Tensor,
};
use super::error::DeviceError;
use crate::rules::{OLDEST_ARCH, UNITS};
use crate::source::TensorForm;
use cudarc::driver::sys::{
    CUdevice_attribute, CUevent_flags, CUfunction_attribute, CUgraphInstantiate_flags, CUmemPool_attribute, CUresult,
    CUstreamCaptureMode, CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle, cuTensorMapEncodeTiled,
};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaGraph, CudaModule, CudaStream, DeviceRepr, DriverError, LaunchConfig,
    PushKernelArg, result,
};
use cudarc::nvrtc::Ptx;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::fmt;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The driver of a GPU: one context with one stream. Handles such as [`Code`] and [`Event`] are indices into its lists.
pub(super) struct CudarcDriver {
    name: String,
    arch: u32,
    units: u32,
    stream: Arc<CudaStream>,
    context: Arc<CudaContext>,
    codes: RefCell<Vec<Option<Arc<CudaModule>>>>,
    /// The kernels, each with the code that contains it.
    kernels: RefCell<Vec<Option<(Code, CudaFunction)>>>,
    events: RefCell<Vec<Option<CudaEvent>>>,
    graphs: RefCell<Vec<Option<CudaGraph>>>,
    pinned: RefCell<Vec<(*mut u8, usize)>>,
    /// Whether the device is lost. If so, nothing waits for its work or frees its memory.
    is_given_up: Cell<bool>,
}

impl fmt::Debug for CudarcDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudarcDriver").field("name", &self.name).field("arch", &self.arch).finish_non_exhaustive()
    }
}

impl CudarcDriver {
    /// Opens the driver of the first device.
    ///
    /// # Errors
    /// If there is no driver or no device, if the first device is too old, or if a call of the driver fails.
    pub(super) fn probe() -> Result<CudarcDriver, DeviceError> {
        // SAFETY: this only loads the driver's library, by the names that NVIDIA gives it.
        let is_present = catch_unwind(|| unsafe { cudarc::driver::sys::is_culib_present() });
        if !is_present.unwrap_or(false) {
            return Err(DeviceError::NoDriver);
        }
        // `cudarc` looks a function up at its first call, and panics if the driver is too old to have it.
        catch_unwind(AssertUnwindSafe(CudarcDriver::open)).unwrap_or(Err(DeviceError::Driver {
            operation: "opening the device",
            message: "the driver lacks functions that rx calls".to_owned(),
        }))
    }

    fn open() -> Result<CudarcDriver, DeviceError> {
        let failed =
            |operation| move |error: DriverError| DeviceError::Driver { operation, message: error.to_string() };
        let count = match CudaContext::device_count() {
            Ok(count) => count,
            Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => 0,
            Err(error) => return Err(failed("counting devices")(error)),
        };
        if count < 1 {
            return Err(DeviceError::NoDevice);
        }
        let context = CudaContext::new(0).map_err(failed("opening the device"))?;
        let name = context.name().map_err(failed("reading the device's name"))?;
        let (major, minor) = context.compute_capability().map_err(failed("reading the compute capability"))?;
        let arch = u32::try_from(major * 10 + minor).unwrap_or(0);
        if arch < OLDEST_ARCH {
            return Err(DeviceError::TooOld { name, arch });
        }
        // SAFETY: event tracking only orders work of different streams; all work of this context goes through one
        // stream.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(failed("creating a stream"))?;
        if context.has_async_alloc() {
            keep_pool(&context);
        }
        let units = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        let units = units.ok().and_then(|units| u32::try_from(units).ok()).filter(|units| *units > 0);
        Ok(CudarcDriver {
            name,
            arch,
            units: units.unwrap_or(UNITS),
            stream,
            context,
            codes: RefCell::default(),
            kernels: RefCell::default(),
            events: RefCell::default(),
            graphs: RefCell::default(),
            pinned: RefCell::default(),
            is_given_up: Cell::new(false),
        })
    }

    /// Converts the error of a failed module load. If the driver does not accept the code, the message names the CUDA
    /// versions of the driver and of NVRTC (if both are known), since the driver may be too old.
    fn not_loaded(error: DriverError) -> DriverFailure {
        use CUresult as Code;
        let mut refused = refused(error);
        let is_foreign = matches!(
            error.0,
            Code::CUDA_ERROR_INVALID_IMAGE
                | Code::CUDA_ERROR_NO_BINARY_FOR_GPU
                | Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        );
        if let (true, Some((major, minor)), Ok(nvrtc)) = (is_foreign, driver_version(), crate::nvrtc::probe()) {
            let nvrtc = format!("{}.{}", nvrtc.0, nvrtc.1);
            refused.message = format!(
                "{}: the driver is of CUDA {major}.{minor}, NVRTC of {nvrtc}; RX_NVRTC names another",
                refused.message
            );
        }
        refused
    }

    fn pinned(&self, pinned: Pinned, bytes: usize) -> Result<*mut u8, DriverFailure> {
        let known = self.pinned.borrow().get(pinned.0).copied();
        known.filter(|(_, size)| bytes <= *size).map(|(at, _)| at).ok_or_else(unknown)
    }
}

/// Returns the CUDA version of the driver, as (major, minor), if a driver is installed. Opens no device.
pub(crate) fn driver_version() -> Option<(i32, i32)> {
    catch_unwind(|| {
        let mut version = 0;
        // SAFETY: this loads the driver's library by the names that NVIDIA gives it; the function writes one integer.
        let code = unsafe {
            if !cudarc::driver::sys::is_culib_present() {
                return None;
            }
            cudarc::driver::sys::cuDriverGetVersion(&raw mut version)
        };
        code.result().ok().map(|()| (version / 1000, version % 1000 / 10))
    })
    .ok()
    .flatten()
}

/// Makes the driver's memory pool keep freed memory when the host waits. By default the pool returns it to the system
/// at each synchronization.
fn keep_pool(context: &Arc<CudaContext>) {
    let mut threshold = u64::MAX;
    // SAFETY: the device and its pool belong to the context, and the attribute is a 64-bit number. If the call fails,
    // allocation is only slower.
    unsafe {
        if let Ok(pool) = result::device::get_default_mem_pool(context.cu_device()) {
            let value = (&raw mut threshold).cast::<c_void>();
            let _ =
                result::mem_pool::set_attribute(pool, CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, value);
        }
    }
}

fn refused(error: DriverError) -> DriverFailure {
    use CUresult as Code;
    let kind = match error.0 {
        Code::CUDA_ERROR_OUT_OF_MEMORY => DriverFailureKind::Memory,
        // After these errors the context cannot be used any more, or its state is not known.
        Code::CUDA_ERROR_ILLEGAL_ADDRESS
        | Code::CUDA_ERROR_LAUNCH_TIMEOUT
        | Code::CUDA_ERROR_ASSERT
        | Code::CUDA_ERROR_HARDWARE_STACK_ERROR
        | Code::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | Code::CUDA_ERROR_MISALIGNED_ADDRESS
        | Code::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | Code::CUDA_ERROR_INVALID_PC
        | Code::CUDA_ERROR_LAUNCH_FAILED
        | Code::CUDA_ERROR_ECC_UNCORRECTABLE
        | Code::CUDA_ERROR_NVLINK_UNCORRECTABLE
        | Code::CUDA_ERROR_CONTAINED
        | Code::CUDA_ERROR_TENSOR_MEMORY_LEAK
        | Code::CUDA_ERROR_EXTERNAL_DEVICE
        | Code::CUDA_ERROR_UNKNOWN
        | Code::CUDA_ERROR_CONTEXT_IS_DESTROYED => DriverFailureKind::Lost,
        _ => DriverFailureKind::Call,
    };
    DriverFailure { kind, message: error.to_string() }
}

/// A tensor map (`CUtensorMap`) that is passed as a kernel argument.
#[repr(transparent)]
struct TensorArgument(CUtensorMap);

// SAFETY: `CUtensorMap` is the driver's own representation of a tensor map argument.
unsafe impl DeviceRepr for TensorArgument {}

/// Encodes the layout of a tensor and its tiles as a tensor map for TMA.
fn tensor_map(tensor: &Tensor) -> Result<TensorArgument, DriverFailure> {
    let refuse = |message: &str| DriverFailure { kind: DriverFailureKind::Call, message: message.to_owned() };
    let TensorForm { element_bytes, extents, strides, tile } = &tensor.form;
    let rank = u32::try_from(extents.len()).ok().filter(|rank| (1..=5).contains(rank));
    let rank = rank.filter(|_| strides.len() == extents.len() && tile.len() == extents.len());
    let rank = rank.ok_or_else(|| refuse("a tensor map has too many axes"))?;
    let kind = match element_bytes {
        1 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        2 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        4 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        _ => return Err(refuse("a tensor map has no dtype of this element size")),
    };
    let steps = [1u32; 5];
    let mut map = MaybeUninit::<CUtensorMap>::uninit();
    // `cudarc` looks the function up at its first call, and panics if the driver is too old to have it.
    let code = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: extents, tile and steps have at least `rank` elements; of the strides `rank - 1` elements are read,
        // after the first. The driver does not access memory at the tensor's address.
        unsafe {
            cuTensorMapEncodeTiled(
                map.as_mut_ptr(),
                kind,
                rank,
                tensor.at as *mut c_void,
                extents.as_ptr(),
                strides.as_ptr().add(1),
                tile.as_ptr(),
                steps.as_ptr(),
                CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        }
    }));
    let code = code.map_err(|_| refuse("the driver is too old to encode tensor maps"))?;
    code.result().map_err(refused)?;
    // SAFETY: the call succeeded, so the driver has written the map.
    Ok(TensorArgument(unsafe { map.assume_init() }))
}

fn unknown() -> DriverFailure {
    DriverFailure { kind: DriverFailureKind::Call, message: "the driver does not know the handle".to_owned() }
}

/// Appends an item to a list and returns its index.
fn put<T>(list: &RefCell<Vec<Option<T>>>, one: T) -> usize {
    let mut list = list.borrow_mut();
    list.push(Some(one));
    list.len() - 1
}

/// Drops the item with this index in a list.
fn drop_of<T>(list: &RefCell<Vec<Option<T>>>, number: usize) {
    if let Some(slot) = list.borrow_mut().get_mut(number) {
        *slot = None;
    }
}

impl Driver for CudarcDriver {
    fn name(&self) -> &str {
        &self.name
    }

    fn arch(&self) -> u32 {
        self.arch
    }

    fn units(&self) -> u32 {
        self.units
    }

    fn mem_info(&self) -> Result<MemInfo, DriverFailure> {
        let (free, total) = self.context.mem_get_info().map_err(refused)?;
        Ok(MemInfo { free: free as u64, total: total as u64 })
    }

    fn allocate(&self, bytes: usize) -> Result<Address, DriverFailure> {
        let bytes = bytes.max(1);
        // SAFETY: the stream belongs to this driver. The memory is uninitialized, and any bytes are valid in it.
        let given = unsafe {
            match self.context.has_async_alloc() {
                true => result::malloc_async(self.stream.cu_stream(), bytes),
                false => result::malloc_sync(bytes),
            }
        };
        given.map_err(refused)
    }

    fn free(&self, at: Address) {
        if self.is_given_up.get() {
            return;
        }
        // SAFETY: `allocate` returned the memory, and no later call uses it. A failure needs no handling.
        let _ = unsafe {
            match self.context.has_async_alloc() {
                true => result::free_async(at, self.stream.cu_stream()),
                false => self.stream.synchronize().and_then(|()| result::free_sync(at)),
            }
        };
    }

    fn free_idle(&self) -> Result<(), DriverFailure> {
        if !self.context.has_async_alloc() {
            return Ok(());
        }
        // SAFETY: the device and its pool belong to the context.
        let freed = unsafe {
            result::device::get_default_mem_pool(self.context.cu_device())
                .and_then(|pool| result::mem_pool::trim_to(pool, 0))
        };
        freed.map_err(refused)
    }

    fn give_up(&self) {
        self.is_given_up.set(true);
    }

    fn clear(&self, at: Address, bytes: usize) -> Result<(), DriverFailure> {
        // SAFETY: the memory was allocated with at least `bytes` bytes.
        unsafe { result::memset_d8_async(at, 0, bytes, self.stream.cu_stream()) }.map_err(refused)
    }

    fn copy_to_device(&self, from: &[u8], to: Address) -> Result<(), DriverFailure> {
        // SAFETY: the memory was allocated with at least as many bytes; `from` is borrowed until the stream has
        // completed the copy.
        let copied = unsafe { result::memcpy_htod_async(to, from, self.stream.cu_stream()) };
        copied.and(self.stream.synchronize()).map_err(refused)
    }

    fn copy_to_host(&self, from: Address, to: &mut [u8]) -> Result<(), DriverFailure> {
        // SAFETY: the memory was allocated with at least as many bytes; `to` is borrowed until the stream has completed
        // the copy.
        let copied = unsafe { result::memcpy_dtoh_async(to, from, self.stream.cu_stream()) };
        copied.and(self.stream.synchronize()).map_err(refused)
    }

    fn pin(&self, bytes: usize) -> Result<Pinned, DriverFailure> {
        // SAFETY: this allocates host memory; its bytes are written below before anything reads them.
        let at = unsafe { result::malloc_host(bytes, 0) }.map_err(refused)?.cast::<u8>();
        // SAFETY: the driver allocated `bytes` bytes.
        unsafe { at.write_bytes(0, bytes) };
        let mut pinned = self.pinned.borrow_mut();
        pinned.push((at, bytes));
        Ok(Pinned(pinned.len() - 1))
    }

    fn write_pinned(&self, to: Pinned, bytes: &[u8]) -> Result<(), DriverFailure> {
        let at = self.pinned(to, bytes.len())?;
        // SAFETY: the buffer has at least as many bytes and does not overlap `bytes`; the caller guarantees that no
        // copy from it is running.
        unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    fn read_pinned(&self, from: Pinned, into: &mut [u8]) -> Result<(), DriverFailure> {
        let at = self.pinned(from, into.len())?;
        // SAFETY: the pinned buffer has at least as many bytes, all initialized by `pin`, and does not overlap `into`.
        // The caller guarantees that no copy from the device to the pinned buffer is running.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(at, into.len()) };
        Ok(())
    }

    fn copy_pinned_to_device(&self, from: Pinned, bytes: usize, to: Address) -> Result<(), DriverFailure> {
        let at = self.pinned(from, bytes)?;
        // SAFETY: pinned memory lives as long as the driver; the device memory was allocated with at least as many
        // bytes.
        let copied =
            unsafe { result::memcpy_htod_async(to, std::slice::from_raw_parts(at, bytes), self.stream.cu_stream()) };
        copied.map_err(refused)
    }

    fn copy_to_pinned(&self, from: Address, to: Pinned, bytes: usize) -> Result<(), DriverFailure> {
        let at = self.pinned(to, bytes)?;
        // SAFETY: as in `copy_pinned_to_device`; the buffer is read only after the stream has completed the copy.
        let copied = unsafe {
            result::memcpy_dtoh_async(std::slice::from_raw_parts_mut(at, bytes), from, self.stream.cu_stream())
        };
        copied.map_err(refused)
    }

    fn load(&self, code: &[u8]) -> Result<Code, DriverFailure> {
        let module = self.context.load_module(Ptx::from_binary(code.to_vec())).map_err(CudarcDriver::not_loaded)?;
        Ok(Code(put(&self.codes, module)))
    }

    fn unload(&self, code: Code) {
        if self.is_given_up.get() {
            return;
        }
        for kernel in self.kernels.borrow_mut().iter_mut() {
            if kernel.as_ref().is_some_and(|(of, _)| *of == code) {
                *kernel = None;
            }
        }
        drop_of(&self.codes, code.0);
    }

    fn kernel(&self, code: Code, name: &str, shared_bytes: u32) -> Result<KernelHandle, DriverFailure> {
        let module = self.codes.borrow().get(code.0).cloned().flatten().ok_or_else(unknown)?;
        let kernel = module.load_function(name).map_err(refused)?;
        // Without this attribute a kernel may use 48 KiB of shared memory, including its statically declared shared
        // memory.
        if shared_bytes > 0 {
            let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            kernel.set_attribute(most, shared_bytes.cast_signed()).map_err(refused)?;
        }
        Ok(KernelHandle(put(&self.kernels, (code, kernel))))
    }

    fn launch(&self, launch: &KernelLaunch) -> Result<(), DriverFailure> {
        let kernels = self.kernels.borrow();
        let (_, kernel) = kernels.get(launch.kernel.0).and_then(Option::as_ref).ok_or_else(unknown)?;
        let mut builder = self.stream.launch_builder(kernel);
        let tensors = launch.tensors.iter().map(tensor_map).collect::<Result<Vec<_>, _>>()?;
        for argument in &launch.arguments {
            builder.arg(argument);
        }
        for tensor in &tensors {
            builder.arg(tensor);
        }
        let [grid, block] = [launch.grid, launch.block].map(|[x, y, z]| (x, y, z));
        let config = LaunchConfig { grid_dim: grid, block_dim: block, shared_mem_bytes: launch.shared_bytes };
        // SAFETY: the arguments are those of the printed kernel, in its order: pointers and scalars, then tensor maps.
        // The driver reads the 8 bytes of a pointer, the low bytes of a scalar as its type has them, and the 128 bytes
        // of a tensor map. `Module::launch` checks the sizes of the buffers. They live until the stream has completed
        // this launch, and only this stream writes them.
        unsafe { builder.launch(config) }.map_err(refused)?;
        Ok(())
    }

    fn record_event(&self) -> Result<Event, DriverFailure> {
        let event = self.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(refused)?;
        let mut events = self.events.borrow_mut();
        // Each wait creates and forgets events, so their indices are reused.
        let free = events.iter().position(Option::is_none).unwrap_or(events.len());
        match events.get_mut(free) {
            Some(slot) => *slot = Some(event),
            None => events.push(Some(event)),
        }
        Ok(Event(free))
    }

    fn wait(&self, event: Event, limit: Option<Duration>) -> Result<bool, DriverFailure> {
        let events = self.events.borrow();
        let event = events.get(event.0).and_then(Option::as_ref).ok_or_else(unknown)?;
        let Some(limit) = limit else { return event.synchronize().map(|()| true).map_err(refused) };
        let start = Instant::now();
        loop {
            if event.try_is_complete().map_err(refused)? {
                return Ok(true);
            }
            match start.elapsed() {
                // Most runs end sooner than the operating system would wake a sleeping thread, so the host polls at
                // first.
                time if time < Duration::from_millis(2) => thread::yield_now(),
                time if time < limit => thread::sleep(Duration::from_micros(100)),
                _ => return Ok(false),
            }
        }
    }

    fn milliseconds(&self, from: Event, to: Event) -> Result<f32, DriverFailure> {
        let events = self.events.borrow();
        let event = |event: Event| events.get(event.0).and_then(Option::as_ref).ok_or_else(unknown);
        event(from)?.elapsed_ms(event(to)?).map_err(refused)
    }

    fn forget(&self, event: Event) {
        drop_of(&self.events, event.0);
    }

    fn begin_capture(&self) -> Result<(), DriverFailure> {
        self.stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).map_err(refused)
    }

    fn end_capture(&self) -> Result<Graph, DriverFailure> {
        let graph = self.stream.end_capture(CUgraphInstantiate_flags(0)).map_err(refused)?.ok_or_else(unknown)?;
        Ok(Graph(put(&self.graphs, graph)))
    }

    fn replay(&self, graph: Graph) -> Result<(), DriverFailure> {
        let graphs = self.graphs.borrow();
        let graph = graphs.get(graph.0).and_then(Option::as_ref).ok_or_else(unknown)?;
        graph.launch().map_err(refused)
    }

    fn drop_graph(&self, graph: Graph) {
        if !self.is_given_up.get() {
            drop_of(&self.graphs, graph.0);
        }
    }
}

impl Drop for CudarcDriver {
    fn drop(&mut self) {
        if self.is_given_up.get() {
            // Dropping these could wait for work that does not end, or free memory that it still uses.
            std::mem::forget((self.context.clone(), self.stream.clone(), self.codes.take(), self.kernels.take()));
            std::mem::forget((self.events.take(), self.graphs.take(), self.pinned.take()));
            return;
        }
        // Running work may use pinned memory. A failure needs no handling.
        let _ = self.stream.synchronize();
        for (at, _) in self.pinned.get_mut().drain(..) {
            // SAFETY: `malloc_host` returned the memory, and nothing uses it any more.
            let _ = unsafe { result::free_host(at.cast()) };
        }
    }
}
