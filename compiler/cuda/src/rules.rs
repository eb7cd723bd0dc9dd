//! Schedule rules: each matches leading statements of a function and schedules them as one or more kernels.
//!
//! ```text
//! statements of a function          rule              kernels
//! C[m, n] += A[m, k] * B[k, n]      gemm         →    one kernel of tiles: the second statement is the
//! D[m, n] = max(C[m, n], 0)                           epilogue of the first
//! E[m] += D[m, n]                   rows         →    one kernel, for example with a warp per row
//! ```
//!
//! The statements (`Statements`) are scheduled from first to last. For the remaining ones the rules are tried in order
//! ([`RuleOrder`]): each takes some statements from the front, or declines with a reason (`rxrun --explain-schedule`
//! shows them). The last rule, `fallback`, takes any statement. A rule that cannot print its statements as CUDA C
//! counts as having declined.
//!
//! Reference: the rules have the role of `ScheduleRule` in TVM's `python/tvm/s_tir/dlight`.

mod attention;
mod elementwise;
mod epilogue;
mod fallback;
mod gemm;
mod gemv;
mod row_pipeline;
mod rows;
mod scan;
mod scatter;
mod sort;
mod threads;
mod transpose;
mod window;

use self::row_pipeline::Stages;
use self::row_pipeline::collect::{Form, collect};
use crate::printer::Kernel;
use crate::source::LaunchShape;
use crate::statements::{Statement, Statements};
use rustc_hash::FxHashSet;
use rx_base::DType;
use rx_loops::TargetInfo;
use rx_tir::{BufferId, Expr, PrimFunc, Scope, Stmt};
use std::cell::OnceCell;
use std::rc::Rc;

/// A schedule rule.
#[derive(Debug)]
pub struct Rule {
    /// The name, as `--schedule` takes it.
    pub name: &'static str,
    /// The kind of statements that it schedules, in a phrase.
    pub summary: &'static str,
    take: fn(&Task<'_>) -> Result<Schedule, Declined>,
}

/// All rules, in the order in which they are tried by default.
pub const RULES: &[Rule] = &[
    threads::RULE,
    attention::RULE,
    window::RULE,
    sort::RULE,
    gemv::RULE,
    gemm::RULE,
    rows::split::RULE,
    rows::RULE,
    rows::COLUMNS,
    scan::RULE,
    transpose::RULE,
    elementwise::RULE,
    scatter::RULE,
    fallback::RULE,
];

/// The names of the rules to try, in order. The fallback is always the last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleOrder(Vec<&'static str>);

impl Default for RuleOrder {
    /// Returns all rules in the order of [`RULES`].
    fn default() -> RuleOrder {
        RuleOrder(RULES.iter().map(|rule| rule.name).collect())
    }
}

impl Rule {
    /// Schedules statements from the front of the task, or declines.
    pub(crate) fn take(&self, task: &Task<'_>) -> Result<Schedule, Declined> {
        (self.take)(task)
    }
}

impl RuleOrder {
    /// Creates an order of the named rules, each once, followed by the fallback.
    ///
    /// # Errors
    /// If one of the names is not the name of a rule.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<RuleOrder, UnknownRule> {
        let mut order = Vec::new();
        for name in names {
            let rule = RULES.iter().find(|rule| rule.name == name);
            let rule = rule.ok_or_else(|| UnknownRule(name.to_owned()))?;
            if !order.contains(&rule.name) && rule.name != fallback::RULE.name {
                order.push(rule.name);
            }
        }
        order.push(fallback::RULE.name);
        Ok(RuleOrder(order))
    }

    /// Returns the rules in order.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &'static Rule> {
        self.0.iter().filter_map(|name| RULES.iter().find(|rule| rule.name == *name))
    }
}

/// The error for a name that no rule has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no schedule rule is called \"{0}\"; there are {known}", known = RuleOrder::default().0.join(", "))]
pub struct UnknownRule(pub String);

