//! The prim_funcs that a pass makes: those that differ in nothing but names are one.

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

/// The prim_funcs of a module, those made so far among them.
pub(super) struct Kernels {
    targets: Vec<Target>,
    /// The names that the module's items have.
    taken: FreshNames,
    /// Prim_funcs that may be called, by their loops without names.
    known: HashMap<String, Name>,
    /// Those that were made for a target, by that without one.
    targeted: HashMap<(Name, Arc<str>), Name>,
    made: Vec<LoopFunction<PrimFunc>>,
    /// What was asked for.
    called: NameSet,
}

impl Kernels {
    /// Those of a module. One that other modules may call, or that says more of itself than what is made says, is not called
    /// in the place of one that is made.
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

    /// The name of the prim_func that does what `func` does, for the device that the types of its results say: `hint`, or
    /// `hint1`, `hint2`, … of a new one; behind it the kind of device.
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

    /// Adds a prim_func under a name that nothing has.
    fn add(&mut self, func: &PrimFunc, hint: &str, attributes: Vec<(Arc<str>, Attr)>) -> Name {
        let own = self.taken.numbered(name(hint), "");
        let body = LoopBody::Made(Arc::new(PrimFunc { name: own, ..func.clone() }));
        self.made.push(LoopFunction { name: own, private: true, attributes, body });
        own
    }

    /// Puts what was made and is called in front of the module's Relax functions. Functions that stood by themselves get a
    /// class to call them by.
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

/// What a prim_func that is made says of itself: its buffers do not overlap.
fn attributes() -> Vec<(Arc<str>, Attr)> {
    vec![(Arc::from("tirx.noalias"), Attr::Bool(true))]
}
