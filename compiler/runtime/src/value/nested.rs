//! Values that contain values: the fields of a tuple and the captured values of a closure.
//!
//! A recursive program can nest values without bound. For example, one that calls itself with `(x, acc)` creates a
//! value whose depth is the number of calls, and one that calls itself with `(acc, acc)` creates a value with
//! exponentially many parts. Each nested value therefore stores its depth and number of parts, so that code that walks
//! it can decline first. Deep values are dropped by a loop, not by recursion.

use super::Value;
use std::mem::take;
use std::ops::Deref;
use std::sync::Arc;

/// The deepest value that may be walked by recursion, equal to the deepest type that Relax IR allows.
const MAX_DEPTH: u32 = rx_ir::struct_info::MAX_DEPTH as u32;

/// The largest number of parts of a value that may be walked, equal to the largest number of parts of a type.
const MAX_PARTS: u64 = rx_ir::struct_info::MAX_PARTS as u64;

/// A reference-counted list of the values inside another value.
#[derive(Debug)]
pub struct Nested<M>(Arc<Inner<M>>);

#[derive(Debug)]
struct Inner<M> {
    values: Vec<Value<M>>,
    /// One more than the depth of the deepest nested value.
    depth: u32,
    /// The number of values at all levels. A value that is shared counts once for each occurrence.
    parts: u64,
}

impl<M> Nested<M> {
    /// Returns a description of the size if the value is too large to be walked by recursion.
    pub(crate) fn too_large(&self) -> Option<String> {
        let Inner { depth, parts, .. } = *self.0;
        if depth > MAX_DEPTH {
            return Some(format!("it nests {depth} deep, more than {MAX_DEPTH}"));
        }
        (parts > MAX_PARTS).then(|| format!("it has {parts} parts, more than {MAX_PARTS}"))
    }
}

impl<M> FromIterator<Value<M>> for Nested<M> {
    fn from_iter<I: IntoIterator<Item = Value<M>>>(values: I) -> Nested<M> {
        let values: Vec<Value<M>> = values.into_iter().collect();
        let (mut depth, mut parts) = (0, 0u64);
        for nested in values.iter().filter_map(Value::nested) {
            depth = nested.0.depth.max(depth);
            parts = parts.saturating_add(nested.0.parts);
        }
        parts = parts.saturating_add(values.len() as u64);
        Nested(Arc::new(Inner { values, depth: depth.saturating_add(1), parts }))
    }
}

impl<M> From<Vec<Value<M>>> for Nested<M> {
    fn from(values: Vec<Value<M>>) -> Nested<M> {
        values.into_iter().collect()
    }
}

impl<M> Deref for Nested<M> {
    type Target = [Value<M>];

    fn deref(&self) -> &[Value<M>] {
        &self.0.values
    }
}

// Not derived: `derive(Clone)` would require `M: Clone`, but memory is shared, not cloned.
impl<M> Clone for Nested<M> {
    fn clone(&self) -> Nested<M> {
        Nested(self.0.clone())
    }
}

impl<M> Drop for Inner<M> {
    fn drop(&mut self) {
        if self.depth <= MAX_DEPTH {
            return;
        }
        let mut pending = take(&mut self.values);
        while let Some(value) = pending.pop() {
            // If this is the last reference, move the contained values to `pending`, so that the drop of `inner` does
            // not recurse.
            let inner = match value {
                Value::Tuple(nested) => Arc::into_inner(nested.0),
                Value::Closure(closure) => {
                    Arc::into_inner(closure).and_then(|closure| Arc::into_inner(closure.captured.0))
                }
                _ => None,
            };
            if let Some(mut inner) = inner {
                pending.append(&mut inner.values);
            }
        }
    }
}
