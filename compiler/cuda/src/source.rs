//! The generated CUDA C, and the description of its launches for the host: [`CudaFunction::plan`] evaluates it for the
//! extents of a call.

use crate::statements::Unsupported;
use rustc_hash::FxHashMap;
use rx_base::{DType, Name};
use rx_ir::Origin;
use rx_tir::{Expr, Param, Site, VarId, evaluate_index};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The default number of threads of a block.
pub const BLOCK_SIZE: u32 = 256;

/// The limits of blocks on the axes x, y and z of a grid (CUDA Programming Guide, "Compute Capabilities").
pub const MOST_BLOCKS: [u32; 3] = [i32::MAX.cast_unsigned(), 65_535, 65_535];

/// The limit of iterations of one execution of a `while` by a thread: the host cannot stop a kernel that never ends.
pub const MOST_ITERATIONS: i64 = 1 << 32;

/// The limit of launches of one call of a function, checked after each iteration of a host loop. Iterations without
/// launches count, too.
pub const MOST_LAUNCHES: usize = 1 << 16;

/// The CUDA C of a list of functions, to be compiled.
#[derive(Clone, Debug)]
pub struct CudaSource {
    /// The text: the helpers that are used, then the kernels. It has no `#include`.
    pub text: String,
    /// The length in bytes of the part before the kernels.
    pub head_bytes: usize,
    /// The functions, in the order in which they were passed.
    pub functions: Vec<CudaFunction>,
    /// The run-time checks. The first one that fails writes its index in this list, plus 1, to the error cell.
    pub sites: Vec<CheckSite>,
    /// The scheduling remarks of the functions' statements, in order.
    pub choices: Vec<Choice>,
}

/// A scheduling remark: the rule that took some statements, and the reasons why the rules before it declined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The index of the function.
    pub function: usize,
    /// The names of the TIR blocks in the statements that the rule took.
    pub blocks: Vec<String>,
    /// The name of the rule that took these statements ([`crate::rules`]).
    pub rule: &'static str,
    /// The names of the kernels that the rule made of the statements.
    pub kernels: Vec<String>,
    /// The rule's remark about its choice, for example of tile sizes; the host loops around the launches; and whether a
    /// launch has a condition. May be empty.
    pub note: String,
    /// The rules that were tried before, each with the reason why it declined the statements or could not print them.
    pub declined: Arc<[(&'static str, String)]>,
}

/// The CUDA C of a list of functions, to be read by people.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The part before the kernels, with the helpers that are used.
    pub head: String,
    /// For each function the text of its kernels, or the reason why it has none.
    pub functions: Vec<Result<String, Unsupported>>,
    /// For each function its kernels, in order; empty if it has none. [`KernelInfo::text`] is here a range in the
    /// function's text.
    pub kernels: Vec<Vec<KernelInfo>>,
    /// The scheduling remarks of the functions' statements, in order.
    pub choices: Vec<Choice>,
}

/// A function that was printed as kernels: a call allocates its temporaries and launches its kernels in order.
#[derive(Clone, Debug)]
pub struct CudaFunction {
    /// The function's name.
    pub name: Name,
    /// The Relax statements that it computes.
    pub origins: Vec<Origin>,
    /// The parameters of the function.
    pub params: Vec<Param>,
    /// The kernels, in launch order.
    pub kernels: Vec<KernelInfo>,
    /// Buffers that are allocated for the duration of a call.
    pub temporaries: Vec<Temporary>,
    /// The dtype of each variable, by number: scalars are passed in it.
    pub vars: Vec<DType>,
    /// The extents and dtypes of the buffer parameters, in order.
    pub buffers: Vec<(Vec<Expr>, DType)>,
}

/// A loop that the host runs around launches.
#[derive(Clone, Debug, PartialEq)]
pub struct HostLoop {
    /// The loop variable; kernels in the loop may take it as an argument.
    pub var: VarId,
    /// The first value: an expression over scalars, symbols and the variables of outer host loops.
    pub start: Expr,
    /// The number of iterations; none if it is not positive.
    pub extent: Expr,
}

