//! The instructions of a program, executed.

mod dynamic;
mod frames;
mod once;

use crate::backend::{Argument, Backend, Stage};
use crate::budget::{Budget, Limits};
use crate::error::{BuildError, RunError};
use crate::host::Answer;
use crate::observer::{KernelRun, Observer};
use crate::types::{Symbols, bind, check, evaluate, evaluate_shape};
use crate::value::{Closure, DeviceTensor, Output, Place, Value};
use frames::bytes_of;
use rx_base::DType;
use rx_base::Name;
use rx_ir::{PrimInfo, StructInfo};
use rx_lower::program::Branch;
use rx_lower::{Instruction, KernelId, Operation, Procedure, ProcedureId, Program, Register, Scalar};
use rx_tensor::{Scalar as Number, Tensor};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most calls inside one another; a recursion without end is an error before it is an overflow.
const MAX_DEPTH: usize = 1000;

/// Runs a program on a device.
pub struct Executor<B: Backend> {
    program: Arc<Program>,
    backend: B,
    constants: Vec<Arc<B::Memory>>,
    constant_types: Vec<(Vec<i64>, DType)>,
    /// Memory of frames that have ended, by procedure: the next call takes it.
    idle: Vec<Vec<Storages<B>>>,
    /// Programs of calls whose types were found out.
    made: dynamic::Calls<B>,
    /// Results of procedures that are computed once.
    kept: once::Kept<B::Memory>,
    depth: usize,
    /// When the run began.
    started: Instant,
    limits: Limits,
    /// Of the run that goes on.
    budget: Budget,
    printer: Printer,
}

/// Is told what the program prints, a text at a time.
type Printer = Box<dyn FnMut(&str)>;

/// A frame's memory: each with its size in bytes.
type Storages<B> = Vec<Option<(<B as Backend>::Memory, usize)>>;

/// Who is told of the run, if anybody.
type Watch<'a> = Option<&'a mut dyn Observer>;

/// A running procedure.
struct Frame<B: Backend> {
    registers: Vec<Value<B::Memory>>,
    symbols: Symbols,
    storages: Storages<B>,
}

impl<B: Backend> Executor<B> {
    /// Builds the program. `constants` are the program's, in order.
    ///
    /// # Errors
    /// Where a kernel cannot be built, or memory for a constant is lacking.
    pub fn new(
        program: Arc<Program>,
        mut backend: B,
        constants: &[Tensor],
        progress: &mut dyn FnMut(Stage),
    ) -> Result<Executor<B>, BuildError> {
        backend.build(&program, progress)?;
        let mut memory = Vec::with_capacity(constants.len());
        for tensor in constants {
            let uploaded = backend.upload(tensor).map_err(|error| BuildError {
                kernel: Name::from("constants"),
                origins: Vec::new(),
                message: error.to_string(),
            })?;
            memory.push(Arc::new(uploaded));
        }
        let constant_types = constants.iter().map(|tensor| (tensor.shape().to_vec(), tensor.dtype())).collect();
        let limits = Limits::default();
        let budget = Budget::of(limits);
        let idle = program.procedures.iter().map(|_| Vec::new()).collect();
        Ok(Executor {
            program,
            backend,
            constants: memory,
            constant_types,
            idle,
            made: dynamic::Calls::default(),
            kept: once::Kept::default(),
            depth: 0,
            limits,
            budget,
            started: Instant::now(),
            printer: Box::new(|_| ()),
        })
    }

    /// What the program prints goes to `printer`, when it prints it; before this is called, nowhere.
    pub fn on_print(&mut self, printer: impl FnMut(&str) + 'static) {
        self.printer = Box::new(printer);
    }

    /// Bounds every run from here on.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// What the user should know of the build.
    pub fn remarks(&self) -> &[String] {
        self.backend.remarks()
    }

