//! Matrix products: operands that stand in memory as matrices, or are packed into one by loops of their own.

use crate::window::Window;
use rx_base::DType;
use rx_tir::expr::Expr;
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::stmt::{Site, Stmt};

/// A part of a function, to be run in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A loop nest, or any other statement.
    Nest(Stmt),
    /// A matrix product.
    Gemm(Box<Gemm>),
    /// A sum of few products along an axis.
    Window(Box<Window>),
    /// The steps for each value of a variable from 0, in order.
    Loop {
        /// The variable.
        var: VarId,
        /// How many values it takes; none where it is not positive.
        extent: Expr,
        /// What is done for each.
        body: Vec<Step>,
    },
}

/// `C = A · B`, or `C += A · B`, for each value of the batch's axes.
///
/// All expressions are `int64` over the function's scalars and the variables of the loops around. No element that a
/// product reads or writes is out of its buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Gemm {
    /// Axes of independent products, outermost first.
    pub batch: Vec<BatchAxis>,
    /// Rows of `A` and `C`.
    pub m: Expr,
    /// Columns of `B` and `C`.
    pub n: Expr,
    /// Columns of `A`, rows of `B`.
    pub k: Expr,
    /// The left factor, `m × k`.
    pub a: Matrix,
    /// The right factor, `k × n`.
    pub b: Matrix,
    /// The result, `m × n`.
    pub c: Matrix,
    /// Whether the products are added to what `C` holds.
    pub accumulate: bool,
    /// The element type of all three: `float32` or `float64`.
    pub dtype: DType,
    /// What a run-time error names.
    pub site: Site,
}

/// A matrix in a buffer: element `(i, j)` is the buffer's element `offset + i · row + j · column`, counted in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The buffer.
    pub buffer: BufferId,
    /// Where its first element stands, in elements.
    pub offset: Expr,
    /// Elements from a row to the next.
    pub row: Expr,
    /// Elements from a column to the next.
    pub column: Expr,
}

/// An axis of independent products: how far each matrix moves from one to the next; 0 where it is the same.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchAxis {
    /// How many.
    pub extent: Expr,
    /// Elements between the left factors.
    pub a: Expr,
    /// Elements between the right factors.
    pub b: Expr,
    /// Elements between the results.
    pub c: Expr,
}

/// A function cut into steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduled {
    /// The function, for its parameters and tables; its body is what the steps were made of. Variables and buffers that
    /// steps add are in its tables.
    pub func: PrimFunc,
    /// Buffers that live as long as the steps run: what the function's outermost blocks held, and packed operands.
    pub temporaries: Vec<BufferId>,
    /// What to do, in order.
    pub steps: Vec<Step>,
    /// Why each nest that is neither a matrix product nor a windowed sum is no matrix product, in the order of the nests.
    pub declined: Vec<&'static str>,
}

impl Scheduled {
    /// How many matrix products the steps hold, each counted once.
    pub fn gemm_count(&self) -> usize {
        fn count(steps: &[Step]) -> usize {
            let of = |step: &Step| match step {
                Step::Nest(_) | Step::Window(_) => 0,
                Step::Gemm(_) => 1,
                Step::Loop { body, .. } => count(body),
            };
            steps.iter().map(of).sum()
        }
        count(&self.steps)
    }
}
