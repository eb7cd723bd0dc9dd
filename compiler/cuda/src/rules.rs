//! Schedule rules: ways to make kernels of a function's statements.
//!
//! A function is a sequence of statements (`statements`). The rules are asked in order ([`RuleOrder`]); each takes
//! some statements from the front or declines and says why. The last, `fallback`, takes every statement. A rule that
//! cannot print what it took has declined, too.

mod attention;
mod elementwise;
mod epilogue;
mod fallback;
mod gemm;
mod gemv;
mod rows;
mod scan;
mod scatter;
mod sort;
mod stages;
mod threads;
mod transpose;
mod window;

use crate::printer::Kernel;
use crate::source::LaunchShape;
use crate::statements::{Statement, Statements};
use rustc_hash::FxHashSet;
use rx_base::DType;
use rx_schedule::Preferences;
use rx_tir::{BufferId, Expr, PrimFunc, Scope, Stmt};

/// A way to schedule statements.
#[derive(Debug)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub summary: &'static str,
    take: fn(&Task<'_>) -> Result<Schedule, Declined>,
}

/// Every rule, in the order in which they are asked.
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

/// The rules that are asked, and in which order. The fallback is asked last, whether it is named or not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleOrder(Vec<&'static str>);

impl Default for RuleOrder {
    /// All rules in the table's order.
    fn default() -> RuleOrder {
        RuleOrder(RULES.iter().map(|rule| rule.name).collect())
    }
}

impl Rule {
    pub(crate) fn take(&self, task: &Task<'_>) -> Result<Schedule, Declined> {
        (self.take)(task)
    }
}

impl RuleOrder {
    /// The rules of these names, in this order.
    ///
    /// # Errors
    /// A name that no rule has.
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

    pub(crate) fn rules(&self) -> impl Iterator<Item = &'static Rule> {
        self.0.iter().filter_map(|name| RULES.iter().find(|rule| rule.name == *name))
    }
}

/// No rule has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no schedule rule is called \"{0}\"; there are {known}", known = RuleOrder::default().0.join(", "))]
pub struct UnknownRule(pub String);

/// What kernels are made for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The number of the architecture: 80 for `sm_80`, 90 for `sm_90a`. Rules use no instruction that it has not.
    pub arch: u32,
    /// The rules that are asked.
    pub rules: RuleOrder,
    /// Whether products of `float32` may be of factors with 10 bits of fraction, which tensor cores multiply: rounded, or cut off
    /// where `sm_90a` reads them from shared memory.
    pub tf32: bool,
    /// How many multiprocessors the device has: tiles are chosen so that each has some.
    pub units: u32,
}

impl Default for Target {
    /// The oldest architecture that is promised, and all rules.
    fn default() -> Target {
        Target { arch: OLDEST_ARCH, rules: RuleOrder::default(), tf32: false, units: UNITS }
    }
}

impl Preferences for Target {
    fn joins_chains(&self) -> bool {
        true
    }

    fn makes_one(&self, func: &PrimFunc) -> bool {
        crate::makes_one(&crate::prepared(func), self)
    }

    /// The channels of 16 bytes, where tensor cores multiply elements of this type. Elsewhere threads multiply, and read any
    /// layout as well.
    fn channels_together(&self, dtype: DType) -> Option<i64> {
        match dtype {
            DType::FLOAT16 | DType::BFLOAT16 => Some(8),
            DType::FLOAT32 if self.tf32 => Some(4),
            DType::INT8 | DType::UINT8 => Some(16),
            _ => None,
        }
    }
}

impl Target {
    /// Bytes of shared memory that a block may have: 99 KiB on compute capability 8.6, 8.9 and 12, and where nothing is known; 163 KiB
    /// on 8.0, and as much is used of newer ones of that kind, which have more (CUDA programming guide, "Compute Capabilities").
    pub(crate) fn shared_bytes(&self) -> u32 {
        match self.arch {
            80 | 87 | 90 | 100 | 103 => 163 << 10,
            _ => 99 << 10,
        }
    }
}

/// Multiprocessors of a device that nobody asked: those of an H100 or H200.
pub const UNITS: u32 = 132;

/// Where shared memory whose size a launch says begins: behind what a text declares, at a multiple of these bytes (`RX_SHARED`).
const SHARED_ALIGNMENT: u32 = 1024;

/// The oldest architecture that is promised: `sm_80`.
pub const OLDEST_ARCH: u32 = 80;

/// The number of an architecture that is written `sm_80` or `sm_90a`.
///
/// # Errors
/// It is written otherwise, or older than [`OLDEST_ARCH`].
pub fn arch(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("sm_").map(|number| number.strip_suffix('a').unwrap_or(number));
    let number = number.and_then(|number| number.parse().ok()).ok_or("write sm_80")?;
    if number < OLDEST_ARCH {
        Err(format!("the oldest architecture that kernels are made for is sm_{OLDEST_ARCH}"))
    } else {
        Ok(number)
    }
}

/// The statements of a function that no kernel does yet.
pub(crate) struct Task<'f> {
    pub(crate) func: &'f PrimFunc,
    /// The statements, the next first. There is at least one.
    pub(crate) statements: &'f [Statement],
    /// All statements of the function, and the place of the first of these among them.
    pub(crate) of: (&'f Statements, usize),
    pub(crate) target: &'f Target,
}

