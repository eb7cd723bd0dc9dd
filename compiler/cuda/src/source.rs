//! What is printed, and what a host must know to launch it.

use crate::statements::Unsupported;
use rustc_hash::FxHashMap;
use rx_base::{DType, Name};
use rx_ir::Origin;
use rx_tir::{Expr, Param, Site, VarId, evaluate_index};
use std::fmt;
use std::ops::Range;

/// Threads of a block where a rule has no reason for another number.
pub const BLOCK_SIZE: u32 = 256;

/// The driver's limits of blocks on axes x, y and z.
pub const MOST_BLOCKS: [u32; 3] = [i32::MAX.cast_unsigned(), 65_535, 65_535];

/// Rounds that a `while` may take in a thread: a device that never ends cannot be stopped from outside.
pub const MOST_ROUNDS: i64 = 1 << 32;

/// Launches that one call of a function may make.
pub const MOST_LAUNCHES: usize = 1 << 16;

/// The CUDA C of some functions.
#[derive(Clone, Debug)]
pub struct CudaSource {
    /// The text: helpers that are used, then the kernels. It includes no header.
    pub text: String,
    /// How many bytes of the text stand before the kernels.
    pub head_bytes: usize,
    /// One per function given, in order.
    pub functions: Vec<CudaFunction>,
    /// The checks in the text, by the number a failed one writes.
    pub sites: Vec<CheckSite>,
    /// How the statements of the functions were scheduled, in order.
    pub choices: Vec<Choice>,
}

/// How some statements of a function are run, and what was tried before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The function, by its number.
    pub function: usize,
    /// The blocks that the statements hold.
    pub blocks: Vec<String>,
    /// The rule that took them, by its name in [`crate::rules`].
    pub rule: &'static str,
    /// The kernels it made.
    pub kernels: Vec<String>,
    /// Its tiles and why it chose them; empty where there is nothing to say.
    pub note: String,
    /// The rules that were asked before, and why each declined.
    pub declined: Vec<(&'static str, String)>,
}

/// The CUDA C of some functions, to be read.
#[derive(Clone, Debug)]
pub struct Listing {
    /// What stands before the kernels, with the helpers that are used.
    pub head: String,
    /// The kernels of each function given, in order; or why it has none.
    pub functions: Vec<Result<String, Unsupported>>,
    /// The kernels of each function, in order; of one that has none, none. Their bytes are of the function's text.
    pub kernels: Vec<Vec<KernelInfo>>,
    /// How the functions' statements were scheduled, in order.
    pub choices: Vec<Choice>,
}

/// How a function is run: temporaries are allocated, then its kernels launched in order.
#[derive(Clone, Debug)]
pub struct CudaFunction {
    /// Its name.
    pub name: Name,
    /// The statements of the program that it computes.
    pub origins: Vec<Origin>,
    /// What a call passes, as the function's parameters.
    pub params: Vec<Param>,
    /// Its kernels, in order.
    pub kernels: Vec<KernelInfo>,
    /// Buffers that live during the call.
    pub temporaries: Vec<Temporary>,
    /// The dtype of each variable, for passing scalars.
    pub vars: Vec<DType>,
    /// Extents and dtypes of the buffer parameters, in order.
    pub buffers: Vec<(Vec<Expr>, DType)>,
}

/// A loop that the host runs: kernels are launched in each of its rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct HostLoop {
    /// What it counts; kernels in it may be passed it.
    pub var: VarId,
    /// Its first value, over the function's scalars and symbols and what loops around it count.
    pub start: Expr,
    /// How many values; none where it is not positive.
    pub extent: Expr,
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct KernelInfo {
    /// Its name in the text.
    pub name: String,
    /// Its bytes of the source's text.
    pub text: Range<usize>,
    /// The loops of the host that it is launched in, outermost first.
    pub rounds: Vec<HostLoop>,
    /// Where it does not hold, nothing is launched; over what the host knows.
    pub guard: Option<Expr>,
    /// How many blocks, and of what.
    pub shape: LaunchShape,
    /// Iterations of the innermost loops of the statements it computes, as they are written: an `int64` over what the host knows.
    pub work: Expr,
    /// What is passed, in order.
    pub arguments: Vec<Argument>,
    /// What is passed behind that: tensors whose tiles it has copied.
    pub maps: Vec<TensorMap>,
}

