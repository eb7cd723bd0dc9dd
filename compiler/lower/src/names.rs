//! Names of kernels: one for all that do the same, another for each that does something else.

use crate::program::Program;
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::Name;
use rx_base::name::name;
use std::sync::Arc;

/// Gives kernels that differ different names, as TVM numbers them: `conv2d`, `conv2d1`, `conv2d2`. Procedures keep theirs.
pub(crate) fn assign(program: &mut Program) {
    let mut taken: FxHashSet<Name> = program.procedures.iter().map(|procedure| procedure.name).collect();
    let mut named: FxHashMap<Name, Vec<(usize, Name)>> = FxHashMap::default();
    let mut next: FxHashMap<Name, u32> = FxHashMap::default();
    for at in 0..program.kernels.len() {
        let func = &program.kernels[at].func;
        // An operator's name is of its module: `nn.conv2d`.
        let own = name(func.name.rsplit('.').next().unwrap_or_default());
        let known = named.entry(own).or_default();
        let same = known.iter().find(|(other, _)| program.kernels[*other].func.does_the_same(func));
        let given = same.map(|(_, given)| *given).unwrap_or_else(|| {
            let given = unused(own, &mut taken, next.entry(own).or_default());
            known.push((at, given));
            given
        });
        if given != func.name {
            Arc::make_mut(&mut program.kernels[at].func).name = given;
        }
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