/// Why a rule does not take a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declined(pub(crate) String);

impl Declined {
    pub(crate) fn because(reason: impl Into<String>) -> Declined {
        Declined(reason.into())
    }

    /// Declines for this reason where a condition holds.
    pub(crate) fn when(condition: bool, reason: &str) -> Result<(), Declined> {
        if condition { Err(Declined::because(reason)) } else { Ok(()) }
    }
}

impl From<rx_schedule::Declined> for Declined {
    fn from(declined: rx_schedule::Declined) -> Declined {
        Declined::because(declined.0)
    }
}

impl Task<'_> {
    /// The statement at a place from the front as loops around one block, where nothing the host knows guards it.
    ///
    /// # Errors
    /// Where it is something else.
    pub(crate) fn nest(&self, at: usize) -> Result<rx_schedule::Nest, Declined> {
        let statement = self.statements.get(at).ok_or_else(|| Declined::because("there is no further statement"))?;
        Declined::when(statement.guard.is_some(), "it is done under a condition")?;
        statement.nest(self.func).ok_or_else(|| Declined::because("no loops around one block"))
    }

    /// Whether a buffer is one that lives between the function's statements, and nobody outside sees.
    pub(crate) fn is_temporary(&self, buffer: BufferId) -> bool {
        self.of.0.temporaries.contains(&buffer)
    }

    /// Whether a statement uses a buffer when the first `taken` ones are done.
    pub(crate) fn is_used_behind(&self, taken: usize, buffer: BufferId) -> bool {
        let (of, at) = self.of;
        // What is a block's or a thread's own is gone with its launch.
        let stays = self.is_temporary(buffer) && self.func.buffer(buffer).scope == Scope::Global;
        of.use_from(at + taken, buffer) || stays && of.use_again(at, buffer)
    }

    /// The same without the first statements.
    pub(crate) fn behind(&self, taken: usize) -> Option<Task<'_>> {
        let statements = self.statements.get(taken..).filter(|rest| !rest.is_empty())?;
        Some(Task { statements, of: (self.of.0, self.of.1 + taken), ..*self })
    }
}

/// Whether a statement reads or writes a buffer.
pub(crate) fn uses(stmt: &Stmt, buffer: BufferId) -> bool {
    buffers_of(stmt).contains(&buffer)
}

/// The buffers a statement reads or writes.
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

/// Statements taken from the front of a task, and how they are run.
pub(crate) struct Schedule {
    /// How many statements, at least one.
    pub(crate) taken: usize,
    /// The kernels in order.
    pub(crate) kernels: Vec<Box<dyn KernelBody>>,
    /// Buffers for what the kernels hand on to each other, beside those of the function: numbered in this order by
    /// [`Kernel::scratch_buffer`].
    pub(crate) scratch: Vec<Scratch>,
    /// Its tiles and why it chose them, a line without its end.
    pub(crate) note: String,
}

impl Schedule {
    /// One kernel for the first `taken` statements.
    pub(crate) fn single(taken: usize, kernel: impl KernelBody + 'static) -> Schedule {
        Schedule { taken, kernels: vec![Box::new(kernel)], scratch: Vec::new(), note: String::new() }
    }
}

/// Memory of the device that the kernels of a schedule share.
#[derive(Clone, Debug)]
pub(crate) struct Scratch {
    /// What it is called in the text.
    pub(crate) name: &'static str,
    /// Its bytes, `int64` over the function's scalars and symbols.
    pub(crate) bytes: Expr,
}

/// A kernel that a rule made.
pub(crate) trait KernelBody {
    /// How it is launched, and what must be known of it before it is printed.
    fn frame(&self) -> Frame<'_>;

    /// Prints the kernel's body.
    ///
    /// # Errors
    /// CUDA C has no form for a part of it; the rule has then declined.
    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String>;
}

/// A kernel but for its text.
pub(crate) struct Frame<'k> {
    /// The function it is printed from, where the rule changed it: with variables of its own.
    pub(crate) func: Option<&'k PrimFunc>,
    /// How it is launched.
    pub(crate) shape: LaunchShape,
    /// Where it does not hold, the host does not launch it.
    pub(crate) guard: Option<&'k Expr>,
    /// What it does, for its comment and to know which buffers are passed: those that occur here, in the function's order.
    pub(crate) statements: Vec<&'k Stmt>,
    /// Iterations of its innermost loops, where they are not those of its statements: it combines what another kernel computed.
    pub(crate) work: Option<Expr>,
    /// Buffers of [`Frame::statements`] that are not passed, because nothing but this kernel sees them.
    pub(crate) kept: Vec<BufferId>,
    /// How many of its blocks a multiprocessor should have at once, where that is said: the compiler then gives each no more
    /// registers than that leaves.
    pub(crate) least_blocks: Option<u32>,
    /// Names that its text uses for itself; buffers and variables of the function get others.
    pub(crate) own_names: &'static [&'static str],
    /// Whether its threads work together. A check that fails then writes the error cell and goes on with a value in
    /// range, so that no barrier waits for a thread that ended; else it ends the thread.
    pub(crate) is_cooperative: bool,
}

impl<'k> Frame<'k> {
    /// Threads that work together on these statements.
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