/// A tensor whose tiles a kernel of `sm_90a` has copied (TMA): what a `CUtensorMap` is made of when the kernel is launched. Tiles lie in
/// shared memory in lines of 128 bytes, whose 16-byte chunks are permuted by the line's number; what is outside the tensor is 0 there.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMap {
    /// The buffer it lies in.
    pub buffer: Argument,
    /// The bytes of the buffer before it.
    pub offset: Expr,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Its axes, innermost first: extents, and bytes from one to the next. At most five.
    pub axes: Vec<(Expr, Expr)>,
    /// Extents of a tile, as many.
    pub tile: Vec<u32>,
}

/// How many threads a kernel is launched with.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchShape {
    /// Blocks on axes x, y and z: `int64` over the function's scalars and symbols and what the host's loops count. Nothing is
    /// launched where one is not positive.
    pub grid: [Expr; 3],
    /// Threads of a block on axes x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory that a block has beside what its text declares with a size.
    pub shared_bytes: u32,
}

impl LaunchShape {
    /// One thread.
    pub fn single() -> LaunchShape {
        LaunchShape::blocks(Expr::int(1), 1)
    }

    /// So many blocks of so many threads along axis x.
    pub fn blocks(blocks: Expr, threads: u32) -> LaunchShape {
        LaunchShape { grid: [blocks, Expr::int(1), Expr::int(1)], block: [threads, 1, 1], shared_bytes: 0 }
    }

    /// At least so many threads, in blocks of [`BLOCK_SIZE`].
    pub fn threads(threads: Expr) -> LaunchShape {
        let size = i64::from(BLOCK_SIZE);
        let blocks = (threads + Expr::int(size - 1)).floor_div(Expr::int(size));
        LaunchShape::blocks(blocks, BLOCK_SIZE)
    }

    /// Whether it is one thread, whatever the extents are.
    pub fn is_single(&self) -> bool {
        self.block == [1, 1, 1] && self.grid.iter().all(|blocks| blocks.as_int() == Some(1))
    }

    /// Threads of a block.
    pub fn block_threads(&self) -> u32 {
        self.block.iter().product()
    }
}

/// An argument of a kernel; of a launch, with the scalar's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Argument<S = VarId> {
    /// The pointer of the function's buffer parameter of this number, scalars not counted.
    Buffer(usize),
    /// The pointer of a temporary.
    Temporary(usize),
    /// A scalar or symbol, in the bytes of its dtype.
    Scalar(S),
    /// The pointer of the error cell: three `unsigned long long`, zero before the call. See [`CudaSource::fault`].
    Error,
}

/// A buffer between the kernels of a function.
#[derive(Clone, Debug)]
pub struct Temporary {
    /// Its name.
    pub name: String,
    /// Its bytes, over the function's scalars and symbols and what the host's loops count.
    pub bytes: Expr,
}

/// A check in the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckSite {
    /// The function, by its number.
    pub function: usize,
    /// The statement it stands in.
    pub site: Site,
    /// What is checked.
    pub check: Check,
}

/// What a check is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// An index of a buffer.
    Index {
        /// The buffer.
        buffer: Name,
        /// Which axis.
        axis: u32,
    },
    /// An integer divisor.
    Divisor,
    /// A condition the program asserts, with its message.
    Assert(Name),
    /// The rounds of a `while`: [`MOST_ROUNDS`].
    Rounds,
}

