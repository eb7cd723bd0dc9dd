//! Equal tensor types are one allocation, and a constant type is read once.
//!
//! A program of 100,000 bindings has a few dozen types, written a few times 100,000 times. The types met so far go from
//! segment to segment of a function, and from one check of it to the next. Nothing observable depends on them.

use rustc_hash::FxBuildHasher;
use rx_ir::{StructInfo, TensorInfo};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// More types than a program has: those of texts that were edited away are forgotten here.
const MOST: usize = 1 << 16;

/// The tensor types met so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedTypes {
    tensors: HashSet<Arc<TensorInfo>, FxBuildHasher>,
    /// Where the allocations of `tensors` are, which stay as long as they are in it.
    addresses: HashSet<usize, FxBuildHasher>,
    /// By its text, a type that says the same wherever it is written.
    constants: HashMap<Box<str>, StructInfo, FxBuildHasher>,
}

impl SharedTypes {
    /// The type, as the one allocation met first.
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

    /// The constant type that was written so before.
    pub(super) fn constant(&self, text: &str) -> Option<&StructInfo> {
        self.constants.get(text)
    }

    /// Keeps what a constant type's text stands for.
    pub(super) fn keep_constant(&mut self, text: &str, ty: &StructInfo) {
        if self.constants.len() < MOST {
            self.constants.insert(text.into(), ty.clone());
        }
    }
}

/// A cache: any is as good as any other.
impl PartialEq for SharedTypes {
    fn eq(&self, _: &SharedTypes) -> bool {
        true
    }
}

fn address(tensor: &Arc<TensorInfo>) -> usize {
    Arc::as_ptr(tensor).addr()
}
