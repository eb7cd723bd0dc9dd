//! What is done to every program before it is compiled.

use crate::program::Program;
use std::sync::Arc;

/// Joins kernels, puts what is computed element by element into the loops that read it, makes index arithmetic small.
pub fn optimize(program: &mut Program) {
    crate::fuse::fuse(program);
    for kernel in &mut program.kernels {
        let small = rx_schedule::simplify(&kernel.func);
        kernel.func = Arc::new(rx_schedule::simplify(&rx_schedule::inline(&small)));
    }
}