/// A check that failed while kernels ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The check.
    pub at: CheckSite,
    /// The index, of [`Check::Index`].
    pub index: i64,
    /// The extent it must be below.
    pub extent: i64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = self.at.site.operator;
        match self.at.check {
            Check::Index { buffer, axis } => {
                let Fault { index, extent, .. } = self;
                write!(
                    f,
                    "{operator}: index {index} of axis {axis} of {buffer} is out of range, its extent is {extent}"
                )
            }
            Check::Divisor => write!(f, "{operator}: division by zero"),
            Check::Assert(message) => write!(f, "{operator}: {message}"),
            Check::Rounds => write!(f, "{operator}: a `while` takes more than {MOST_ROUNDS} rounds"),
        }
    }
}

impl std::error::Error for Fault {}

impl CudaSource {
    /// What an error cell says after the kernels ran: the check that failed first, if one did.
    pub fn fault(&self, cell: [u64; 3]) -> Option<Fault> {
        let number = usize::try_from(cell[0].checked_sub(1)?).ok()?;
        let at = *self.sites.get(number)?;
        Some(Fault { at, index: cell[1].cast_signed(), extent: cell[2].cast_signed() })
    }
}

/// What is to be done for one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The bytes each temporary needs.
    pub temporaries: Vec<u64>,
    /// The bytes each buffer parameter must have.
    pub buffers: Vec<u64>,
    /// The launches, in order; kernels without threads are left out.
    pub launches: Vec<Launch>,
}

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Which kernel of the function.
    pub kernel: usize,
    /// Blocks on axes x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block on axes x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory that a block has beside what its text declares with a size.
    pub shared_bytes: u32,
    /// What is passed, in order: for a scalar its bytes, little end first.
    pub arguments: Vec<ArgumentValue>,
    /// What is passed behind that.
    pub maps: Vec<TensorMapValue>,
}

/// A tensor map with its values: see [`TensorMap`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMapValue {
    /// The buffer it lies in.
    pub buffer: ArgumentValue,
    /// The bytes of the buffer before it.
    pub offset: u64,
    /// How its elements lie.
    pub form: TensorForm,
}

/// How a tensor's elements lie, and its tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorForm {
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Extents, innermost first.
    pub extents: Vec<u64>,
    /// Bytes from one to the next of each axis.
    pub strides: Vec<u64>,
    /// Extents of a tile.
    pub tile: Vec<u32>,
}

/// An argument with its value: a scalar's dtype's bytes are the low ones.
pub type ArgumentValue = Argument<i64>;

/// Why a call cannot be launched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// An extent of a buffer or the number of blocks has no value, or one that does not fit.
    #[error("the size of {0} is not known or too large")]
    Extent(String),
    /// The condition under which a kernel is launched has no value: it divides by zero, say.
    #[error("the condition under which {0} is launched has no value")]
    Condition(String),
    /// A call would launch kernels more often than [`MOST_LAUNCHES`], or count so many rounds without.
    #[error("a call of {0} takes more than {most} launches", most = MOST_LAUNCHES)]
    Launches(Name),
    /// More blocks than a launch can have on an axis.
    #[error("{kernel} needs {blocks} blocks, too many to launch")]
    Blocks {
        /// The kernel.
        kernel: String,
        /// How many it needs.
        blocks: i64,
    },
}

impl CudaFunction {
    /// What to allocate and launch, given the values of scalars and symbols as `rx_tir::bind_symbols` gives them: by
    /// variable, floats as the bits of their dtype.
    ///
    /// # Errors
    /// Where an extent is not known or too large.
    pub fn plan(&self, values: &[Option<i64>]) -> Result<Plan, PlanError> {
        let value_of = |var: VarId| values.get(var.0 as usize).copied().flatten();
        let evaluate = |expr: &Expr| evaluate_index(expr, &value_of);
        let mut buffers = Vec::with_capacity(self.buffers.len());
        for (at, (shape, dtype)) in self.buffers.iter().enumerate() {
            let bytes = shape
                .iter()
                .try_fold(dtype.bytes(), |bytes, extent| bytes.checked_mul(evaluate(extent)?.max(0).cast_unsigned()));
            buffers.push(bytes.ok_or_else(|| PlanError::Extent(format!("parameter {at} of {}", self.name)))?);
        }
        let (values, temporaries) = (values.to_vec(), vec![0; self.temporaries.len()]);
        let mut launcher = Launcher { function: self, values, temporaries, idle: 0, launches: Vec::new() };
        launcher.kernels(0..self.kernels.len(), 0)?;
        let Launcher { temporaries, launches, .. } = launcher;
        Ok(Plan { temporaries, buffers, launches })
    }
}

