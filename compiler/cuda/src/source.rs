//! What is printed, and what a host must know to launch it.

use crate::nests::Unsupported;
use rustc_hash::FxHashMap;
use rx_base::{DType, Name};
use rx_tir::{Expr, Param, Site, VarId, evaluate_index};
use std::fmt;

/// Threads of a block of a parallel kernel.
pub const BLOCK_SIZE: u32 = 256;

/// Rounds that a `while` may take in a thread: a device that never ends cannot be stopped from outside.
pub const MOST_ROUNDS: i64 = 1 << 32;

/// The CUDA C of some functions.
#[derive(Clone, Debug)]
pub struct CudaSource {
    /// The text: helpers that are used, then the kernels. It includes no header.
    pub text: String,
    /// One per function given, in order.
    pub functions: Vec<CudaFunction>,
    /// The checks in the text, by the number a failed one writes.
    pub sites: Vec<CheckSite>,
}

/// The CUDA C of some functions, to be read.
#[derive(Clone, Debug)]
pub struct Listing {
    /// What stands before the kernels, with the helpers that are used.
    pub head: String,
    /// The kernels of each function given, in order; or why it has none.
    pub functions: Vec<Result<String, Unsupported>>,
}

/// How a function is run: temporaries are allocated, then its kernels launched in order.
#[derive(Clone, Debug)]
pub struct CudaFunction {
    /// Its name.
    pub name: Name,
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

/// A kernel.
#[derive(Clone, Debug)]
pub struct KernelInfo {
    /// Its name in the text.
    pub name: String,
    /// How many threads it needs, over the function's scalars and symbols; none for a kernel that is one thread.
    pub threads: Option<Expr>,
    /// What is passed, in order.
    pub arguments: Vec<Argument>,
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The pointer of the function's buffer parameter of this number, scalars not counted.
    Buffer(usize),
    /// The pointer of a temporary.
    Temporary(usize),
    /// A scalar or symbol, in the bytes of its dtype.
    Scalar(VarId),
    /// The pointer of the error cell: three `unsigned long long`, zero before the call. See [`CudaSource::fault`].
    Error,
}

/// A buffer between the kernels of a function.
#[derive(Clone, Debug)]
pub struct Temporary {
    /// Its name.
    pub name: String,
    /// Its bytes, over the function's scalars and symbols.
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
    /// Blocks, on axis x.
    pub grid: u32,
    /// Threads of a block, on axis x.
    pub block: u32,
    /// What is passed, in order: for a scalar its bytes, little end first.
    pub arguments: Vec<ArgumentValue>,
}

/// An argument with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentValue {
    /// A buffer parameter's pointer.
    Buffer(usize),
    /// A temporary's pointer.
    Temporary(usize),
    /// A scalar's value: its dtype's bytes are the low ones.
    Scalar(i64),
    /// The error cell's pointer.
    Error,
}

/// Why a call cannot be launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// An extent of a buffer or the number of threads has no value, or one that does not fit.
    Extent(String),
    /// More threads than a launch can have.
    Threads {
        /// The kernel.
        kernel: String,
        /// How many it needs.
        threads: i64,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Extent(what) => write!(f, "the size of {what} is not known or too large"),
            PlanError::Threads { kernel, threads } => write!(f, "{kernel} needs {threads} threads, too many to launch"),
        }
    }
}

impl std::error::Error for PlanError {}

impl CudaFunction {
    /// What to allocate and launch, given the values of scalars and symbols as `rx_tir::bind_symbols` gives them: by
    /// variable, floats as the bits of their dtype.
    ///
    /// # Errors
    /// Where an extent is not known or too large.
    pub fn plan(&self, values: &[Option<i64>]) -> Result<Plan, PlanError> {
        let value_of = |var: VarId| values.get(var.0 as usize).copied().flatten();
        let evaluate = |expr: &Expr| evaluate_index(expr, &value_of);
        let mut temporaries = Vec::with_capacity(self.temporaries.len());
        for temporary in &self.temporaries {
            let bytes = evaluate(&temporary.bytes).ok_or_else(|| PlanError::Extent(temporary.name.clone()))?;
            temporaries.push(bytes.max(0).cast_unsigned());
        }
        let mut buffers = Vec::with_capacity(self.buffers.len());
        for (at, (shape, dtype)) in self.buffers.iter().enumerate() {
            let bytes = shape
                .iter()
                .try_fold(dtype.bytes(), |bytes, extent| bytes.checked_mul(evaluate(extent)?.max(0).cast_unsigned()));
            buffers.push(bytes.ok_or_else(|| PlanError::Extent(format!("parameter {at} of {}", self.name)))?);
        }
        let mut launches = Vec::new();
        for (number, kernel) in self.kernels.iter().enumerate() {
            let (grid, block) = match &kernel.threads {
                None => (1, 1),
                Some(threads) => {
                    let threads = evaluate(threads).ok_or_else(|| PlanError::Extent(kernel.name.clone()))?;
                    if threads <= 0 {
                        continue;
                    }
                    let blocks = threads.cast_unsigned().div_ceil(u64::from(BLOCK_SIZE));
                    // The driver's limit on axis x.
                    let grid = u32::try_from(blocks).ok().filter(|grid| *grid <= i32::MAX.cast_unsigned());
                    (grid.ok_or_else(|| PlanError::Threads { kernel: kernel.name.clone(), threads })?, BLOCK_SIZE)
                }
            };
            let argument = |argument: &Argument| {
                Ok(match *argument {
                    Argument::Buffer(at) => ArgumentValue::Buffer(at),
                    Argument::Temporary(at) => ArgumentValue::Temporary(at),
                    Argument::Error => ArgumentValue::Error,
                    Argument::Scalar(var) => {
                        let value =
                            value_of(var).ok_or_else(|| PlanError::Extent(format!("a scalar of {}", self.name)));
                        ArgumentValue::Scalar(value?)
                    }
                })
            };
            let arguments = kernel.arguments.iter().map(argument).collect::<Result<_, _>>()?;
            launches.push(Launch { kernel: number, grid, block, arguments });
        }
        Ok(Plan { temporaries, buffers, launches })
    }
}

/// Checks of a source, numbered; equal ones share a number.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    pub(crate) list: Vec<CheckSite>,
    known: FxHashMap<(usize, Site, Check), usize>,
}

impl Sites {
    /// The number of a check.
    pub(crate) fn number(&mut self, function: usize, site: Site, check: Check) -> usize {
        *self.known.entry((function, site, check)).or_insert_with(|| {
            self.list.push(CheckSite { function, site, check });
            self.list.len() - 1
        })
    }
}
