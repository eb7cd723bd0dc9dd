//! The result of scheduling: steps, and matrix products over strided or packed operands. `matmul` builds the products,
//! and the CPU back end emits calls for them.

use crate::windowed_sum::WindowedSum;
use rx_base::DType;
use rx_tir::expr::Expr;
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::stmt::{Site, Stmt};

/// A part of a scheduled function. Steps run in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A loop nest or any other statement.
    Nest(Stmt),
    /// A matrix product.
    Gemm(Box<Gemm>),
    /// A windowed sum.
    WindowedSum(Box<WindowedSum>),
    /// A serial loop over steps, from 0.
    Loop {
        /// The loop's variable.
        var: VarId,
        /// The trip count; no iterations if it is not positive.
        extent: Expr,
        /// The steps of an iteration.
        body: Vec<Step>,
    },
}

/// `C = A · B` or `C += A · B` for each value of the batch axes.
///
/// All expressions are `int64` over the function's scalars and the variables of the enclosing loops. All elements that
/// a product reads or writes are proved to be in their buffers, except from [`crate::schedule_unguarded`].
#[derive(Clone, Debug, PartialEq)]
pub struct Gemm {
    /// The batch axes, outermost first.
    pub batch: Vec<BatchAxis>,
    /// The number of rows of `A` and `C`.
    pub m: Expr,
    /// The number of columns of `B` and `C`.
    pub n: Expr,
    /// The number of columns of `A` and rows of `B`.
    pub k: Expr,
    /// The left factor, `m × k`.
    pub a: Matrix,
    /// The right factor, `k × n`.
    pub b: Matrix,
    /// The result, `m × n`.
    pub c: Matrix,
    /// Whether the product is added to the values in `C`.
    pub accumulate: bool,
    /// The element type of all three matrices: `float32` or `float64`.
    pub dtype: DType,
    /// The statement that a run-time error names.
    pub site: Site,
}

/// A strided matrix in a buffer: element `(i, j)` has the flat index `offset + i · row + j · column`.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The buffer.
    pub buffer: BufferId,
    /// The flat index of element `(0, 0)`.
    pub offset: Expr,
    /// The distance from one row to the next, in elements.
    pub row: Expr,
    /// The distance from one column to the next, in elements.
    pub column: Expr,
}

/// A batch axis with the stride of each matrix along it. The stride is 0 for a matrix that all products share.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchAxis {
    /// The number of products along the axis.
    pub extent: Expr,
    /// The distance from one product's left factor to the next one's, in elements.
    pub a: Expr,
    /// The distance from one product's right factor to the next one's, in elements.
    pub b: Expr,
    /// The distance from one product's result to the next one's, in elements.
    pub c: Expr,
}

/// A function split into steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduled {
    /// The function, for its parameters and tables. Its body is the statement that the steps were built from. Its
    /// tables also contain the variables and buffers that the steps add.
    pub func: PrimFunc,
    /// Buffers that are allocated while the steps run: those of top-level blocks that only allocate, and packed
    /// operands.
    pub temporaries: Vec<BufferId>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// For each statement that is neither a matrix product nor a windowed sum, the reason why it is no matrix product,
    /// in the order of the statements.
    pub declined: Vec<&'static str>,
}

impl Scheduled {
    /// Returns the number of matrix products in the steps. A product in a loop counts once.
    pub fn gemm_count(&self) -> usize {
        fn count(steps: &[Step]) -> usize {
            let of = |step: &Step| match step {
                Step::Nest(_) | Step::WindowedSum(_) => 0,
                Step::Gemm(_) => 1,
                Step::Loop { body, .. } => count(body),
            };
            steps.iter().map(of).sum()
        }
        count(&self.steps)
    }
}