/// The target of code generation: the device's properties and the choices of the user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The compute capability times 10: 80 for `sm_80`, 90 for `sm_90a`. Kernels use only instructions that it has.
    pub arch: u32,
    /// The rules to try.
    pub rules: RuleOrder,
    /// Whether `float32` matrix products may use the TF32 tensor cores, whose factors have 10 fraction bits. The
    /// factors are rounded, except that `wgmma` (`sm_90a`) truncates them.
    pub tf32: bool,
    /// The number of multiprocessors of the device. Some rules choose sizes by it, so that every multiprocessor has
    /// work: for example, `gemm` the sizes of its tiles.
    pub units: u32,
}

impl Default for Target {
    /// Returns the oldest supported architecture with all rules, without TF32, with [`UNITS`] multiprocessors.
    fn default() -> Target {
        Target { arch: OLDEST_ARCH, rules: RuleOrder::default(), tf32: false, units: UNITS }
    }
}

impl TargetInfo for Target {
    fn joins_chains(&self) -> bool {
        true
    }

    fn can_schedule_as_one_kernel(&self, func: &PrimFunc) -> bool {
        crate::can_schedule_as_one_kernel(&crate::prepared(func), self)
    }

    /// Returns the number of channels in 16 bytes, the widest load, for dtypes that the rules multiply on tensor cores:
    /// 16-bit floats, 8-bit integers, and `float32` with [`Target::tf32`]. Returns `None` for other dtypes: CUDA cores
    /// multiply them, and read every layout equally well.
    fn channel_vector_width(&self, dtype: DType) -> Option<i64> {
        match dtype {
            DType::FLOAT16 | DType::BFLOAT16 => Some(8),
            DType::FLOAT32 if self.tf32 => Some(4),
            DType::INT8 | DType::UINT8 => Some(16),
            _ => None,
        }
    }
}

impl Target {
    /// Returns the limit of shared memory per block, in bytes: 163 KiB on compute capability 8.0, 8.7, 9.0, 10.0 and
    /// 10.3 (the last three have 227 KiB, which only kernels of `gemm` with TMA use), 99 KiB on 8.6, 8.9, 12.0 and
    /// unknown ones (CUDA Programming Guide, "Compute Capabilities").
    pub(crate) fn shared_bytes(&self) -> u32 {
        match self.arch {
            80 | 87 | 90 | 100 | 103 => 163 << 10,
            _ => 99 << 10,
        }
    }
}

/// The number of multiprocessors that is assumed if it is not known: that of an H100 SXM or H200.
pub const UNITS: u32 = 132;

/// The alignment in bytes of dynamic shared memory, as `RX_SHARED` in the generated text declares it. Dynamic shared
/// memory follows the statically declared one.
const SHARED_ALIGNMENT: u32 = 1024;

/// The oldest supported architecture: `sm_80`.
pub const OLDEST_ARCH: u32 = 80;

/// Parses the name of an architecture: 80 for `sm_80`, 90 for `sm_90a`.
///
/// # Errors
/// If the name has another form, or the architecture is older than [`OLDEST_ARCH`].
pub fn arch(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("sm_").map(|number| number.strip_suffix('a').unwrap_or(number));
    let number = number.and_then(|number| number.parse().ok()).ok_or("requires a name such as sm_80")?;
    if number < OLDEST_ARCH {
        Err(format!("requires sm_{OLDEST_ARCH} or a newer architecture; found {text}"))
    } else {
        Ok(number)
    }
}

/// The next statements of a function that have no kernel yet, as a rule gets them.
pub(crate) struct Task<'f> {
    pub(crate) func: &'f PrimFunc,
    /// The remaining statements, in order, before the first one with other host loops; never empty.
    pub(crate) statements: &'f [Statement],
    /// All statements of the function, and the index of the first remaining one among them.
    pub(crate) of: (&'f Statements, usize),
    pub(crate) target: &'f Target,
    /// The result of [`Task::elements`].
    elements: OnceCell<Result<(Rc<Stages>, usize), Declined>>,
}

