//! Shared functions of the loop-level IR. The hash is computed once, and so are the properties that the steps need.

use crate::fuse::{Properties, followed_inputs};
use rustc_hash::FxHasher;
use rx_ir::Origin;
use rx_tir::func::Param;
use rx_tir::{PrimFunc, Stmt};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A shared function of the loop-level IR. Equal functions are the same key of a cache: they are compared by pointer,
/// then by hash, then by content. The function has a name of its own, such as the operator's; the name of a kernel in a
/// program is [`crate::program::Kernel::name`].
#[derive(Clone, Debug)]
pub struct Loops(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    hash: u64,
    func: PrimFunc,
    properties: OnceLock<Properties>,
    /// The number of inputs in the first call of [`Loops::follows`], and the answer for each of these inputs.
    followed: OnceLock<(usize, Box<[bool]>)>,
    store_origins: OnceLock<Box<[Origin]>>,
}

impl Loops {
    /// Wraps a function, and removes its list of source statements, which each [`crate::program::Kernel`] has.
    pub fn new(mut func: PrimFunc) -> Loops {
        func.origins.clear();
        let mut hasher = FxHasher::default();
        func.hash(&mut hasher);
        let (properties, followed, store_origins) = Default::default();
        Loops(Arc::new(Shared { hash: hasher.finish(), func, properties, followed, store_origins }))
    }

    /// Wraps a function whose first `inputs` buffers are inputs, and moves its scalar parameters between the inputs and
    /// the outputs, TVM's order (python/tvm/relax/utils.py, `gen_call_tir_inputs`).
    pub(crate) fn ordered(mut func: PrimFunc, inputs: usize) -> Loops {
        let is_buffer = |param: &Param| matches!(param, Param::Buffer(_));
        let buffers = func.params.iter().filter(|param| is_buffer(param));
        let (inputs, outputs) = (buffers.clone().take(inputs), buffers.skip(inputs));
        let scalars = func.params.iter().filter(|param| !is_buffer(param));
        func.params = inputs.chain(scalars).chain(outputs).copied().collect();
        Loops::new(func)
    }

    /// Returns the properties that the steps need; they are computed once.
    pub(crate) fn properties(&self) -> &Properties {
        self.0.properties.get_or_init(|| Properties::of(&self.0.func))
    }

    /// Returns the statements of the source that stores come from, in order and without duplicates; they are collected
    /// once.
    pub fn store_origins(&self) -> &[Origin] {
        self.0.store_origins.get_or_init(|| {
            let mut origins = Vec::new();
            self.0.func.body.walk(&mut |stmt| {
                if let Stmt::Store { site, .. } = stmt {
                    origins.extend(site.origin);
                }
            });
            origins.sort_unstable();
            origins.dedup();
            origins.into()
        })
    }

    /// Whether the function computes each output element from the element of input number `input` at the same indices,
    /// and from arbitrary elements of the other inputs. Its first `inputs` buffers are inputs.
    pub(crate) fn follows(&self, input: usize, inputs: usize) -> bool {
        let answers = || followed_inputs(&self.0.func, inputs);
        let (count, known) = self.0.followed.get_or_init(|| (inputs, answers()));
        let answer = |all: &[bool]| all.get(input).copied().unwrap_or(false);
        if *count == inputs { answer(known) } else { answer(&answers()) }
    }
}

impl Deref for Loops {
    type Target = PrimFunc;

    fn deref(&self) -> &PrimFunc {
        &self.0.func
    }
}

impl PartialEq for Loops {
    fn eq(&self, other: &Loops) -> bool {
        // Contents that differ only in the sign of a zero compare equal, but their hashes differ.
        Arc::ptr_eq(&self.0, &other.0) || self.0.hash == other.0.hash && self.0.func == other.0.func
    }
}

impl Eq for Loops {}

impl Hash for Loops {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash.hash(state);
    }
}