/// A kernel of a function: its text and its launch.
#[derive(Clone, Debug)]
pub struct KernelInfo {
    /// The kernel's name in the CUDA C text.
    pub name: String,
    /// The byte range of the kernel and its comment in [`CudaSource::text`]; in a [`Listing`], in the text of the
    /// function.
    pub text: Range<usize>,
    /// The host loops around the launch, outermost first.
    pub host_loops: Vec<HostLoop>,
    /// The condition of the launch, over scalars, symbols and the variables of host loops; `None` if there is no
    /// condition.
    pub guard: Option<Expr>,
    /// The launch: grid, block and dynamic shared memory.
    pub shape: LaunchShape,
    /// The number of iterations of the innermost loops of its statements, unless the rule gives another number: an
    /// `int64` over scalars, symbols and the variables of host loops. The statements are usually those before
    /// scheduling; the rules `fallback` and `scatter` count the iterations of one thread.
    pub work: Expr,
    /// The arguments, in order.
    pub arguments: Vec<Argument>,
    /// The tensor maps, which are passed after the arguments.
    pub maps: Vec<TensorMap>,
}

/// A tensor whose tiles a kernel of `sm_90a` copies by TMA: the arguments of `cuTensorMapEncodeTiled` at the launch. In
/// shared memory a tile has lines of 128 bytes whose 16-byte chunks are permuted: chunk `c` of line `l` is at position
/// `c ^ (l % 8)` (`CU_TENSOR_MAP_SWIZZLE_128B`). Elements out of bounds are filled with 0.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMap {
    /// The buffer that contains the tensor.
    pub buffer: Argument,
    /// The offset of the tensor in the buffer, in bytes.
    pub offset: Expr,
    /// The size of an element, in bytes.
    pub element_bytes: u32,
    /// The axes, innermost first, at most five: the extent in elements and the stride in bytes.
    pub axes: Vec<(Expr, Expr)>,
    /// The extents of a tile in elements, one for each axis, innermost first.
    pub tile: Vec<u32>,
}

/// The launch configuration of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchShape {
    /// The numbers of blocks on the axes x, y and z: `int64` over scalars, symbols and the variables of host loops.
    /// Nothing is launched if one of them is not positive.
    pub grid: [Expr; 3],
    /// The numbers of threads of a block on the axes x, y and z.
    pub block: [u32; 3],
    /// The dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
}

impl LaunchShape {
    /// Returns a launch of one thread.
    pub fn single() -> LaunchShape {
        LaunchShape::blocks(Expr::int(1), 1)
    }

    /// Returns a launch of `blocks` blocks with `threads` threads each, along axis x.
    pub fn blocks(blocks: Expr, threads: u32) -> LaunchShape {
        LaunchShape { grid: [blocks, Expr::int(1), Expr::int(1)], block: [threads, 1, 1], shared_bytes: 0 }
    }

    /// Returns a launch of at least `threads` threads, in blocks of [`BLOCK_SIZE`].
    pub fn threads(threads: Expr) -> LaunchShape {
        let size = i64::from(BLOCK_SIZE);
        let blocks = (threads + Expr::int(size - 1)).floor_div(Expr::int(size));
        LaunchShape::blocks(blocks, BLOCK_SIZE)
    }

    /// Whether the launch has a single thread, whatever the extents of the call are.
    pub fn is_single(&self) -> bool {
        self.block == [1, 1, 1] && self.grid.iter().all(|blocks| blocks.as_int() == Some(1))
    }

    /// Returns the number of threads of a block.
    pub fn block_threads(&self) -> u32 {
        self.block.iter().product()
    }
}

/// An argument of a kernel: `S` is the variable of a scalar or, for a launch, its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Argument<S = VarId> {
    /// The pointer of a buffer parameter, by its index among the function's buffer parameters.
    Buffer(usize),
    /// The pointer of a temporary, by its index.
    Temporary(usize),
    /// A scalar, a symbol or the variable of a host loop, in the bytes of its dtype.
    Scalar(S),
    /// The pointer of the error cell: three `unsigned long long`, zero before the call. See [`CudaSource::fault`].
    Error,
}

/// A buffer in device memory that is allocated for a call: an intermediate result that kernels pass to each other, a
/// scratch buffer of a schedule, or a per-thread buffer of large or symbolic size, with a part for each thread.
#[derive(Clone, Debug)]
pub struct Temporary {
    /// The name.
    pub name: String,
    /// The size in bytes, over scalars, symbols and the variables of host loops.
    pub bytes: Expr,
}

/// A run-time check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckSite {
    /// The index of the function.
    pub function: usize,
    /// The position in the program that the check comes from.
    pub site: Site,
    /// The condition that is checked.
    pub check: Check,
}

/// The kind of a run-time check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// An index of a buffer is in bounds.
    Index {
        /// The buffer.
        buffer: Name,
        /// The axis of the buffer.
        axis: u32,
    },
    /// An integer divisor is not 0, and no power of 0 has a negative integer exponent.
    Divisor,
    /// An assertion of the program holds; with its message.
    Assert(Name),
    /// A `while` has at most [`MOST_ITERATIONS`] iterations.
    Iterations,
}

