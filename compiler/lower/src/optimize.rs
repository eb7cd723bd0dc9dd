//! What is done to every program before it is compiled.

use crate::preferences::Preferences;
use crate::program::{Kernel, Program};
use rx_tir::PrimFunc;
use std::sync::Arc;

/// Joins kernels, puts what is computed element by element into the loops that read it, makes index arithmetic small; and what a
/// device prefers.
pub fn optimize(program: &mut Program, preferences: &dyn Preferences) {
    crate::fuse::fuse(program, preferences);
    for kernel in &mut program.kernels {
        kernel.func = Arc::new(small(&kernel.func));
    }
    crate::layout::assign(program, preferences);
}

/// The program that is one prim_func and nothing that calls it, to be looked at: unproved indices are marked, and the
/// loops are those of [`optimize`] where `optimized` says so.
pub fn alone(func: &PrimFunc, optimized: bool) -> Program {
    let (guarded, _) = rx_schedule::guards(func);
    let func = if optimized { small(&guarded) } else { guarded };
    let inputs = func.buffer_params().count();
    Program { kernels: vec![Kernel { func: Arc::new(func), inputs }], ..Program::default() }
}

fn small(func: &PrimFunc) -> PrimFunc {
    rx_schedule::simplify(&rx_schedule::inline(&rx_schedule::simplify(func)))
}
