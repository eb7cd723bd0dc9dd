//! Split-K, second kernel: adds the partial sums of each element and the initial value, then applies the epilogue.
//!
//! ```text
//! slice s (first kernel):     slices[s, b, m, n] = Σ over the slice's K values
//! this kernel, per element:   C[b, m, n] = epilogue(initial + (slices[0, …] + slices[1, …] + …))
//! ```
//!
//! Requires: the first kernel stored all slices. Guarantees: slices are added in ascending order,
//! without atomics, so results are deterministic.
//!
//! Reference: CUTLASS's `include/cutlass/gemm/kernel/gemm_splitk_parallel.h`.

use super::kernel::{finish_element, partial_type};
use super::names::{GemmNames, OWN_NAMES};
use super::problem::Problem;
use super::tiles::Tiling;
use crate::printer::{Kernel, expr};
use crate::rules::{Frame, KernelBody};
use crate::source::LaunchShape;
use rx_tir::Expr;
use std::rc::Rc;

/// The kernel that adds the split-K slices and the initial value, and applies the epilogue: one thread per element of
/// the result.
pub(crate) struct SplitKReduction {
    pub(crate) problem: Rc<Problem>,
    pub(crate) tiling: Tiling,
    /// The number of slices.
    pub(crate) slices: i64,
}

impl SplitKReduction {
    /// Returns the number of elements of the result.
    pub(crate) fn elements(problem: &Problem) -> Expr {
        problem.batch.extent() * problem.m.extent() * problem.n.extent()
    }
}

impl KernelBody for SplitKReduction {
    fn frame(&self) -> Frame<'_> {
        let problem = &*self.problem;
        let elements = SplitKReduction::elements(problem);
        Frame {
            func: Some(&problem.func),
            work: Some(elements.clone() * Expr::int(self.slices)),
            kept: problem.epilogue.kept_after(&problem.statements, problem.own),
            own_names: OWN_NAMES,
            ..Frame::new(LaunchShape::threads(elements), &problem.statements)
        }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let problem = &*self.problem;
        let names = GemmNames::new(kernel, problem, true)?;
        let (ctype, _) = partial_type(&self.tiling, problem.dtype)?;
        let slices = kernel.scratch_buffer(0, "slices", ctype);
        let elements = SplitKReduction::elements(problem);
        let count = kernel.operand(&elements, expr::RELATION + 1)?;
        kernel.line("const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;");
        kernel.line(&format!("if (thread >= {count}) return;"));
        let [m, n, _] = &names.ends;
        let (row, column, index) = (&names.row, &names.column, names.index);
        kernel
            .line(&format!("const {index} {row} = ({index})(thread / {n} % {m}), {column} = ({index})(thread % {n});"));
        if !problem.batch.loops.is_empty() {
            let batch = kernel.fresh_name("batch");
            kernel.line(&format!("const {index} {batch} = ({index})(thread / {n} / {m});"));
            names.decode(kernel, &problem.batch, &batch, &|var| !names.is_narrow(var))?;
        }
        names.decode(kernel, &problem.m, row, &|var| !names.is_narrow(var))?;
        names.decode(kernel, &problem.n, column, &|var| !names.is_narrow(var))?;
        let sums = &names.sums;
        kernel.line(&format!("{ctype} {sums} = {slices}[thread];"));
        kernel.line(&format!(
            "for (int i = 1; i < {}; ++i) {sums} += {slices}[i * (long long){count} + thread];",
            self.slices
        ));
        finish_element(kernel, problem, sums, None)
    }
}