/// A check that failed while kernels ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The check that failed.
    pub at: CheckSite,
    /// The index, if the check is a [`Check::Index`].
    pub index: i64,
    /// The extent of the axis, if the check is a [`Check::Index`]: the index must be at least 0 and less than it.
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
            Check::Iterations => write!(f, "{operator}: a `while` takes more than {MOST_ITERATIONS} iterations"),
        }
    }
}

impl std::error::Error for Fault {}

impl CudaSource {
    /// Decodes the error cell after the kernels have run. Returns the check that failed first, if one did.
    pub fn fault(&self, cell: [u64; 3]) -> Option<Fault> {
        let number = usize::try_from(cell[0].checked_sub(1)?).ok()?;
        let at = *self.sites.get(number)?;
        Some(Fault { at, index: cell[1].cast_signed(), extent: cell[2].cast_signed() })
    }
}

/// The allocations and launches of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The size of each temporary, in bytes: the largest that a launch needs, 0 if no launch uses it.
    pub temporaries: Vec<u64>,
    /// The required size of each buffer parameter, in bytes.
    pub buffers: Vec<u64>,
    /// The launches, in order, without those whose condition is false or whose grid is empty.
    pub launches: Vec<Launch>,
}

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The index of the kernel in the function.
    pub kernel: usize,
    /// The numbers of blocks on the axes x, y and z.
    pub grid: [u32; 3],
    /// The numbers of threads of a block on the axes x, y and z.
    pub block: [u32; 3],
    /// The dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// The arguments, in order.
    pub arguments: Vec<ArgumentValue>,
    /// The tensor maps, which are passed after the arguments.
    pub maps: Vec<TensorMapValue>,
}

/// A [`TensorMap`] whose expressions are evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMapValue {
    /// The buffer that contains the tensor.
    pub buffer: ArgumentValue,
    /// The offset of the tensor in the buffer, in bytes.
    pub offset: u64,
    /// The layout of its elements and tiles.
    pub form: TensorForm,
}

/// The layout of a tensor and its tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorForm {
    /// The size of an element, in bytes.
    pub element_bytes: u32,
    /// The extents in elements, innermost first.
    pub extents: Vec<u64>,
    /// The stride of each axis in bytes, innermost first.
    pub strides: Vec<u64>,
    /// The extents of a tile in elements, innermost first.
    pub tile: Vec<u32>,
}

/// An argument of a launch. The low bytes of the `i64` in [`Argument::Scalar`] are the scalar in its dtype.
pub type ArgumentValue = Argument<i64>;

/// The reason why a call cannot be launched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A scalar, a size or the start of a host loop has no value, or a size is out of range. Sizes are, for example,
    /// those of buffers, temporaries, host loops and tensor maps.
    #[error("the size of {0} is not known or too large")]
    Extent(String),
    /// The condition of a launch cannot be evaluated: it divides by zero, for example.
    #[error("the condition under which {0} is launched has no value")]
    Condition(String),
    /// The launches of the call, together with the iterations of host loops that launch nothing, are more than
    /// [`MOST_LAUNCHES`].
    #[error("a call of {0} takes more than {most} launches", most = MOST_LAUNCHES)]
    Launches(Name),
    /// A launch has more blocks on an axis than [`MOST_BLOCKS`].
    #[error("{kernel} needs {blocks} blocks, too many to launch")]
    Blocks {
        /// The kernel.
        kernel: String,
        /// The number of blocks.
        blocks: i64,
    },
}

impl CudaFunction {
    /// Evaluates the allocations and launches of a call. `values` are those of `rx_tir::bind_symbols`, but with
    /// floats as the bits of their dtype.
    ///
    /// # Errors
    /// If a size, a condition, a scalar or the start of a host loop has no value, if a size is out of range, or if
    /// [`MOST_BLOCKS`] or [`MOST_LAUNCHES`] is exceeded.
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

/// The evaluation of a call's launches.
struct Launcher<'f> {
    function: &'f CudaFunction,
    /// The values of the variables; those of host loops change as the loops run.
    values: Vec<Option<i64>>,
    /// The size of each temporary in bytes: the largest that a launch needs so far.
    temporaries: Vec<u64>,
    /// The number of iterations of host loops without a launch.
    idle: usize,
    launches: Vec<Launch>,
}

