//! Names of kernels: one for all that do the same, another for each that does something else.

use crate::loops::Loops;
use crate::program::Program;
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::Name;
use rx_base::name::name;

/// Gives kernels that differ different names, as TVM numbers them: `conv2d`, `conv2d1`, `conv2d2`. Procedures keep theirs.
pub(crate) fn assign(program: &mut Program) {
    let mut taken: FxHashSet<Name> = program.procedures.iter().map(|procedure| procedure.name).collect();
    let mut named: FxHashMap<Loops, Name> = FxHashMap::default();
    let mut next: FxHashMap<Name, u32> = FxHashMap::default();
    for kernel in &mut program.kernels {
        kernel.name = *named.entry(kernel.loops.clone()).or_insert_with(|| {
            // An operator's name is of its module: `nn.conv2d`.
            let own = name(kernel.loops.name.rsplit('.').next().unwrap_or_default());
            unused(own, &mut taken, next.entry(own).or_default())
        });
    }
}

/// The name, or the first with a number behind it that is not taken.
fn unused(own: Name, taken: &mut FxHashSet<Name>, next: &mut u32) -> Name {
    let mut given = own;
    while !taken.insert(given) {
        *next += 1;
        given = name(&format!("{own}{next}"));
    }
    given
}
