//! Kernels that are built once: networks repeat their layers.

use rx_lower::Program;
use rx_tir::PrimFunc;

/// The functions of a program's kernels, each once, as its first kernel has it; and for each kernel the index of its function.
pub fn distinct(program: &Program) -> (Vec<usize>, Vec<PrimFunc>) {
    let (index, kernels) = program.distinct();
    (index, kernels.into_iter().map(|kernel| kernel.func()).collect())
}
