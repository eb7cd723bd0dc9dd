//! Kernels that are built once: networks repeat their layers.

use rustc_hash::FxHashMap;
use rx_base::Name;
use rx_lower::Program;
use rx_tir::PrimFunc;

/// The functions of a program's kernels, each once; and for each kernel the index of its function.
pub fn distinct(program: &Program) -> (Vec<usize>, Vec<&PrimFunc>) {
    let mut funcs: Vec<&PrimFunc> = Vec::new();
    let mut by_name: FxHashMap<Name, Vec<usize>> = FxHashMap::default();
    let mut index = Vec::with_capacity(program.kernels.len());
    for kernel in &program.kernels {
        let func = &*kernel.func;
        let named = by_name.entry(func.name).or_default();
        let known = named.iter().copied().find(|at| funcs[*at].does_the_same(func));
        index.push(known.unwrap_or_else(|| {
            named.push(funcs.len());
            funcs.push(func);
            funcs.len() - 1
        }));
    }
    (index, funcs)
}