/// Launches on their way.
struct Launcher<'f> {
    function: &'f CudaFunction,
    /// By variable, those of the host's loops as they count.
    values: Vec<Option<i64>>,
    /// The bytes of each temporary: the most that a launch needs.
    temporaries: Vec<u64>,
    /// Rounds of the host that launched nothing.
    idle: usize,
    launches: Vec<Launch>,
}

impl Launcher<'_> {
    fn value_of(&self, var: VarId) -> Option<i64> {
        self.values.get(var.0 as usize).copied().flatten()
    }

    fn evaluate(&self, expr: &Expr) -> Option<i64> {
        evaluate_index(expr, &|var| self.value_of(var))
    }

    /// Launches kernels in order; so many loops of the host around them run already.
    fn kernels(&mut self, kernels: Range<usize>, depth: usize) -> Result<(), PlanError> {
        let function = self.function;
        let round = |at: usize| function.kernels.get(at).and_then(|kernel| kernel.rounds.get(depth));
        let mut at = kernels.start;
        while at < kernels.end {
            let end = match round(at) {
                None => at + 1,
                Some(of) => (at..kernels.end).find(|next| round(*next) != Some(of)).unwrap_or(kernels.end),
            };
            match round(at) {
                None => self.launch(at)?,
                Some(round) => self.rounds_of(round, at..end, depth)?,
            }
            at = end;
        }
        Ok(())
    }

    fn rounds_of(&mut self, round: &HostLoop, kernels: Range<usize>, depth: usize) -> Result<(), PlanError> {
        let unknown = || PlanError::Extent(format!("a loop of {}", self.function.name));
        let extent = self.evaluate(&round.extent).ok_or_else(unknown)?;
        if extent <= 0 {
            return Ok(());
        }
        let start = self.evaluate(&round.start).ok_or_else(unknown)?;
        for value in start..start.checked_add(extent).ok_or_else(unknown)? {
            let before = self.launches.len();
            if let Some(slot) = self.values.get_mut(round.var.0 as usize) {
                *slot = Some(value);
            }
            self.kernels(kernels.clone(), depth + 1)?;
            self.idle += usize::from(self.launches.len() == before);
            if self.idle.saturating_add(self.launches.len()) > MOST_LAUNCHES {
                return Err(PlanError::Launches(self.function.name));
            }
        }
        Ok(())
    }

    /// Makes a temporary as large as a launch needs it.
    fn holds(&mut self, buffer: Argument) -> Result<(), PlanError> {
        let Argument::Temporary(at) = buffer else { return Ok(()) };
        let Some(temporary) = self.function.temporaries.get(at) else { return Ok(()) };
        let bytes = self.evaluate(&temporary.bytes).ok_or_else(|| PlanError::Extent(temporary.name.clone()))?;
        if let Some(most) = self.temporaries.get_mut(at) {
            *most = (*most).max(bytes.max(0).cast_unsigned());
        }
        Ok(())
    }

    fn launch(&mut self, number: usize) -> Result<(), PlanError> {
        let Some(kernel) = self.function.kernels.get(number) else { return Ok(()) };
        let unknown = || PlanError::Extent(kernel.name.clone());
        if let Some(guard) = &kernel.guard
            && self.evaluate(guard).ok_or_else(|| PlanError::Condition(kernel.name.clone()))? == 0
        {
            return Ok(());
        }
        let Some(grid) = kernel.grid(&|expr| self.evaluate(expr))? else { return Ok(()) };
        for buffer in kernel.buffers() {
            self.holds(buffer)?;
        }
        let LaunchShape { block, shared_bytes, .. } = kernel.shape;
        let argument = |argument: &Argument| {
            Ok(match *argument {
                Argument::Buffer(at) => ArgumentValue::Buffer(at),
                Argument::Temporary(at) => ArgumentValue::Temporary(at),
                Argument::Error => ArgumentValue::Error,
                Argument::Scalar(var) => {
                    let unknown = || PlanError::Extent(format!("a scalar of {}", self.function.name));
                    ArgumentValue::Scalar(self.value_of(var).ok_or_else(unknown)?)
                }
            })
        };
        let arguments = kernel.arguments.iter().map(argument).collect::<Result<_, _>>()?;
        let maps = kernel.maps.iter().map(|map| map.value(&|expr| self.evaluate(expr)));
        let maps = maps.collect::<Option<Vec<_>>>().ok_or_else(unknown)?;
        self.launches.push(Launch { kernel: number, grid, block, shared_bytes, arguments, maps });
        Ok(())
    }
}

