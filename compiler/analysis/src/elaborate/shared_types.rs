//! Hash-consing of tensor types, and caches of constant type expressions and of the results of type rules.
//!
//! A program of 100,000 bindings has a few dozen distinct types. Equal tensor types share one allocation, and a
//! constant type such as `R.Tensor((2, 3), "float32")` is elaborated once. The pool is passed from segment to segment
//! of a function, and from one check to the next. Its contents are not observable.

use super::rule_results::RuleResults;
use rustc_hash::FxBuildHasher;
use rx_ir::{StructInfo, TensorInfo};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The size at which the pool is cleared. No program has as many types, but types of edited text accumulate.
const MOST: usize = 1 << 16;

/// The pool of tensor types.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedTypes {
    tensors: HashSet<Arc<TensorInfo>, FxBuildHasher>,
    /// The addresses of the allocations in `tensors`, which keeps them alive.
    addresses: HashSet<usize, FxBuildHasher>,
    /// Types by their text, for types that mean the same wherever they are written.
    constants: HashMap<Box<str>, StructInfo, FxBuildHasher>,
    pub(super) rules: RuleResults,
}

impl SharedTypes {
    /// Returns the type with the tensor's shared allocation.
    pub(super) fn share(&mut self, ty: StructInfo) -> StructInfo {
        let StructInfo::Tensor(tensor) = ty else { return ty };
        if self.addresses.contains(&address(&tensor)) {
            return StructInfo::Tensor(tensor);
        }
        if let Some(known) = self.tensors.get(&tensor) {
            return StructInfo::Tensor(known.clone());
        }
        if self.tensors.len() >= MOST {
            *self = SharedTypes::default();
        }
        self.addresses.insert(address(&tensor));
        self.tensors.insert(tensor.clone());
        StructInfo::Tensor(tensor)
    }

    /// Returns the constant type with this text.
    pub(super) fn constant(&self, text: &str) -> Option<&StructInfo> {
        self.constants.get(text)
    }

    /// Stores the type of a constant text.
    pub(super) fn keep_constant(&mut self, text: &str, ty: &StructInfo) {
        if self.constants.len() < MOST {
            self.constants.insert(text.into(), ty.clone());
        }
    }
}

/// A cache: its contents do not affect equality.
impl PartialEq for SharedTypes {
    fn eq(&self, _: &SharedTypes) -> bool {
        true
    }
}

fn address(tensor: &Arc<TensorInfo>) -> usize {
    Arc::as_ptr(tensor).addr()
}
