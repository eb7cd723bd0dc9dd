//! Compiled functions and their calls.

use crate::emit::{Check, Emitter};
use crate::error::{CompileError, RunError};
use crate::prepare::{Preparation, PreparedStep};
use crate::{product, runtime, window};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, Signature, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use rx_base::DType;
use rx_loops::{IterationCount, Scheduled, legalize_sub_byte, schedule};
use rx_tensor::Scalar;
use rx_tir::{BufferId, PrimFunc, bind_symbols, evaluate_index};
use std::sync::{Arc, Mutex};

/// The signature of generated code: takes pointers by buffer, values by variable and the shared state; returns 0, or
/// the index of the failed check plus 1.
type Code = unsafe extern "C" fn(*const *mut u8, *const i64, *mut State) -> i32;

/// The state that generated code shares with its caller.
#[repr(C)]
pub(crate) struct State {
    /// The index of a failed bounds check.
    index: i64,
    /// The extent of the axis of a failed bounds check.
    extent: i64,
    /// The iterations that remain of the limit.
    pub(crate) iterations: i64,
}

/// The machine code of several functions.
#[derive(Clone)]
pub struct CpuModule {
    kernels: Vec<Result<Arc<CpuKernel>, CompileError>>,
}

/// The machine code of a function, which can be called from any thread.
pub struct CpuKernel {
    func: PrimFunc,
    /// Buffers that a call needs besides its arguments.
    temporaries: Vec<BufferId>,
    /// Whether each buffer parameter may be written, in order.
    written: Vec<bool>,
    checks: Vec<Check>,
    iterations: IterationCount,
    code: Code,
    /// Keeps the code mapped.
    _memory: Arc<Memory>,
}

/// The executable memory of a module's functions, freed when the last kernel is dropped.
struct Memory(Mutex<Option<JITModule>>);

impl Drop for Memory {
    fn drop(&mut self) {
        if let Ok(module) = self.0.get_mut()
            && let Some(module) = module.take()
        {
            // SAFETY: kernels hold this memory, and code is called through kernels only.
            unsafe { module.free_memory() };
        }
    }
}

/// A buffer of a call.
pub enum Argument<'a> {
    /// For reading only.
    Read(&'a [u8]),
    /// For reading and writing.
    Write(&'a mut [u8]),
}

impl Argument<'_> {
    fn len(&self) -> usize {
        match self {
            Argument::Read(bytes) => bytes.len(),
            Argument::Write(bytes) => bytes.len(),
        }
    }
}

/// The limits of a call.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximal number of loop iterations. [`CpuKernel::run_within`] subtracts from it those that it counts.
    pub iterations: u64,
    /// The maximal size of all temporaries in bytes, each rounded up to a multiple of 64.
    pub bytes: u64,
}

/// No limits.
impl Default for Limits {
    fn default() -> Limits {
        Limits { iterations: u64::MAX, bytes: u64::MAX }
    }
}

/// Memory for temporaries, reused between calls.
#[derive(Default)]
pub struct Scratch(Vec<Line>);

/// A cache line, used for alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

const LINE: usize = 64;

impl CpuModule {
    /// Compiles functions. Each is scheduled by [`rx_loops::schedule`], which marks every access that must be
    /// checked. A function that cannot be compiled does not affect the others; [`CpuModule::kernel`] returns the
    /// reason.
    ///
    /// # Errors
    /// If code for this host cannot be generated at all.
    pub fn compile(funcs: &[&PrimFunc]) -> Result<CpuModule, CompileError> {
        CpuModule::compile_with(funcs, &mut |_| {})
    }

    /// As [`CpuModule::compile`]. `progress` is called after each function with the number of functions that are done,
    /// including those that could not be compiled.
    ///
    /// # Errors
    /// If code for this host cannot be generated at all.
    pub fn compile_with(funcs: &[&PrimFunc], progress: &mut dyn FnMut(usize)) -> Result<CpuModule, CompileError> {
        CpuModule::compile_scheduled(funcs, schedule, progress)
    }

