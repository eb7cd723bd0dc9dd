//! Converts a program to a module of Relax functions and prim_funcs, so that the result of a step of the pipeline can
//! be read.
//!
//! ```text
//! kernel of inputs a, b with a scalar n      lv: R.Tensor(…) = R.call_tir(cls.fused_add, (a, b, n), out_ty=R.Tensor(…))
//! the same with planned memory               alloc: R.Tensor(…) = R.memory.alloc_tensor(storage, 0, …)
//!                                            cls.fused_add(a, b, n, alloc)
//! view                                       R.reshape(a, R.shape([…]))
//! check of a type                            R.match_cast(a, R.Tensor(…))
//! closure                                    R.make_closure(cls.inner, (captured, …))
//! ```
//!
//! Kernels with equal functions become one prim_func. A nested function becomes a function of the module whose last
//! parameters are the captured values, as after TVM's `LambdaLift`. The module's text has no errors, and computes the
//! same values as the program.

mod function;
mod types;

use function::Writer;
use rx_base::Name;
use rx_base::name::{NameMap, NameSet, name};
use rx_ir::{Attr, Item, LoopBody, LoopFunction, Module};
use rx_lower::Program;
use rx_tir::PrimFunc;
use std::sync::Arc;

/// Replaces the functions of the module `source` by those of a program that was lowered from it.
pub fn to_module(program: &Program, source: &Module<PrimFunc>) -> Module<PrimFunc> {
    let _span = tracing::debug_span!("to_module").entered();
    let mut program = program.clone();
    rx_lower::steps::name_kernels(&mut program);
    let names = procedure_names(&program);
    let is_text = |item: &&Item<PrimFunc>| matches!(item, Item::Text { .. });
    let mut items: Vec<Item<PrimFunc>> = source.items.iter().filter(is_text).cloned().collect();
    items.extend(prim_funcs(&program));
    for (at, procedure) in program.procedures.iter().enumerate() {
        let function = Writer::new(&program, &names, procedure).function(names[at], at > 0);
        items.push(Item::Relax(Arc::new(function)));
    }
    let class = source.class.or_else(|| Some(name("Module")));
    Module { prelude: source.prelude.clone(), constants: source.constants.clone(), class, items }
}

/// Returns the functions of the kernels, each once, with all statements that it comes from.
fn prim_funcs(program: &Program) -> Vec<Item<PrimFunc>> {
    let mut funcs: Vec<PrimFunc> = Vec::new();
    let mut by_name: NameMap<usize> = NameMap::default();
    for kernel in &program.kernels {
        match by_name.get(&kernel.name) {
            Some(at) => funcs[*at].origins.extend_from_slice(&kernel.origins),
            None => {
                by_name.insert(kernel.name, funcs.len());
                funcs.push(kernel.func());
            }
        }
    }
    let item = |mut func: PrimFunc| {
        func.origins.sort_unstable();
        func.origins.dedup();
        let attributes = vec![(Arc::from("tirx.noalias"), Attr::Bool(true))];
        let body = LoopBody::Made(Arc::new(func.clone()));
        Item::Loops(Arc::new(LoopFunction { name: func.name, private: true, attributes, body }))
    };
    funcs.into_iter().map(item).collect()
}

/// Returns unique names for the procedures. For example, two nested functions `inner` are called `inner` and `inner1`.
fn procedure_names(program: &Program) -> Vec<Name> {
    let mut taken: NameSet = program.kernels.iter().map(|kernel| kernel.name).collect();
    let mut different = |own: Name| {
        let mut given = own;
        let mut number = 0;
        while !taken.insert(given) {
            number += 1;
            given = name(&format!("{own}{number}"));
        }
        given
    };
    program.procedures.iter().map(|procedure| different(procedure.name)).collect()
}
