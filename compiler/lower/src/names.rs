//! Assigns kernel names: kernels with equal functions share a name, and kernels with different functions have different
//! names.

use crate::loops::Loops;
use crate::program::Program;
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::Name;
use rx_base::name::name;

/// Names the kernels in TVM's style: `conv2d`, `conv2d1`, `conv2d2`. The names of procedures are not used for kernels.
pub(crate) fn assign(program: &mut Program) {
    let mut taken: FxHashSet<Name> = program.procedures.iter().map(|procedure| procedure.name).collect();
    let mut named: FxHashMap<Loops, Name> = FxHashMap::default();
    let mut next: FxHashMap<Name, u32> = FxHashMap::default();
    for kernel in &mut program.kernels {
        kernel.name = *named.entry(kernel.loops.clone()).or_insert_with(|| {
            // Operators have qualified names, such as `nn.conv2d`; the last part is used.
            let own = name(kernel.loops.name.rsplit('.').next().unwrap_or_default());
            unused(own, &mut taken, next.entry(own).or_default())
        });
    }
}

/// Returns the name if it is free, otherwise with the next number after `next` that makes it unique. `next` becomes
/// that number.
fn unused(own: Name, taken: &mut FxHashSet<Name>, next: &mut u32) -> Name {
    let mut given = own;
    while !taken.insert(given) {
        *next += 1;
        given = name(&format!("{own}{next}"));
    }
    given
}
