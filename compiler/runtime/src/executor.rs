//! Execution of a program's instructions on a device.

mod calls;
mod dynamic;
mod frames;
mod kernel;
mod once;
mod suspended;

use crate::backend::{Backend, Stage};
use crate::error::{BuildError, RunError};
use crate::fuel::{Fuel, Limits};
use crate::host::Answer;
use crate::memory::Memory;
use crate::observer::Observer;
use crate::types::{Symbols, bind, check, evaluate_shape};
use crate::value::{Closure, DeviceTensor, Output, Place, Value};
use calls::Request;
use rx_base::DType;
use rx_base::Name;
use rx_lower::{Instruction, Kernel, Operation, Procedure, ProcedureId, Program, Register};
use rx_tensor::{Element, Tensor};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs a program on a device `B`.
pub struct Executor<B: Backend> {
    program: Arc<Program>,
    backend: B,
    constants: Vec<Arc<B::Memory>>,
    constant_types: Vec<(Vec<i64>, DType)>,
    /// Frame memory of finished calls, by procedure. The next call of the procedure reuses it.
    idle: Vec<Vec<Storages<B>>>,
    /// The programs built for calls whose types are known only at run time.
    made: dynamic::Calls<B>,
    /// The cached results of memoized procedures ([`Procedure::once`]).
    kept: once::Cached<B::Memory>,
    /// The start time of the current run.
    started: Instant,
    limits: Limits,
    /// The remainder of the current run's limits.
    fuel: Fuel,
    printer: Printer,
}

/// A callback that receives each text that the program prints.
type Printer = Box<dyn FnMut(&str)>;

/// The memory of a frame's storages, by [`rx_lower::StorageId`], each with its size in bytes. `None` if not allocated.
type Storages<B> = Vec<Option<(<B as Backend>::Memory, usize)>>;

/// The observer of the run, if there is one.
type Watch<'a> = Option<&'a mut dyn Observer>;

/// The state of an active procedure.
struct Frame<B: Backend> {
    registers: Vec<Value<B::Memory>>,
    symbols: Symbols,
    storages: Storages<B>,
    /// The size in bytes of the storages and of the separate allocations for kernel outputs. Nothing is subtracted,
    /// since registers keep most of the memory alive until the procedure ends.
    bytes: u64,
}

impl<B: Backend> Executor<B> {
    /// Builds the program's kernels and uploads its constants. `constants` are in the order of the program's constants.
    ///
    /// # Errors
    /// If a kernel cannot be built, or a constant cannot be uploaded.
    pub fn new(
        program: Arc<Program>,
        mut backend: B,
        constants: &[Tensor],
        progress: &mut dyn FnMut(Stage),
    ) -> Result<Executor<B>, BuildError> {
        program.kernels.iter().try_for_each(held)?;
        tracing::debug_span!("build", kernels = program.kernels.len())
            .in_scope(|| backend.build(&program, progress))?;
        let mut memory = Vec::with_capacity(constants.len());
        for tensor in constants {
            let uploaded = B::Memory::upload(&mut backend, tensor).map_err(|error| BuildError {
                kernel: Name::from("constants"),
                origins: Vec::new(),
                message: error.to_string(),
            })?;
            memory.push(Arc::new(uploaded));
        }
        let constant_types = constants.iter().map(|tensor| (tensor.shape().to_vec(), tensor.dtype())).collect();
        let limits = Limits::default();
        let fuel = Fuel::of(limits);
        let idle = program.procedures.iter().map(|_| Vec::new()).collect();
        Ok(Executor {
            program,
            backend,
            constants: memory,
            constant_types,
            idle,
            made: dynamic::Calls::default(),
            kept: once::Cached::default(),
            limits,
            fuel,
            started: Instant::now(),
            printer: Box::new(|_| ()),
        })
    }

    /// Sets the callback for texts that the program prints. Without a callback they are discarded.
    pub fn on_print(&mut self, printer: impl FnMut(&str) + 'static) {
        self.printer = Box::new(printer);
    }

    /// Sets the limits of every subsequent run.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Returns messages for the user about the build ([`Backend::remarks`]).
    pub fn remarks(&self) -> &[String] {
        self.backend.remarks()
    }