    /// As [`CpuModule::compile_with`], with a scheduling function of the caller, who is responsible for accesses that
    /// it leaves unchecked.
    pub(crate) fn compile_scheduled(
        funcs: &[&PrimFunc],
        schedule: fn(&PrimFunc) -> Scheduled,
        progress: &mut dyn FnMut(usize),
    ) -> Result<CpuModule, CompileError> {
        let (mut module, fused) = host_module()?;
        let mut contexts = (module.make_context(), FunctionBuilderContext::new());
        let mut compiled = Vec::with_capacity(funcs.len());
        for (at, func) in funcs.iter().enumerate() {
            let scheduled = schedule(&legalize_sub_byte(func));
            let result = define(&mut module, &mut contexts, func, scheduled, fused, at);
            if result.is_err() {
                module.clear_context(&mut contexts.0);
                contexts.1 = FunctionBuilderContext::new();
            }
            compiled.push(result);
            progress(at + 1);
        }
        module.finalize_definitions().map_err(generator)?;
        let address = |defined: Defined| (module.get_finalized_function(defined.id), defined);
        let codes: Vec<_> = compiled.into_iter().map(|result| result.map(address)).collect();
        let memory = Arc::new(Memory(Mutex::new(Some(module))));
        let kernels = codes.into_iter().map(|result| {
            let (code, defined) = result?;
            // SAFETY: the code was made with this signature.
            let code = unsafe { std::mem::transmute::<*const u8, Code>(code) };
            let written = written_params(&defined.func, &defined.steps);
            let iterations = defined.iterations;
            Ok(Arc::new(CpuKernel {
                func: defined.func,
                temporaries: defined.temporaries,
                written,
                checks: defined.checks,
                iterations,
                code,
                _memory: memory.clone(),
            }))
        });
        Ok(CpuModule { kernels: kernels.collect() })
    }

    /// Returns the machine code of a function for this host as text, in Cranelift's notation.
    ///
    /// # Errors
    /// If the function cannot be compiled.
    pub fn listing(func: &PrimFunc) -> Result<String, CompileError> {
        let scheduled = schedule(&legalize_sub_byte(func));
        let (mut module, fused) = host_module()?;
        let mut contexts = (module.make_context(), FunctionBuilderContext::new());
        contexts.0.set_disasm(true);
        let (steps, _) = Preparation::of(&scheduled);
        emit(&mut module, &mut contexts, &scheduled.func, &steps, fused)?;
        let (context, _) = &mut contexts;
        let compiled = context.compile(module.isa(), &mut ControlPlane::default());
        let text = compiled.map_err(|error| generator(format!("{:?}", error.inner)))?.vcode.clone();
        text.ok_or_else(|| generator("no listing"))
    }

    /// Returns the kernel of the function at this position in the compiled list.
    ///
    /// # Errors
    /// The reason why it could not be compiled, or [`CompileError::Unsupported`] if there is no function at the
    /// position.
    pub fn kernel(&self, at: usize) -> Result<&Arc<CpuKernel>, CompileError> {
        match self.kernels.get(at) {
            Some(Ok(kernel)) => Ok(kernel),
            Some(Err(error)) => Err(error.clone()),
            None => Err(CompileError::Unsupported("no such function".into())),
        }
    }
}

fn generator(error: impl std::fmt::Display) -> CompileError {
    CompileError::Generator(error.to_string())
}