/// The reason why a rule does not take the next statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declined(pub(crate) String);

impl Declined {
    pub(crate) fn because(reason: impl Into<String>) -> Declined {
        Declined(reason.into())
    }

    /// Declines for this reason if the condition holds.
    pub(crate) fn when(condition: bool, reason: &str) -> Result<(), Declined> {
        if condition { Err(Declined::because(reason)) } else { Ok(()) }
    }
}

impl From<rx_loops::Declined> for Declined {
    fn from(declined: rx_loops::Declined) -> Declined {
        Declined::because(declined.0)
    }
}

impl<'f> Task<'f> {
    /// Creates the task of scheduling `statements`, which begin at index `at` of all statements `of` a function.
    pub(crate) fn new(
        func: &'f PrimFunc,
        statements: &'f [Statement],
        of: (&'f Statements, usize),
        target: &'f Target,
    ) -> Task<'f> {
        Task { func, statements, of, target, elements: OnceCell::new() }
    }

    /// Returns the stages of the elementwise statements at the front of the task, and their number. They are collected
    /// once, since several rules match them.
    fn elements(&self) -> Result<(Rc<Stages>, usize), Declined> {
        let collected = || collect(self, Form::Elements, usize::MAX).map(|(stages, taken)| (Rc::new(stages), taken));
        self.elements.get_or_init(collected).clone()
    }

    /// Returns the remaining statement at index `at` as a loop nest around one block or statements without blocks.
    ///
    /// # Errors
    /// If there is no such statement, if it is not such a nest, or if the host runs it under a condition.
    pub(crate) fn nest(&self, at: usize) -> Result<&'f rx_loops::Nest, Declined> {
        let statement = self
            .statements
            .get(at)
            .ok_or_else(|| Declined::because("requires another statement; found the end of the function"))?;
        Declined::when(statement.guard.is_some(), "requires an unconditional launch; found a condition of the host")?;
        statement
            .nest(self.func)
            .ok_or_else(|| Declined::because("requires loops around one block; found another statement"))
    }

    /// Whether a buffer is an intermediate result: not a parameter, but allocated around statements of the function.
    pub(crate) fn is_temporary(&self, buffer: BufferId) -> bool {
        self.of.0.temporaries.contains(&buffer)
    }

    /// Whether a statement after the first `taken` remaining ones uses the buffer. If the buffer is an intermediate
    /// result in global memory whose contents survive an iteration of a host loop, all statements of the loop count,
    /// also earlier ones and the taken ones, since they run again.
    pub(crate) fn is_used_after(&self, taken: usize, buffer: BufferId) -> bool {
        let (of, at) = self.of;
        // The contents of shared and local memory do not survive the launch.
        let stays = self.is_temporary(buffer) && self.func.buffer(buffer).scope == Scope::Global;
        of.use_from(at + taken, buffer) || stays && of.use_again(at, buffer)
    }

    /// Returns the task without the first `taken` statements, or `None` if none of [`Task::statements`] remains.
    pub(crate) fn behind(&self, taken: usize) -> Option<Task<'f>> {
        let statements = self.statements.get(taken..).filter(|rest| !rest.is_empty())?;
        Some(Task::new(self.func, statements, (self.of.0, self.of.1 + taken), self.target))
    }
}

/// Returns the number of groups of `size` elements that hold `count` elements.
fn groups_of(count: i64, size: i64) -> i64 {
    count.cast_unsigned().div_ceil(size.cast_unsigned()).cast_signed()
}

/// Whether a statement reads or writes a buffer.
pub(crate) fn uses(stmt: &Stmt, buffer: BufferId) -> bool {
    buffers_of(stmt).contains(&buffer)
}

/// Returns the buffers that a statement reads or writes.
pub(crate) fn buffers_of(stmt: &Stmt) -> FxHashSet<BufferId> {
    let mut used = FxHashSet::default();
    stmt.walk(&mut |part| {
        if let Stmt::Store { buffer, .. } = part {
            used.insert(*buffer);
        }
        for expr in part.expressions() {
            expr.walk(&mut |part| {
                if let Expr::Load { buffer, .. } = part {
                    used.insert(*buffer);
                }
            });
        }
    });
    used
}