    /// Puts a tensor into the device's memory, to be passed to [`Executor::run`].
    ///
    /// # Errors
    /// Where memory is lacking.
    pub fn upload(&mut self, tensor: &Tensor) -> Result<Value<B::Memory>, RunError> {
        let place = Place::Shared(Arc::new(self.backend.upload(tensor)?));
        Ok(Value::Tensor(DeviceTensor { place, shape: tensor.shape().into(), dtype: tensor.dtype() }))
    }

    /// As [`Executor::upload`], of a tensor that nobody else needs: on the host it is not copied.
    ///
    /// # Errors
    /// Where memory is lacking.
    pub fn take(&mut self, tensor: Tensor) -> Result<Value<B::Memory>, RunError> {
        let (shape, dtype) = (tensor.shape().into(), tensor.dtype());
        let place = Place::Shared(Arc::new(self.backend.take(tensor)?));
        Ok(Value::Tensor(DeviceTensor { place, shape, dtype }))
    }

    /// How long the device worked since this was asked last, where it has a clock of its own.
    pub fn busy(&mut self) -> Option<Duration> {
        self.backend.busy()
    }

    /// The most bytes of the device's memory that were needed at the same time, where it counts them.
    pub fn peak_bytes(&self) -> Option<u64> {
        self.backend.peak_bytes()
    }

    /// Calls the entry function.
    ///
    /// # Errors
    /// Where an argument does not fit its parameter, or something fails on the way.
    pub fn run(&mut self, arguments: Vec<Value<B::Memory>>, symbols: &Symbols) -> Result<Value<B::Memory>, RunError> {
        self.start(arguments, symbols, 1, &mut None)
    }

    /// Calls the entry function so often (at least once), one call behind the other, and waits for the device behind the last. The
    /// result is the last one's; limits are of each call.
    ///
    /// # Errors
    /// As [`Executor::run`]; no call comes behind one that fails.
    pub fn run_calls(
        &mut self,
        arguments: Vec<Value<B::Memory>>,
        symbols: &Symbols,
        calls: u32,
    ) -> Result<Value<B::Memory>, RunError> {
        self.start(arguments, symbols, calls, &mut None)
    }

