//! Equal tensor types are one allocation.
//!
//! A program of 100,000 bindings has a few dozen types. What a segment asks for has the types of the segments before, so
//! that one allocation goes through the whole function.

use crate::entry::Entry;
use rx_ir::{StructInfo, TensorInfo};
use std::collections::HashSet;
use std::sync::Arc;

/// The tensor types met so far.
#[derive(Debug, Default)]
pub(super) struct SharedTypes(HashSet<Arc<TensorInfo>, rustc_hash::FxBuildHasher>);

impl SharedTypes {
    /// The type, as the one allocation met first.
    pub(super) fn share(&mut self, ty: StructInfo) -> StructInfo {
        let StructInfo::Tensor(tensor) = ty else { return ty };
        match self.0.get(&tensor) {
            Some(known) => StructInfo::Tensor(known.clone()),
            None => {
                self.0.insert(tensor.clone());
                StructInfo::Tensor(tensor)
            }
        }
    }

    /// Meets the type of what an earlier segment defined.
    pub(super) fn meet(&mut self, entry: &Entry) {
        if let Entry::Value { ty: StructInfo::Tensor(tensor), .. } = entry {
            self.0.insert(tensor.clone());
        }
    }
}
