//! Kernels that are built once: networks repeat their layers.

use rustc_hash::FxHashMap;
use rx_lower::{Loops, Program};
use rx_tir::PrimFunc;

/// The functions of a program's kernels, each once, as its first kernel has it; and for each kernel the index of its function.
pub fn distinct(program: &Program) -> (Vec<usize>, Vec<PrimFunc>) {
    let mut funcs: Vec<PrimFunc> = Vec::new();
    let mut known: FxHashMap<&Loops, usize> = FxHashMap::default();
    let index = program.kernels.iter().map(|kernel| {
        *known.entry(&kernel.loops).or_insert_with(|| {
            funcs.push(kernel.func());
            funcs.len() - 1
        })
    });
    (index.collect(), funcs)
}
