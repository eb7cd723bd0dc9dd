//! The interpreter's representation of a function: names are resolved to indices, and integer and float expressions
//! have separate types.

use crate::compile::Compiler;
use crate::error::RunError;
use rx_base::Name;
use rx_tensor::Element;
use rx_tir::{BinaryOp, CompareOp, PrimFunc, Site, begin_empty_reductions};

/// A function that is prepared for execution and can be run any number of times.
#[derive(Debug)]
pub struct Program {
    /// The function's parameters, variables and buffers. Its body is empty: `body` replaces it.
    pub(crate) func: PrimFunc,
    pub(crate) body: Step,
    pub(crate) sites: Vec<Site>,
    /// Whether each buffer is accessed.
    pub(crate) used: Vec<bool>,
}

impl Program {
    /// Translates a function.
    ///
    /// # Errors
    /// [`RunError::UnsupportedDType`], [`RunError::TooDeep`], or [`RunError::Malformed`].
    pub fn new(func: &PrimFunc) -> Result<Program, RunError> {
        Compiler::new(&begin_empty_reductions(func)).program()
    }
}

/// An index into [`Program::sites`].
pub(crate) type SiteId = u32;

/// A statement. Variables are slots and buffers are indices into the function's table. `Once` is a loop of one iteration,
/// whose variable is a constant in its body.
#[derive(Debug)]
pub(crate) enum Step {
    Seq(Vec<Step>),
    For { var: usize, element: Element, start: Int, extent: Int, body: Box<Step> },
    Once(Box<Step>),
    Block(Box<BlockStep>),
    StoreInt(Box<Access>, Int),
    StoreFloat(Box<Access>, Float),
    LetInt { var: usize, value: Int, body: Box<Step> },
    LetFloat { var: usize, value: Float, body: Box<Step> },
    If { condition: Int, then: Box<Step>, otherwise: Option<Box<Step>> },
    While { condition: Int, body: Box<Step> },
    Assert { condition: Int, message: Name, site: SiteId },
    EvaluateInt(Int),
    EvaluateFloat(Float),
}

/// An instance of a block (TIR `BlockRealize`).
#[derive(Debug)]
pub(crate) struct BlockStep {
    /// The slots of the axes that do not have the place of a loop variable, with the values bound to them.
    pub bindings: Vec<(usize, Int)>,
    pub predicate: Option<Int>,
    /// Local buffers, whose contents are undefined at the start of each instance.
    pub allocations: Vec<usize>,
    /// The `init` statement, executed if the values of each pair are equal: a reduction axis and its start. For example,
    /// `C[i, j] = 0` in a matmul is executed if `k == 0`.
    pub init: Option<(Vec<(Int, Int)>, Step)>,
    pub body: Step,
}

/// The address of a buffer element: one index for each dim.
#[derive(Debug)]
pub(crate) struct Access {
    pub buffer: usize,
    pub indices: Vec<Int>,
    pub site: SiteId,
}

/// An expression whose value is an integer or a `bool`.
#[derive(Debug)]
pub(crate) enum Int {
    Constant(i64),
    Var(usize),
    Load(Box<Access>),
    Binary(Box<IntBinary>),
    And(Box<(Int, Int)>),
    Or(Box<(Int, Int)>),
    Not(Box<Int>),
    Compare(Box<IntCompare>),
    CompareFloat(Box<(CompareOp, Float, Float)>),
    Select(Box<(Int, Int, Int)>),
    /// Wraps an integer to this dtype.
    Wrap(Element, Box<Int>),
    /// Applies a function to an integer and wraps the result to the dtype.
    Unary(fn(i64) -> i64, Element, Box<Int>),
    FromFloat(Element, Box<Float>),
    /// Reinterprets a float of the first dtype as bits, and wraps them to the second dtype.
    FloatBits(Element, Element, Box<Float>),
    TestFloat(fn(f64) -> bool, Box<Float>),
    Checked(Box<CheckedIndex>),
}

#[derive(Debug)]
pub(crate) struct IntBinary {
    pub op: IntOp,
    pub element: Element,
    pub left: Int,
    pub right: Int,
    pub site: SiteId,
}

/// An operation on two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntOp {
    Binary(BinaryOp),
    Pow,
}

#[derive(Debug)]
pub(crate) struct IntCompare {
    pub op: CompareOp,
    pub unsigned: bool,
    pub left: Int,
    pub right: Int,
}

/// An index with an explicit bounds check against `extent`.
#[derive(Debug)]
pub(crate) struct CheckedIndex {
    pub index: Int,
    pub extent: Int,
    pub buffer: usize,
    pub axis: usize,
    pub site: SiteId,
}

/// An expression whose value is a float.
#[derive(Debug)]
pub(crate) enum Float {
    Constant(f64),
    Var(usize),
    Load(Box<Access>),
    Negate(Box<Float>),
    Binary(Box<FloatBinary>),
    Select(Box<(Int, Float, Float)>),
    Round(Element, Box<Float>),
    /// Converts an integer of the first dtype to a float of the second.
    FromInt(Element, Element, Box<Int>),
    /// Reinterprets bits as a float.
    FromBits(Element, Box<Int>),
    Call1(fn(f64) -> f64, Element, Box<Float>),
    Call2(fn(f64, f64) -> f64, Element, Box<(Float, Float)>),
    Ldexp(Element, Box<(Float, Int)>),
    NextAfter(Element, Box<(Float, Float)>),
}

#[derive(Debug)]
pub(crate) struct FloatBinary {
    pub op: BinaryOp,
    pub element: Element,
    pub left: Float,
    pub right: Float,
}