/// The schedule of the first statements of a task.
pub(crate) struct Schedule {
    /// The number of statements that it covers; at least one.
    pub(crate) taken: usize,
    /// The kernels, in launch order.
    pub(crate) kernels: Vec<Box<dyn KernelBody>>,
    /// Additional device buffers through which the kernels pass intermediate results, for example the partial sums of
    /// split-K. [`Kernel::scratch_buffer`] refers to them by index.
    pub(crate) scratch: Vec<Scratch>,
    /// A remark about the rule's choices, for example of tile sizes or of the elements per thread; may be empty. It has
    /// no line break. `--explain-schedule` and the comments of the kernels show it.
    pub(crate) note: String,
}

impl Schedule {
    /// Creates a schedule of one kernel for the first `taken` statements.
    pub(crate) fn single(taken: usize, kernel: impl KernelBody + 'static) -> Schedule {
        Schedule { taken, kernels: vec![Box::new(kernel)], scratch: Vec::new(), note: String::new() }
    }
}

/// Device memory that is shared by the kernels of a schedule.
#[derive(Clone, Debug)]
pub(crate) struct Scratch {
    /// The name, for error messages.
    pub(crate) name: &'static str,
    /// The size in bytes: an `int64` expression that the host evaluates.
    pub(crate) bytes: Expr,
}

/// A kernel of a schedule: its launch and its body.
pub(crate) trait KernelBody {
    /// Returns the launch, and everything else about the kernel but its body.
    fn frame(&self) -> Frame<'_>;

    /// Prints the kernel's body.
    ///
    /// # Errors
    /// Mainly if CUDA C has no form for a part of it. The rule then counts as having declined.
    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String>;
}

/// The description of a kernel without its body.
pub(crate) struct Frame<'k> {
    /// The function that the statements belong to, usually with variables that the rule added; `None` is the task's
    /// function.
    pub(crate) func: Option<&'k PrimFunc>,
    /// The launch: grid, block and dynamic shared memory.
    pub(crate) shape: LaunchShape,
    /// The host launches the kernel only if this condition holds.
    pub(crate) guard: Option<&'k Expr>,
    /// The statements that the kernel computes. Its comment names their blocks and operators. Their buffers are its
    /// parameters, except [`Frame::kept`] and those that they allocate: first the function's parameters in their order,
    /// then intermediate results.
    pub(crate) statements: Vec<&'k Stmt>,
    /// The kernel's `KernelInfo::work`, if it is not the number of iterations of the statements' innermost loops: for
    /// example for a kernel that combines partial results of another one.
    pub(crate) work: Option<Expr>,
    /// Buffers of [`Frame::statements`] that are not parameters, usually because their values do not leave the kernel.
    pub(crate) kept: Vec<BufferId>,
    /// The number of blocks that should be resident on a multiprocessor: the second argument of `__launch_bounds__`,
    /// which limits the registers of a thread.
    pub(crate) least_blocks: Option<u32>,
    /// Names that the body declares; buffers and variables of the function are renamed to avoid them.
    pub(crate) own_names: &'static [&'static str],
    /// Whether the threads may synchronize. A thread whose check fails then continues, for example with index 0, so
    /// that no barrier waits for a thread that has exited. In other kernels the thread exits.
    pub(crate) is_cooperative: bool,
}

impl<'k> Frame<'k> {
    /// Creates the frame of a kernel whose threads may synchronize.
    pub(crate) fn new(shape: LaunchShape, statements: impl IntoIterator<Item = &'k Stmt>) -> Frame<'k> {
        Frame {
            func: None,
            shape,
            guard: None,
            statements: statements.into_iter().collect(),
            work: None,
            kept: Vec::new(),
            least_blocks: None,
            own_names: &[],
            is_cooperative: true,
        }
    }
}
