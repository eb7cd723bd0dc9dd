//! Values that hold values: the fields of a tuple, what a function captured.
//!
//! A program that calls itself with `(x, acc)` nests a value as deep as it runs long, one that does with `(acc, acc)` makes a value of
//! exponentially many parts. Such values know their size, so that whoever walks them can decline, and are dropped by a loop.

use super::Value;
use std::mem::take;
use std::ops::Deref;
use std::sync::Arc;

/// The deepest value that is walked by recursion: types nest no deeper.
const MAX_DEPTH: u32 = rx_ir::struct_info::MAX_DEPTH as u32;

/// The most parts of a value that is walked; types have no more.
const MAX_PARTS: u64 = rx_ir::struct_info::MAX_PARTS as u64;

/// Shared values inside another.
#[derive(Debug)]
pub struct Nested<M>(Arc<Inner<M>>);

#[derive(Debug)]
struct Inner<M> {
    values: Vec<Value<M>>,
    /// One more than the deepest of the values.
    depth: u32,
    /// How many values there are, those of values included, each as often as it is met.
    parts: u64,
}

impl<M> Nested<M> {
    /// Whether it is too large to be walked by recursion, and how large it is.
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

// Derived, this would ask memory to be cloneable; it is shared.
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
            // The last owner takes the values out, and leaves nothing to be dropped by recursion.
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
