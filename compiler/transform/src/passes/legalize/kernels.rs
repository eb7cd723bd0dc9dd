//! The prim_funcs that `LegalizeOps` creates. Prim_funcs that differ only in names are shared.

use super::target::{self, Target};
use crate::Module;
use crate::equal::nameless;
use crate::names::FreshNames;
use rx_base::Name;
use rx_base::name::{NameSet, name};
use rx_ir::{Attr, Item, LoopBody, LoopFunction, StructInfo};
use rx_tir::PrimFunc;
use std::collections::HashMap;
use std::sync::Arc;

/// The prim_funcs of a module and those created so far.
pub(super) struct Kernels {
    targets: Vec<Target>,
    /// The names of the module's items and of new prim_funcs.
    taken: FreshNames,
    /// The prim_funcs that can be reused: maps the loops, printed without names, to the name of the prim_func.
    known: HashMap<String, Name>,
    /// The copies of prim_funcs for a target: maps the name of the prim_func without a target, and the text of the
    /// target, to the name of the copy.
    targeted: HashMap<(Name, Arc<str>), Name>,
    made: Vec<LoopFunction<PrimFunc>>,
    /// The prim_funcs that are called.
    called: NameSet,
}

impl Kernels {
    /// Collects the reusable prim_funcs of a module. A public one, or one with other attributes than new ones get, is
    /// not reused.
    pub(super) fn of(module: &Module) -> Kernels {
        let plain = module.prim_funcs().filter(|function| function.private && function.attributes == attributes());
        let known = plain.filter_map(|function| Some((nameless(function.loops()?), function.name)));
        Kernels {
            targets: target::of_module(module),
            taken: FreshNames::of_module(module),
            known: known.collect(),
            targeted: HashMap::new(),
            made: Vec::new(),
            called: NameSet::default(),
        }
    }

    /// Returns the name of a prim_func with the loops of `func`, for the device of the result types. Adds one if none
    /// is known yet.
    ///
    /// The name of a new one is `hint`, or if that is used, `hint1`, `hint2`, …. If the result types have a device with
    /// a target, the prim_func is a copy, whose name ends in the target's kind: `add_llvm` is the copy of `add`. If
    /// that name is used, it is `add_llvm1`, `add_llvm2`, ….
    pub(super) fn named(&mut self, func: PrimFunc, hint: &str, results: &[StructInfo]) -> Name {
        let key = nameless(&func);
        let plain = match self.known.get(&key) {
            Some(known) => *known,
            None => {
                let own = self.add(&func, hint, attributes());
                self.known.insert(key, own);
                own
            }
        };
        let own = match target::of_types(&self.targets, results).cloned() {
            None => plain,
            Some(target) => self.for_target(plain, &func, &target),
        };
        self.called.insert(own);
        own
    }

    fn for_target(&mut self, plain: Name, func: &PrimFunc, target: &Target) -> Name {
        let Attr::Opaque(text) = &target.attribute else { return plain };
        if let Some(known) = self.targeted.get(&(plain, text.clone())) {
            return *known;
        }
        let attributes = [(Arc::from("target"), target.attribute.clone())].into_iter().chain(attributes());
        let own = self.add(func, &format!("{plain}_{}", target.kind), attributes.collect());
        self.targeted.insert((plain, text.clone()), own);
        own
    }

    /// Adds a prim_func under an unused name.
    fn add(&mut self, func: &PrimFunc, hint: &str, attributes: Vec<(Arc<str>, Attr)>) -> Name {
        let own = self.taken.numbered(name(hint), "");
        let body = LoopBody::Made(Arc::new(PrimFunc { name: own, ..func.clone() }));
        self.made.push(LoopFunction { name: own, private: true, attributes, body });
        own
    }

    /// Inserts those of the created prim_funcs that are called, before the first Relax function. If there are any, a
    /// module without a class gets one, so that the functions can refer to each other.
    pub(super) fn into_module(self, module: &mut Module) {
        let Kernels { made, called, .. } = self;
        let made: Vec<_> = made.into_iter().filter(|function| called.contains(&function.name)).collect();
        if made.is_empty() {
            return;
        }
        module.class.get_or_insert_with(|| name("Module"));
        let first = module.items.iter().position(|item| matches!(item, Item::Relax(_))).unwrap_or(0);
        module.items.splice(first..first, made.into_iter().map(|function| Item::Loops(Arc::new(function))));
    }
}

/// Returns the attributes of a created prim_func without a target: its buffers do not alias.
fn attributes() -> Vec<(Arc<str>, Attr)> {
    vec![(Arc::from("tirx.noalias"), Attr::Bool(true))]
}