impl Launcher<'_> {
    /// Returns the value of a variable, if it has one.
    fn value_of(&self, var: VarId) -> Option<i64> {
        self.values.get(var.0 as usize).copied().flatten()
    }

    fn evaluate(&self, expr: &Expr) -> Option<i64> {
        evaluate_index(expr, &|var| self.value_of(var))
    }

    /// Plans the launches of kernels in order, inside the first `depth` of their host loops. Consecutive kernels with
    /// the same next loop run in it together.
    fn kernels(&mut self, kernels: Range<usize>, depth: usize) -> Result<(), PlanError> {
        let function = self.function;
        let host_loop = |at: usize| function.kernels.get(at).and_then(|kernel| kernel.host_loops.get(depth));
        let mut at = kernels.start;
        while at < kernels.end {
            let end = match host_loop(at) {
                None => at + 1,
                Some(of) => (at..kernels.end).find(|next| host_loop(*next) != Some(of)).unwrap_or(kernels.end),
            };
            match host_loop(at) {
                None => self.launch(at)?,
                Some(host_loop) => self.launches_of_host_loop(host_loop, at..end, depth)?,
            }
            at = end;
        }
        Ok(())
    }

    /// Plans the launches of all iterations of a host loop around kernels.
    fn launches_of_host_loop(
        &mut self,
        host_loop: &HostLoop,
        kernels: Range<usize>,
        depth: usize,
    ) -> Result<(), PlanError> {
        let unknown = || PlanError::Extent(format!("a loop of {}", self.function.name));
        let extent = self.evaluate(&host_loop.extent).ok_or_else(unknown)?;
        if extent <= 0 {
            return Ok(());
        }
        let start = self.evaluate(&host_loop.start).ok_or_else(unknown)?;
        for value in start..start.checked_add(extent).ok_or_else(unknown)? {
            let before = self.launches.len();
            if let Some(slot) = self.values.get_mut(host_loop.var.0 as usize) {
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

    /// Enlarges a temporary to the size that the current launch needs.
    fn holds(&mut self, buffer: Argument) -> Result<(), PlanError> {
        let Argument::Temporary(at) = buffer else { return Ok(()) };
        let Some(temporary) = self.function.temporaries.get(at) else { return Ok(()) };
        let bytes = self.evaluate(&temporary.bytes).ok_or_else(|| PlanError::Extent(temporary.name.clone()))?;
        if let Some(most) = self.temporaries.get_mut(at) {
            *most = (*most).max(bytes.max(0).cast_unsigned());
        }
        Ok(())
    }

    /// Adds the launch of a kernel, unless its condition is false or its grid is empty.
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

/// The least stride in bytes of an axis of a tensor map other than the innermost.
const LEAST_STRIDE: u64 = 16;

impl TensorMap {
    /// Evaluates the expressions. Returns `None` if one of them has no value or is out of range, or if
    /// [`TensorMap::buffer`] is a scalar or the error cell.
    fn value(&self, evaluate: &dyn Fn(&Expr) -> Option<i64>) -> Option<TensorMapValue> {
        let bytes = |expr: &Expr| u64::try_from(evaluate(expr)?).ok();
        // Coordinates are 32-bit integers. A tensor map needs extents of at least 1; no tile of an empty axis is ever
        // copied.
        let extent = |expr: &Expr| u64::try_from(i32::try_from(evaluate(expr)?).ok()?.max(1)).ok();
        let stride = |(at, (_, stride)): (usize, &(Expr, Expr))| {
            let least = if at == 0 { u64::from(self.element_bytes) } else { LEAST_STRIDE };
            Some(bytes(stride)?.max(least))
        };
        let form = TensorForm {
            element_bytes: self.element_bytes,
            extents: self.axes.iter().map(|(one, _)| extent(one)).collect::<Option<_>>()?,
            // Empty tensors have strides of 0 bytes, which a tensor map must not have.
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
    /// Returns all arguments, scalars and the error cell included, and the buffers of the tensor maps.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = Argument> {
        self.arguments.iter().copied().chain(self.maps.iter().map(|map| map.buffer))
    }

    /// Evaluates the numbers of blocks. Returns `None` if the grid is empty.
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

/// The checks of a function, numbered from 0; equal ones share a number.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    pub(crate) list: Vec<CheckSite>,
    known: FxHashMap<(Site, Check), usize>,
}

impl Sites {
    /// Returns the number of a check among those of its function. A new check is added with the next number.
    pub(crate) fn number(&mut self, site: Site, check: Check) -> usize {
        *self.known.entry((site, check)).or_insert_with(|| {
            self.list.push(CheckSite { function: 0, site, check });
            self.list.len() - 1
        })
    }
}
