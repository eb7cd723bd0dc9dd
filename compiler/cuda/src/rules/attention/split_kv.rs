//! Split-KV, second kernel (Flash-Decoding): combines the results of the blocks that share the keys of a row.
//!
//! ```text
//! first kernel, per slice p of the keys and per row:   max[p], total[p], sums[p, e]
//! this kernel, per element (row, e):
//!     top = max_p max[p]
//!     O[row, e] = Σ_p sums[p, e] · exp(max[p] - top)  /  Σ_p total[p] · exp(max[p] - top)
//! ```
//!
//! Requires: the first kernel ([`super::kernel`]) stored `width + 2` floats per batch value, slice and row, in this
//! order: the maximum, the total, the unnormalized sums. Guarantees: slices are added in ascending order, so results
//! are deterministic.

use super::kernel::{LOG2E, at_column, share, slices};
use super::places::Places;
use super::problem::Problem;
use super::template::Template;
use crate::printer::Kernel;
use crate::rules::{Frame, KernelBody};
use crate::source::LaunchShape;
use rx_tir::Expr;
use std::rc::Rc;

/// The kernel that combines the split-KV slices: one thread per element of the result.
pub(super) struct SplitKvCombine {
    /// The matched attention.
    pub(super) problem: Rc<Problem>,
    /// The maximum number of keys per slice.
    pub(super) slice: i64,
}

impl SplitKvCombine {
    /// Returns the number of elements of the result.
    fn elements(&self) -> Expr {
        self.problem.batch_count() * self.problem.row_count() * Expr::int(self.problem.width.1)
    }

    /// Returns the size in bytes of the scratch buffer with the results of all slices.
    pub(super) fn bytes(&self) -> Expr {
        let rows = self.problem.batch_count() * self.problem.row_count() * slices(&self.problem, self.slice);
        rows * Expr::int(4 * (self.problem.width.1 + 2))
    }
}

impl KernelBody for SplitKvCombine {
    fn frame(&self) -> Frame<'_> {
        let problem = &*self.problem;
        let mut kept = problem.kept.clone();
        kept.extend(problem.epilogue.kept_after(&problem.statements, problem.behind));
        Frame {
            func: Some(&problem.func),
            work: Some(self.elements() * slices(problem, self.slice)),
            kept,
            is_cooperative: false,
            ..Frame::new(LaunchShape::threads(self.elements()), problem.statements.iter().skip(problem.behind - 1))
        }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let words = &mut Template::new(kernel);
        let problem = &*self.problem;
        words.kernel.need("rx_exp2");
        words.kernel.need("RX_INFINITY");
        let name = words.kernel.scratch_buffer(0, "partial", "const float");
        words.set("partial", name);
        words.set("LOG2E", LOG2E);
        words.set("COLUMNS", problem.width.1);
        words.set("PARTIAL", problem.width.1 + 2);
        words.set_expr("ROW_COUNT", &problem.row_count())?;
        words.set_expr("KEY_COUNT", &problem.key_count())?;
        words.set_expr("SLICES", &slices(problem, self.slice))?;
        words.set_expr("ELEMENTS", &self.elements())?;
        let places = Places::new(words.kernel, problem);
        words.print(
"
            const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
            if (thread >= $ELEMENTS) return;
            const long long $rows = $ROW_COUNT, $keys = $KEY_COUNT, $slices = $SLICES;
            const long long $column = thread % $COLUMNS, $row = thread / $COLUMNS % $rows, $batch = thread / $COLUMNS / $rows;
            const float* $from = $partial + ($batch * $slices * $rows + $row) * $PARTIAL;
            float $top = -RX_INFINITY, $whole = 0.0f, $value = 0.0f;
            for (long long $slice = 0; $slice < $slices; ++$slice) $top = fmaxf($top, $from[$slice * $rows * $PARTIAL]);
            const float $base = $top == -RX_INFINITY ? 0.0f : $top;
            for (long long $slice = 0; $slice < $slices; ++$slice) {
                const float* $of_part = $from + $slice * $rows * $PARTIAL;
                const float $carried = rx_exp2(($of_part[0] - $base) * $LOG2E);
                $whole += $of_part[1] * $carried;
                $value += $of_part[2 + $column] * $carried;
            }
            ",
        );
        share(words, problem);
        words.print("$value *= $share;");
        places.batch(words, "batch")?;
        places.at_row(words, "row")?;
        at_column(words, problem, "column");
        let value = words.word("value");
        problem.epilogue.print(words.kernel, &problem.func, &value, None)
    }
}