/// Bytes from one element to the next of an axis of a tensor map that is not its innermost, at least.
const LEAST_STRIDE: u64 = 16;

impl TensorMap {
    /// With values; `None` where one is not known, or does not fit.
    fn value(&self, evaluate: &dyn Fn(&Expr) -> Option<i64>) -> Option<TensorMapValue> {
        let bytes = |expr: &Expr| u64::try_from(evaluate(expr)?).ok();
        // Places on an axis are numbers of 32 bits; an axis without any is never asked for.
        let extent = |expr: &Expr| u64::try_from(i32::try_from(evaluate(expr)?).ok()?.max(1)).ok();
        let stride = |(at, (_, stride)): (usize, &(Expr, Expr))| {
            let least = if at == 0 { u64::from(self.element_bytes) } else { LEAST_STRIDE };
            Some(bytes(stride)?.max(least))
        };
        let form = TensorForm {
            element_bytes: self.element_bytes,
            extents: self.axes.iter().map(|(one, _)| extent(one)).collect::<Option<_>>()?,
            // Without elements there are steps of 0 bytes, which no tensor map may have.
            strides: self.axes.iter().enumerate().map(stride).collect::<Option<_>>()?,
            tile: self.tile.clone(),
        };
        let buffer = match self.buffer {
            Argument::Buffer(at) => ArgumentValue::Buffer(at),
            Argument::Temporary(at) => ArgumentValue::Temporary(at),
            Argument::Scalar(_) | Argument::Error => return None,
        };
        Some(TensorMapValue { buffer, offset: bytes(&self.offset)?, form })
    }
}

impl KernelInfo {
    /// What is passed of buffers, and of scalars.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = Argument> {
        self.arguments.iter().copied().chain(self.maps.iter().map(|map| map.buffer))
    }

    /// Its blocks on the three axes; `None` where it has none.
    fn grid(&self, evaluate: &dyn Fn(&Expr) -> Option<i64>) -> Result<Option<[u32; 3]>, PlanError> {
        let mut grid = [1; 3];
        let mut is_empty = false;
        for (axis, blocks) in self.shape.grid.iter().enumerate() {
            let blocks = evaluate(blocks).ok_or_else(|| PlanError::Extent(self.name.clone()))?;
            is_empty |= blocks <= 0;
            let most = MOST_BLOCKS[axis];
            let fits = u32::try_from(blocks.max(0)).ok().filter(|blocks| *blocks <= most);
            grid[axis] = fits.ok_or_else(|| PlanError::Blocks { kernel: self.name.clone(), blocks })?;
        }
        Ok((!is_empty).then_some(grid))
    }
}

/// Checks of a source, numbered; equal ones share a number.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    pub(crate) list: Vec<CheckSite>,
    known: FxHashMap<(Site, Check), usize>,
}

impl Sites {
    /// The number of a check among those of its function.
    pub(crate) fn number(&mut self, site: Site, check: Check) -> usize {
        *self.known.entry((site, check)).or_insert_with(|| {
            self.list.push(CheckSite { function: 0, site, check });
            self.list.len() - 1
        })
    }
}