    /// Copies a tensor to the device's memory and returns a value that can be passed to [`Executor::run`].
    ///
    /// # Errors
    /// If there is not enough memory, or the device fails.
    pub fn upload(&mut self, tensor: &Tensor) -> Result<Value<B::Memory>, RunError> {
        let place = Place::Shared(Arc::new(B::Memory::upload(&mut self.backend, tensor)?));
        Ok(Value::Tensor(DeviceTensor { place, shape: tensor.shape().into(), dtype: tensor.dtype() }))
    }

    /// As [`Executor::upload`], but takes ownership of the tensor, so that nothing is copied if the device's memory is
    /// the host's.
    ///
    /// # Errors
    /// If there is not enough memory, or the device fails.
    pub fn take(&mut self, tensor: Tensor) -> Result<Value<B::Memory>, RunError> {
        let (shape, dtype) = (tensor.shape().into(), tensor.dtype());
        let place = Place::Shared(Arc::new(B::Memory::take(&mut self.backend, tensor)?));
        Ok(Value::Tensor(DeviceTensor { place, shape, dtype }))
    }

    /// Returns the time that the device was busy since the previous call of this method, or `None` if the device has no
    /// clock.
    pub fn busy(&mut self) -> Option<Duration> {
        self.backend.busy()
    }

    /// Returns the peak size in bytes of the device memory in use, if the device counts it.
    pub fn peak_bytes(&self) -> Option<u64> {
        self.backend.peak_bytes()
    }

    /// Calls the entry function.
    ///
    /// # Errors
    /// If the program has no function, the number or the types of the arguments do not match the parameters, an
    /// instruction fails, a limit is exceeded, or the device fails.
    pub fn run(&mut self, arguments: Vec<Value<B::Memory>>, symbols: &Symbols) -> Result<Value<B::Memory>, RunError> {
        self.start(arguments, symbols, 1, &mut None)
    }

    /// Calls the entry function `calls` times (at least once), then waits for the device. Between the calls it does not
    /// wait. Returns the result of the last call. The limits apply to each call separately.
    ///
    /// # Errors
    /// As [`Executor::run`]. The first call that fails ends the sequence.
    pub fn run_calls(
        &mut self,
        arguments: Vec<Value<B::Memory>>,
        symbols: &Symbols,
        calls: u32,
    ) -> Result<Value<B::Memory>, RunError> {
        self.start(arguments, symbols, calls, &mut None)
    }

    /// As [`Executor::run`], and reports kernels and bindings to `observer`.
    ///
    /// # Errors
    /// As [`Executor::run`], and if a value cannot be downloaded from the device.
    pub fn run_observed(
        &mut self,
        arguments: Vec<Value<B::Memory>>,
        symbols: &Symbols,
        observer: &mut dyn Observer,
    ) -> Result<Value<B::Memory>, RunError> {
        self.start(arguments, symbols, 1, &mut Some(observer))
    }

    fn start(
        &mut self,
        arguments: Vec<Value<B::Memory>>,
        symbols: &Symbols,
        calls: u32,
        watch: &mut Watch<'_>,
    ) -> Result<Value<B::Memory>, RunError> {
        if self.program.procedures.is_empty() {
            return Err(RunError::other("the program has no function to call"));
        }
        self.started = Instant::now();
        let mut call = || {
            self.fuel = Fuel::of(self.limits);
            let (arguments, symbols) = (arguments.clone(), symbols.clone());
            let entry = Request { procedure: ProcedureId(0), arguments, symbols, to: Register(0), origin: None };
            self.call(entry, watch)
        };
        // Drop each intermediate result before the next call, so that the next call can reuse its memory.
        let before = (1..calls).try_for_each(|_| call().map(drop));
        let result = before.and_then(|()| call());
        self.backend.finish()?;
        result
    }

    /// Downloads a result from the device.
    ///
    /// # Errors
    /// For example, if the device has failed, the value contains a tuple that is too large to be walked, or there is
    /// not enough host memory.
    pub fn download(&mut self, value: &Value<B::Memory>) -> Result<Output, RunError> {
        // No storages are needed: the memory plan never puts returned tensors into a frame's storage.
        self.download_value(value, &Vec::new())
    }

