//! Functions of the loop-level IR as kernels share them: hashed once, with the properties that steps ask for.

use crate::fuse::{Properties, followed_inputs};
use rustc_hash::FxHasher;
use rx_tir::PrimFunc;
use rx_tir::func::Param;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A function of the loop-level IR that kernels share. Equal functions are one key of a cache: they are compared by pointer, then by
/// hash, and only then by contents. It has the operator's name; the name that a program gives its kernel is the kernel's.
#[derive(Clone, Debug)]
pub struct Loops(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    hash: u64,
    func: PrimFunc,
    properties: OnceLock<Properties>,
    /// For a number of inputs, the answers of [`Loops::follows`].
    followed: OnceLock<(usize, Box<[bool]>)>,
}

impl Loops {
    /// The function, without the statements that it comes from: kernels know these.
    pub fn new(mut func: PrimFunc) -> Loops {
        func.origins.clear();
        let mut hasher = FxHasher::default();
        func.hash(&mut hasher);
        let (properties, followed) = Default::default();
        Loops(Arc::new(Shared { hash: hasher.finish(), func, properties, followed }))
    }

    /// The function with its scalars between inputs and outputs, where TVM has them (python/tvm/relax/utils.py,
    /// `gen_call_tir_inputs`); the first `inputs` buffers are inputs.
    pub(crate) fn ordered(mut func: PrimFunc, inputs: usize) -> Loops {
        let is_buffer = |param: &Param| matches!(param, Param::Buffer(_));
        let buffers = func.params.iter().filter(|param| is_buffer(param));
        let (inputs, outputs) = (buffers.clone().take(inputs), buffers.skip(inputs));
        let scalars = func.params.iter().filter(|param| !is_buffer(param));
        func.params = inputs.chain(scalars).chain(outputs).copied().collect();
        Loops::new(func)
    }

    /// The properties that steps ask for, computed once.
    pub(crate) fn properties(&self) -> &Properties {
        self.0.properties.get_or_init(|| Properties::of(&self.0.func))
    }

    /// Whether the function, whose first `inputs` buffers are inputs, makes each element of its outputs from the element of an input
    /// at the same place, and from any elements of its other inputs.
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
        // The hash is of the floats' bits, which comparing contents does not look at.
        Arc::ptr_eq(&self.0, &other.0) || self.0.hash == other.0.hash && self.0.func == other.0.func
    }
}

impl Eq for Loops {}

impl Hash for Loops {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash.hash(state);
    }
}