    /// As [`Executor::run`], with `observer` told of kernels and bindings on the way.
    ///
    /// # Errors
    /// As [`Executor::run`], and where a value cannot be brought back from the device.
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
        self.started = Instant::now();
        let mut call = || {
            self.depth = 0;
            self.budget = Budget::of(self.limits);
            self.call(ProcedureId(0), arguments.clone(), symbols.clone(), watch)
        };
        // A result that nobody wants gives its memory to the next call, which so does the very same.
        let before = (1..calls).try_for_each(|_| call().map(drop));
        let result = before.and_then(|()| call());
        self.backend.finish()?;
        result
    }

    /// A result brought back from the device.
    ///
    /// # Errors
    /// Where the device has failed.
    pub fn download(&mut self, value: &Value<B::Memory>) -> Result<Output, RunError> {
        // The plan keeps what is returned out of frames.
        self.bring_back(value, &Vec::new())
    }

    /// A value of a frame, or of none, brought back from the device.
    fn bring_back(&mut self, value: &Value<B::Memory>, storages: &Storages<B>) -> Result<Output, RunError> {
        Ok(match value {
            Value::Tensor(tensor) => {
                let memory = memory_of::<B>(tensor, storages)?;
                Output::Tensor(self.backend.download(memory, tensor.dtype, &tensor.shape)?)
            }
            Value::Shape(shape) => Output::Shape(shape.to_vec()),
            Value::Scalar(scalar) => Output::Scalar(*scalar),
            Value::String(text) => Output::String(text.clone()),
            Value::Null => Output::Null,
            Value::Tuple(fields) => {
                Output::Tuple(fields.iter().map(|field| self.bring_back(field, storages)).collect::<Result<_, _>>()?)
            }
            Value::Closure(closure) => Output::Function(self.program.procedure(closure.procedure).name),
            Value::Unset => return Err(RunError::other("the program returned no value")),
        })
    }

    fn call(
        &mut self,
        id: ProcedureId,
        arguments: Vec<Value<B::Memory>>,
        mut symbols: Symbols,
        watch: &mut Watch<'_>,
    ) -> Result<Value<B::Memory>, RunError> {
        let program = self.program.clone();
        let procedure = program.procedure(id);
        if arguments.len() != procedure.params.len() + procedure.captured {
            let message = format!("`{}` was called with {} arguments", procedure.name, arguments.len());
            return Err(RunError::other(message));
        }
        if let Some(known) = procedure.once.then(|| self.kept.of(id, &arguments)).flatten() {
            return Ok(known);
        }
        if self.depth >= MAX_DEPTH {
            return Err(RunError::other(format!("`{}` calls itself more than {MAX_DEPTH} times", procedure.name)));
        }
        for (argument, (_, ty)) in arguments.iter().zip(&procedure.params) {
            bind(argument, ty, &mut symbols);
        }
        let given = procedure.once.then(|| arguments.clone());
        let mut registers = arguments;
        registers.resize_with(procedure.registers as usize, || Value::Unset);
        let storages = match self.idle[id.0 as usize].pop() {
            Some(storages) => storages,
            None => self.storages(procedure, &symbols)?,
        };
        let mut frame = Frame { registers, symbols, storages };
        self.depth += 1;
        let done = self.code(&procedure.code, procedure, &mut frame, watch);
        self.depth -= 1;
        let result = done.map(|()| frame.registers[procedure.result.0 as usize].clone());
        self.idle[id.0 as usize].push(frame.storages);
        if let (Some(given), Ok(result)) = (given, &result) {
            self.kept.keep(id, given, result);
        }
        result
    }

    fn code(
        &mut self,
        code: &[Instruction],
        procedure: &Procedure,
        frame: &mut Frame<B>,
        watch: &mut Watch<'_>,
    ) -> Result<(), RunError> {
        for instruction in code {
            self.budget.take_rounds(1).map_err(|error| error.at(instruction.origin))?;
            self.instruction(instruction, procedure, frame, watch).map_err(|error| error.at(instruction.origin))?;
        }
        Ok(())
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
                let value = self.bring_back(frame.get(*value), &frame.storages)?;
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
            Operation::Match { value, ty, what } => {
                let Frame { registers, symbols, .. } = frame;
                let value = &registers[value.0 as usize];
                bind(value, ty, symbols);
                return check(value, ty, what, symbols);
            }
            Operation::If { arms, otherwise, to } => {
                let mut chosen: &Branch = otherwise;
                for (code, condition, branch) in arms {
                    self.code(code, procedure, frame, watch)?;
                    if self.truth(frame.get(*condition).clone(), frame)? {
                        chosen = branch;
                        break;
                    }
                }
                self.code(&chosen.code, procedure, frame, watch)?;
                (to, frame.get(chosen.result).clone())
            }
            Operation::Call { to, procedure, arguments } => {
                let arguments = arguments.iter().map(|argument| frame.get(*argument).clone()).collect();
                (to, self.call(*procedure, arguments, Symbols::default(), watch)?)
            }
            Operation::Closure { to, procedure, captured } => {
                let captured = captured.iter().map(|captured| frame.get(*captured).clone()).collect();
                let symbols = frame.symbols.clone();
                (to, Value::Closure(Arc::new(Closure { procedure: *procedure, captured, symbols })))
            }
            Operation::CallClosure { to, closure, arguments } => {
                let Value::Closure(closure) = frame.get(*closure).clone() else {
                    return Err(RunError::other("what is called is no function"));
                };
                let arguments = arguments.iter().map(|argument| frame.get(*argument).clone());
                let arguments = arguments.chain(closure.captured.iter().cloned()).collect();
                let mut symbols = closure.symbols.clone();
                // A scalar parameter is a symbol of its function; where that calls itself, each call has its own.
                for (_, ty) in &self.program.procedure(closure.procedure).params {
                    if let StructInfo::Prim(PrimInfo { value: Some(value), .. }) = ty
                        && let Some(symbol) = value.as_symbol()
                    {
                        symbols.remove(&symbol);
                    }
                }
                (to, self.call(closure.procedure, arguments, symbols, watch)?)
            }
        };
        frame.registers[to.0 as usize] = value;
        Ok(())
    }

    /// Calls a function of the host: arguments come down from the device, and the result goes up.
    fn host(&mut self, function: Name, arguments: &[Register], frame: &Frame<B>) -> Result<Value<B::Memory>, RunError> {
        let down = arguments.iter().map(|argument| self.bring_back(frame.get(*argument), &frame.storages));
        let down: Vec<Output> = down.collect::<Result<_, _>>()?;
        match crate::host::call(function, down)
            .map_err(|message| RunError::other(format!("R.{function}: {message}")))?
        {
            Answer::Value(value) => self.bring_up(value),
            Answer::Printed(text) => {
                (self.printer)(&text);
                Ok(Value::Tuple(Arc::new([])))
            }
        }
    }

    /// A value of the host, in the device's memory.
    fn bring_up(&mut self, value: Output) -> Result<Value<B::Memory>, RunError> {
        Ok(match value {
            Output::Tensor(tensor) => {
                self.budget.take_bytes(tensor.bytes().len())?;
                self.upload(&tensor)?
            }
            Output::Shape(shape) => Value::Shape(shape.into()),
            Output::Scalar(scalar) => Value::Scalar(scalar),
            Output::String(text) => Value::String(text),
            Output::Null | Output::Function(_) => Value::Null,
            Output::Tuple(fields) => {
                let fields: Vec<_> = fields.into_iter().map(|field| self.bring_up(field)).collect::<Result<_, _>>()?;
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

    fn kernel(
        &mut self,
        instruction: &Instruction,
        procedure: &Procedure,
        frame: &mut Frame<B>,
        watch: &mut Watch<'_>,
    ) -> Result<(), RunError> {
        let Operation::Kernel { kernel, inputs, outputs, scalars } = &instruction.operation else { return Ok(()) };
        let scalars: Vec<Number> = scalars.iter().map(|scalar| self.scalar(scalar, frame)).collect::<Result<_, _>>()?;
        // Outputs are taken out of the frame while the kernel runs: the plan keeps them apart from its inputs.
        let mut written = Vec::with_capacity(outputs.len());
        for output in outputs {
            let shape = evaluate_shape(&output.shape, &frame.symbols)?;
            let bytes = bytes_of(&shape, output.dtype)?;
            self.budget.take_bytes(bytes)?;
            let (memory, size) = match output.storage {
                Some(storage) => self.storage(storage, bytes, procedure, frame)?,
                None => (self.backend.allocate(bytes)?, bytes),
            };
            written.push(((memory, shape, output.dtype), size));
        }
        let (mut memory, sizes): (Vec<_>, Vec<usize>) = written.into_iter().unzip();
        let mut arguments = Vec::with_capacity(inputs.len());
        for input in inputs {
            let Value::Tensor(tensor) = &frame.registers[input.0 as usize] else {
                return Err(RunError::other("a kernel takes tensors"));
            };
            let place = memory_of::<B>(tensor, &frame.storages)?;
            arguments.push(Argument { memory: place, shape: &tensor.shape, dtype: tensor.dtype });
        }
        let done = match watch.as_mut().filter(|observer| observer.is_timing()) {
            None => self.backend.run(*kernel, &arguments, &mut memory, &scalars, &mut self.budget),
            Some(observer) => {
                let start = self.started.elapsed();
                let time = self.timed(*kernel, &arguments, &mut memory, &scalars);
                let inputs = arguments.iter().map(|argument| argument.shape);
                let shapes: Vec<&[i64]> = inputs.chain(memory.iter().map(|(_, shape, _)| shape.as_slice())).collect();
                let scalars: Vec<i64> = scalars.iter().map(|scalar| scalar.as_int().unwrap_or(0)).collect();
                let (kernel, origin) = (*kernel, instruction.origin);
                time.map(|time| {
                    observer.kernel(&KernelRun { kernel, origin, start, time, shapes: &shapes, scalars: &scalars });
                })
            }
        };
        if let (Some(observer), Ok(())) = (watch, &done) {
            observer.passed();
        }
        for ((output, (memory, shape, dtype)), size) in outputs.iter().zip(memory).zip(sizes) {
            let place = match output.storage {
                Some(storage) => {
                    frame.storages[storage.0 as usize] = Some((memory, size));
                    Place::Storage(storage)
                }
                None => Place::Shared(Arc::new(memory)),
            };
            frame.registers[output.to.0 as usize] = Value::Tensor(DeviceTensor { place, shape: shape.into(), dtype });
        }
        done
    }

    /// Runs a kernel while nothing else runs; gives its time.
    fn timed(
        &mut self,
        kernel: KernelId,
        inputs: &[Argument<'_, B::Memory>],
        outputs: &mut [(B::Memory, Vec<i64>, DType)],
        scalars: &[Number],
    ) -> Result<Duration, RunError> {
        self.backend.finish()?;
        self.backend.busy();
        let start = Instant::now();
        self.backend.run(kernel, inputs, outputs, scalars, &mut self.budget)?;
        self.backend.finish()?;
        let time = start.elapsed();
        // What the host needs to ask for it is not the kernel's.
        Ok(self.backend.busy().unwrap_or(time))
    }

    fn scalar(&mut self, scalar: &Scalar, frame: &Frame<B>) -> Result<Number, RunError> {
        match scalar {
            Scalar::Int(dim) => match evaluate(dim, &frame.symbols) {
                Some(value) => Ok(Number::Int(value)),
                None => Err(RunError::other(format!("the value of {dim} is not known"))),
            },
            Scalar::Float(value) => Ok(Number::Float(*value)),
            Scalar::Bool(value) => Ok(Number::Int(i64::from(*value))),
            Scalar::Register(register) => self.number(frame.get(*register).clone(), frame),
        }
    }

    /// The number a value is: a scalar, or a tensor of one element.
    fn number(&mut self, value: Value<B::Memory>, frame: &Frame<B>) -> Result<Number, RunError> {
        match &value {
            Value::Scalar(scalar) => Ok(*scalar),
            Value::Tensor(tensor) => {
                let memory = memory_of::<B>(tensor, &frame.storages)?;
                let tensor = self.backend.download(memory, tensor.dtype, &tensor.shape)?;
                tensor.get(0).ok_or_else(|| RunError::other("a tensor without elements has no value"))
            }
            _ => Err(RunError::other(format!("{} is no number", value.shown()))),
        }
    }

    fn truth(&mut self, value: Value<B::Memory>, frame: &Frame<B>) -> Result<bool, RunError> {
        Ok(match self.number(value, frame)? {
            Number::Int(value) => value != 0,
            Number::Float(value) => value != 0.0,
        })
    }
}

impl<B: Backend> Frame<B> {
    fn get(&self, register: Register) -> &Value<B::Memory> {
        // Registers are numbered by the procedure, which says how many there are.
        &self.registers[register.0 as usize]
    }
}

/// The memory of a tensor, which may be its frame's.
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

fn field<M>(tuple: &Value<M>, index: usize) -> Result<Value<M>, RunError> {
    match tuple {
        Value::Tuple(fields) => fields.get(index).cloned(),
        _ => None,
    }
    .ok_or_else(|| RunError::other(format!("{} has no field {index}", tuple.shown())))
}