    /// Downloads a value whose tensors may be in `storages`.
    fn download_value(&mut self, value: &Value<B::Memory>, storages: &Storages<B>) -> Result<Output, RunError> {
        Ok(match walked(value)? {
            Value::Tensor(tensor) => {
                let memory = memory_of::<B>(tensor, storages)?;
                Output::Tensor(memory.download(&mut self.backend, tensor.dtype, &tensor.shape)?)
            }
            Value::Shape(shape) => Output::Shape(shape.to_vec()),
            Value::Scalar(scalar) => Output::Scalar(*scalar),
            Value::String(text) => Output::String(text.clone()),
            Value::Null => Output::Null,
            Value::Tuple(fields) => Output::Tuple(
                fields.iter().map(|field| self.download_value(field, storages)).collect::<Result<_, _>>()?,
            ),
            Value::Closure(closure) => Output::Function(self.program.procedure(closure.procedure).name),
            Value::Unset => return Err(RunError::other("the program returned no value")),
        })
    }

    fn instruction(
        &mut self,
        instruction: &Instruction,
        procedure: &Procedure,
        frame: &mut Frame<B>,
        watch: &mut Watch<'_>,
    ) -> Result<(), RunError> {
        let (to, value) = match &instruction.operation {
            Operation::Kernel { .. } => return self.kernel(instruction, procedure, frame, watch),
            Operation::Bound { variable, value } => {
                let (Some(observer), Some(origin)) = (watch, instruction.origin) else { return Ok(()) };
                let value = self.download_value(frame.get(*value), &frame.storages)?;
                observer.bound(origin, *variable, value);
                return Ok(());
            }
            Operation::View { to, from, shape } => (to, self.view(frame.get(*from), shape, &frame.symbols)?),
            Operation::Copy { to, from } => (to, frame.get(*from).clone()),
            Operation::Constant { to, constant } => (to, self.constant(constant.0 as usize)?),
            Operation::Tuple { to, fields } => {
                (to, Value::Tuple(fields.iter().map(|field| frame.get(*field).clone()).collect()))
            }
            Operation::Field { to, from, index } => (to, field(frame.get(*from), *index)?),
            Operation::Shape { to, dims } => (to, Value::Shape(evaluate_shape(dims, &frame.symbols)?.into())),
            Operation::Scalar { to, value } => (to, Value::Scalar(self.scalar(value, frame)?)),
            Operation::String { to, value } => (to, Value::String(value.clone())),
            Operation::Null { to } => (to, Value::Null),
            Operation::Host { to, function, arguments, .. } => (to, self.host(*function, arguments, frame)?),
            Operation::Dynamic { to, call, operands } => (to, self.dynamic(call, operands, frame)?),
            Operation::Match { value, ty, subject } => {
                let Frame { registers, symbols, .. } = frame;
                let value = &registers[value.0 as usize];
                bind(value, ty, symbols);
                return check(value, ty, subject, symbols);
            }
            Operation::Closure { to, procedure, captured } => {
                let captured = captured.iter().map(|captured| frame.get(*captured).clone()).collect();
                let symbols = frame.symbols.clone();
                (to, Value::Closure(Arc::new(Closure { procedure: *procedure, captured, symbols })))
            }
            // `advance` executes these.
            Operation::If { .. } | Operation::Call { .. } | Operation::CallClosure { .. } => return Ok(()),
        };
        frame.registers[to.0 as usize] = value;
        Ok(())
    }

    /// Calls a host function: downloads the arguments and uploads the result.
    fn host(&mut self, function: Name, arguments: &[Register], frame: &Frame<B>) -> Result<Value<B::Memory>, RunError> {
        let down = arguments.iter().map(|argument| self.download_value(frame.get(*argument), &frame.storages));
        let down: Vec<Output> = down.collect::<Result<_, _>>()?;
        match crate::host::call(function, down)
            .map_err(|message| RunError::other(format!("R.{function}: {message}")))?
        {
            Answer::Value(value) => self.upload_value(value),
            Answer::Printed(text) => {
                (self.printer)(&text);
                Ok(Value::Tuple(Vec::new().into()))
            }
        }
    }

