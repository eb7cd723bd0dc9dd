//! What is interpreted: a function with its names resolved and its integers and floats told apart.

use crate::compile::Compiler;
use crate::error::RunError;
use rx_base::Name;
use rx_tensor::Element;
use rx_tir::{BinaryOp, CompareOp, PrimFunc, Site, begin_empty_reductions};

/// A function made ready to run any number of times.
#[derive(Debug)]
pub struct Program {
    /// The function's tables; its body is `body`.
    pub(crate) func: PrimFunc,
    pub(crate) body: Step,
    pub(crate) sites: Vec<Site>,
    /// Buffers that are read or written, by their index.
    pub(crate) used: Vec<bool>,
}

impl Program {
    /// Resolves a function.
    ///
    /// # Errors
    /// [`RunError::UnsupportedDType`], [`RunError::TooDeep`], or [`RunError::Malformed`].
    pub fn new(func: &PrimFunc) -> Result<Program, RunError> {
        Compiler::new(&begin_empty_reductions(func)).program()
    }
}

/// An index into [`Program::sites`].
pub(crate) type SiteId = u32;

/// A statement. Variables and buffers are indices of the function's tables.
#[derive(Debug)]
pub(crate) enum Step {
    Seq(Vec<Step>),
    For { var: usize, element: Element, start: Int, extent: Int, body: Box<Step> },
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

/// An instance of a block.
#[derive(Debug)]
pub(crate) struct BlockStep {
    /// Axes' variables and values.
    pub bindings: Vec<(usize, Int)>,
    pub predicate: Option<Int>,
    /// Buffers whose contents are undefined at the start.
    pub allocations: Vec<usize>,
    /// Done where each of these variables has this value.
    pub init: Option<(Vec<(usize, Int)>, Step)>,
    pub body: Step,
}

/// A place in a buffer; one index per dim.
#[derive(Debug)]
pub(crate) struct Access {
    pub buffer: usize,
    pub indices: Vec<Int>,
    pub site: SiteId,
}

/// An expression whose value is an integer or `bool`.
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
    /// An integer of any kind as one of this element.
    Wrap(Element, Box<Int>),
    /// A function of one integer whose result is wrapped.
    Unary(fn(i64) -> i64, Element, Box<Int>),
    FromFloat(Element, Box<Float>),
    /// The bits of a float of the first element as an integer of the second.
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

/// Operations of two integers.
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

/// An index with its own check.
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
    /// An integer of the first element.
    FromInt(Element, Element, Box<Int>),
    /// The float whose bits these are.
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