/// Creates a module for this host. Also returns whether the host has fused multiply-add, which is assumed for every
/// architecture other than x86-64.
fn host_module() -> Result<(JITModule, bool), CompileError> {
    let mut flags = settings::builder();
    for (name, value) in [
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("opt_level", "speed"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ] {
        flags.set(name, value).map_err(generator)?;
    }
    let host = cranelift_native::builder().map_err(generator)?;
    let isa = host.finish(settings::Flags::new(flags)).map_err(generator)?;
    let fused = match isa.triple().architecture {
        target_lexicon::Architecture::X86_64 => {
            isa.isa_flags().iter().any(|flag| flag.name == "has_fma" && flag.as_bool() == Some(true))
        }
        _ => true,
    };
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    let products = [DType::FLOAT32, DType::FLOAT64].into_iter().filter_map(product::routine);
    for routine in runtime::all().into_iter().chain(products).chain([window::routine()]) {
        builder.symbol(routine.symbol, routine.address);
    }
    Ok((JITModule::new(builder), fused))
}

/// A function that is defined in the module but has no address yet.
struct Defined {
    id: FuncId,
    func: PrimFunc,
    steps: Vec<PreparedStep>,
    temporaries: Vec<BufferId>,
    checks: Vec<Check>,
    iterations: IterationCount,
}

fn define(
    module: &mut JITModule,
    contexts: &mut (Context, FunctionBuilderContext),
    func: &PrimFunc,
    scheduled: Scheduled,
    fused: bool,
    at: usize,
) -> Result<Defined, CompileError> {
    // Count the iterations of the function as written, not as scheduled, so that scheduling does not change the count.
    let iterations = IterationCount::of(func);
    let (steps, allocations) = Preparation::of(&scheduled);
    let (checks, signature) = emit(module, contexts, &scheduled.func, &steps, fused)?;
    let (context, _) = contexts;
    let name = format!("kernel{at}");
    let id = module.declare_function(&name, Linkage::Local, &signature).map_err(generator)?;
    module.define_function(id, context).map_err(|error| generator(format!("{error:?}")))?;
    module.clear_context(context);
    let Scheduled { func, mut temporaries, .. } = scheduled;
    temporaries.extend(allocations);
    Ok(Defined { id, func, steps, temporaries, checks, iterations })
}

/// Emits a function's code into the context; returns its checks and signature.
fn emit(
    module: &mut JITModule,
    (context, builder_context): &mut (Context, FunctionBuilderContext),
    func: &PrimFunc,
    steps: &[PreparedStep],
    fused: bool,
) -> Result<(Vec<Check>, Signature), CompileError> {
    let mut signature = module.make_signature();
    signature.params.extend([AbiParam::new(types::I64); 3]);
    signature.returns.push(AbiParam::new(types::I32));
    context.func.signature = signature.clone();
    let builder = FunctionBuilder::new(&mut context.func, builder_context);
    let mut emitter = Emitter::new(func, builder, module, steps, fused)?;
    emitter.steps(steps)?;
    Ok((emitter.finish(), signature))
}

fn written_params(func: &PrimFunc, steps: &[PreparedStep]) -> Vec<bool> {
    let mut written = vec![false; func.buffers.len()];
    let mut mark = |buffer: BufferId| {
        if let Some(slot) = written.get_mut(buffer.0 as usize) {
            *slot = true;
        }
    };
    PreparedStep::each(steps, &mut |step| match step {
        PreparedStep::Nest(body) => body.walk(&mut |stmt| {
            if let rx_tir::Stmt::Store { buffer, .. } = stmt {
                mark(*buffer);
            }
        }),
        PreparedStep::Gemm(gemm) => mark(gemm.c.buffer),
        PreparedStep::WindowedSum(window) => mark(window.c.buffer),
        PreparedStep::Loop { .. } => {}
    });
    func.buffer_params().map(|buffer| written.get(buffer.0 as usize).copied().unwrap_or(true)).collect()
}

impl CpuKernel {
    /// Returns the number of checks in the code.
    pub(crate) fn check_count(&self) -> usize {
        self.checks.len()
    }

    /// Whether each buffer parameter may be written, in order; those must be passed as [`Argument::Write`].
    pub fn written(&self) -> &[bool] {
        &self.written
    }

    /// Calls the function. Buffers and their shapes are in the order of its buffer parameters, scalars in the order of
    /// its scalar parameters. Buffers are dense and row-major, with at least as many bytes as their shapes need.
    ///
    /// # Errors
    /// If the arguments do not match the parameters, there is not enough memory for temporaries, or a check in the
    /// function fails. After a failed check, the contents of the written buffers are unspecified.
    pub fn run(
        &self,
        buffers: &mut [Argument<'_>],
        shapes: &[&[i64]],
        scalars: &[Scalar],
        scratch: &mut Scratch,
    ) -> Result<(), RunError> {
        self.run_within(buffers, shapes, scalars, scratch, &mut Limits::default())
    }

    /// As [`CpuKernel::run`], with limits. Before the run, it subtracts the count of [`rx_loops::IterationCount`] from
    /// `limits.iterations`; during the run, the iterations of the loops that it cannot count in advance.
    ///
    /// # Errors
    /// As [`CpuKernel::run`], and [`RunError::Iterations`] or [`RunError::TooLarge`] if a limit would be exceeded.
    pub fn run_within(
        &self,
        buffers: &mut [Argument<'_>],
        shapes: &[&[i64]],
        scalars: &[Scalar],
        scratch: &mut Scratch,
        limits: &mut Limits,
    ) -> Result<(), RunError> {
        let wanted = self.written.len();
        if buffers.len() != wanted || shapes.len() != wanted {
            return Err(RunError::BufferCount { wanted, passed: buffers.len().min(shapes.len()) });
        }
        let (symbols, slots) = self.bind(shapes, scalars)?;
        limits.iterations =
            limits.iterations.checked_sub(self.iterations.count(&symbols)).ok_or(RunError::Iterations)?;
        let mut pointers = vec![std::ptr::null_mut(); self.func.buffers.len()];
        for ((id, argument), written) in self.func.buffer_params().zip(buffers.iter_mut()).zip(&self.written) {
            let buffer = self.func.buffer(id);
            let wanted = self.bytes(id, &symbols)?;
            if argument.len() < wanted {
                return Err(RunError::BufferSize { buffer: buffer.name, wanted, passed: argument.len() });
            }
            pointers[id.0 as usize] = match argument {
                Argument::Write(bytes) => bytes.as_mut_ptr(),
                Argument::Read(_) if *written => return Err(RunError::ReadOnly { buffer: buffer.name }),
                // The pointer is never written through, since the function does not write this buffer.
                Argument::Read(bytes) => bytes.as_ptr().cast_mut(),
            };
        }
        let mut needed = 0usize;
        let mut offsets = Vec::with_capacity(self.temporaries.len());
        for id in &self.temporaries {
            let too_large = RunError::TooLarge { buffer: self.func.buffer(*id).name };
            offsets.push((id, needed));
            let lines = self.bytes(*id, &symbols)?.div_ceil(LINE);
            needed = needed.checked_add(lines).ok_or(too_large)?;
        }
        if (needed as u64).saturating_mul(LINE as u64) > limits.bytes {
            return Err(RunError::TooLarge { buffer: self.func.name });
        }
        scratch.grow(needed).map_err(|()| RunError::TooLarge { buffer: self.func.name })?;
        let lines = &mut scratch.0[..needed];
        for (id, offset) in offsets {
            pointers[id.0 as usize] = lines[offset..].as_mut_ptr().cast();
        }
        let given = i64::try_from(limits.iterations).unwrap_or(i64::MAX);
        let mut state = State { index: 0, extent: 0, iterations: given };
        // SAFETY: every buffer that the code accesses has the bytes of its shape, and its shape was compared with the
        // function's for these values. Indices are below extents: by proof, by a check in the code or, in code without
        // checks, by a run of the checked code (`check_cost`). Written buffers are borrowed mutably, so nothing aliases
        // them. Every variable that the code reads has a value.
        let code = unsafe { (self.code)(pointers.as_ptr(), slots.as_ptr(), &mut state) };
        limits.iterations = limits.iterations.saturating_sub((given - state.iterations).unsigned_abs());
        match usize::try_from(code).ok().and_then(|code| code.checked_sub(1)) {
            None => Ok(()),
            Some(at) => Err(self.failed(at, &state)),
        }
    }

    /// Returns the values of the function's scalars and symbols by variable, as integers (those of float scalars are
    /// not meaningful), and the slots of all variables in the form that generated code reads: integers directly, floats
    /// as the bits of a `float64`, and 0 for variables that the body binds.
    fn bind(&self, shapes: &[&[i64]], scalars: &[Scalar]) -> Result<(Vec<Option<i64>>, Vec<i64>), RunError> {
        let whole: Vec<i64> = scalars.iter().map(|scalar| scalar.as_int().unwrap_or(0)).collect();
        let symbols = bind_symbols(&self.func, shapes, &whole)?;
        let mut slots: Vec<i64> = symbols.iter().map(|value| value.unwrap_or(0)).collect();
        for (var, scalar) in self.func.scalar_params().zip(scalars) {
            if self.func.var(var).dtype.is_float() {
                slots[var.0 as usize] = scalar.as_float().to_bits() as i64;
            }
        }
        Ok((symbols, slots))
    }

    /// Returns the size of a buffer in bytes, or [`RunError::TooLarge`] if it cannot be computed. Negative extents
    /// count as 0.
    fn bytes(&self, id: BufferId, symbols: &[Option<i64>]) -> Result<usize, RunError> {
        let buffer = self.func.buffer(id);
        let too_large = || RunError::TooLarge { buffer: buffer.name };
        let mut bytes = usize::try_from(buffer.dtype.bytes()).map_err(|_| too_large())?;
        for extent in &buffer.shape {
            let extent = evaluate_index(extent, &|var| symbols.get(var.0 as usize).copied().flatten());
            // An extent that cannot be evaluated, for example because it overflows, is reported as too large.
            let extent = usize::try_from(extent.ok_or_else(too_large)?.max(0)).map_err(|_| too_large())?;
            bytes = bytes.checked_mul(extent).ok_or_else(too_large)?;
        }
        Ok(bytes)
    }

    fn failed(&self, at: usize, failure: &State) -> RunError {
        match self.checks.get(at) {
            Some(Check::Bounds { site, buffer, axis }) => RunError::OutOfBounds {
                site: *site,
                buffer: self.func.buffer(*buffer).name,
                axis: *axis,
                index: failure.index,
                extent: failure.extent,
            },
            Some(Check::Division { site }) => RunError::DivisionByZero { site: *site },
            Some(Check::Assert { site, message }) => RunError::Assert { site: *site, message: *message },
            Some(Check::Iterations) => RunError::Iterations,
            // Unreachable: the code returns only numbers of its checks.
            None => RunError::DivisionByZero { site: rx_tir::Site { origin: None, operator: self.func.name } },
        }
    }
}

impl Scratch {
    /// Clears the memory, so that the contents of temporaries do not depend on previous calls.
    pub(crate) fn clear(&mut self) {
        self.0.fill(Line([0; LINE]));
    }

    fn grow(&mut self, lines: usize) -> Result<(), ()> {
        if let Some(more) = lines.checked_sub(self.0.len()) {
            self.0.try_reserve_exact(more).map_err(drop)?;
            self.0.resize(lines, Line([0; LINE]));
        }
        Ok(())
    }
}