    /// Uploads a value to the device, and takes the bytes of its tensors from the fuel.
    fn upload_value(&mut self, value: Output) -> Result<Value<B::Memory>, RunError> {
        Ok(match value {
            Output::Tensor(tensor) => {
                self.fuel.take_bytes(tensor.bytes().len())?;
                self.upload(&tensor)?
            }
            Output::Shape(shape) => Value::Shape(shape.into()),
            Output::Scalar(scalar) => Value::Scalar(scalar),
            Output::String(text) => Value::String(text),
            Output::Null | Output::Function(_) => Value::Null,
            Output::Tuple(fields) => {
                let fields: Vec<_> =
                    fields.into_iter().map(|field| self.upload_value(field)).collect::<Result<_, _>>()?;
                Value::Tuple(fields.into())
            }
        })
    }

    fn constant(&self, at: usize) -> Result<Value<B::Memory>, RunError> {
        let (Some(memory), Some((shape, dtype))) = (self.constants.get(at), self.constant_types.get(at)) else {
            return Err(RunError::other("a constant of the program was not given"));
        };
        let place = Place::Shared(memory.clone());
        Ok(Value::Tensor(DeviceTensor { place, shape: shape.as_slice().into(), dtype: *dtype }))
    }

    fn view(
        &self,
        from: &Value<B::Memory>,
        shape: &[rx_base::Dim],
        symbols: &Symbols,
    ) -> Result<Value<B::Memory>, RunError> {
        let Value::Tensor(tensor) = from else { return Err(RunError::other("only a tensor has another shape")) };
        let shape = evaluate_shape(shape, symbols)?;
        let count = |shape: &[i64]| shape.iter().try_fold(1i64, |count, extent| count.checked_mul(*extent));
        if count(&shape) != count(&tensor.shape) {
            let message = format!("{} has another number of elements than {shape:?}", from.shown());
            return Err(RunError::other(message));
        }
        Ok(Value::Tensor(DeviceTensor { place: tensor.place.clone(), shape: shape.into(), dtype: tensor.dtype }))
    }
}

impl<B: Backend> Frame<B> {
    fn get(&self, register: Register) -> &Value<B::Memory> {
        // In bounds: the procedure assigns the register numbers and `enter` allocates that many.
        &self.registers[register.0 as usize]
    }
}

/// Checks that `rx_tensor` supports the dtype of every buffer parameter of a kernel, for all devices alike.
fn held(kernel: &Kernel) -> Result<(), BuildError> {
    let func = &kernel.loops;
    let mut params = func.buffer_params().map(|id| func.buffer(id));
    params.find(|param| Element::of(param.dtype).is_none()).map_or(Ok(()), |param| {
        let message = format!("its parameter `{}` is {}, and rx has no tensors of this dtype", param.name, param.dtype);
        Err(BuildError { kernel: kernel.name, origins: kernel.origins.to_vec(), message })
    })
}

/// Returns the memory of a tensor: a shared allocation or a storage of its frame.
fn memory_of<'a, B: Backend>(
    tensor: &'a DeviceTensor<B::Memory>,
    storages: &'a Storages<B>,
) -> Result<&'a B::Memory, RunError> {
    let memory = match &tensor.place {
        Place::Shared(memory) => Some(&**memory),
        Place::Storage(storage) => storages.get(storage.0 as usize).and_then(Option::as_ref).map(|(memory, _)| memory),
    };
    memory.ok_or_else(|| RunError::other("a tensor's memory is gone"))
}

/// Returns the value, or an error if it is a tuple that is too large to be walked by recursion.
fn walked<M>(value: &Value<M>) -> Result<&Value<M>, RunError> {
    match value {
        Value::Tuple(fields) => match fields.too_large() {
            Some(size) => Err(RunError::other(format!("a tuple is too large to be used as a whole: {size}"))),
            None => Ok(value),
        },
        _ => Ok(value),
    }
}

fn field<M>(tuple: &Value<M>, index: usize) -> Result<Value<M>, RunError> {
    match tuple {
        Value::Tuple(fields) => fields.get(index).cloned(),
        _ => None,
    }
    .ok_or_else(|| RunError::other(format!("{} has no field {index}", tuple.shown())))
}
