//! Memoization of the procedures that are marked for it ([`rx_lower::Procedure::once`]). For example, the function that
//! prepares weights is called in every run, but is computed once for the same weights.

use crate::value::{Place, Value};
use rx_lower::ProcedureId;
use std::collections::HashMap;
use std::sync::Arc;

/// The arguments and the result of the last call of each procedure that could be cached ([`Cached::keep`]). Values are
/// immutable, so identical arguments give the same result. The arguments are kept alive, so that their addresses cannot
/// be reused by other tensors.
pub(super) struct Cached<M>(HashMap<ProcedureId, (Vec<Value<M>>, Value<M>)>);

// Not derived: `derive(Default)` would require `M: Default`.
impl<M> Default for Cached<M> {
    fn default() -> Cached<M> {
        Cached(HashMap::new())
    }
}

impl<M> Cached<M> {
    /// Returns the cached result if the arguments are identical to those of the cached call.
    pub(super) fn of(&self, id: ProcedureId, arguments: &[Value<M>]) -> Option<Value<M>> {
        let (known, result) = self.0.get(&id)?;
        let same = known.len() == arguments.len() && known.iter().zip(arguments).all(|(a, b)| is_same(a, b));
        same.then(|| result.clone())
    }

    /// Caches a result, unless an argument or the result is not lasting ([`is_lasting`]): for example, a tensor in a
    /// storage of a frame, which will be overwritten.
    pub(super) fn keep(&mut self, id: ProcedureId, arguments: Vec<Value<M>>, result: &Value<M>) {
        if arguments.iter().chain([result]).all(is_lasting) {
            self.0.insert(id, (arguments, result.clone()));
        }
    }
}

/// Whether the value's memory remains unchanged and is not reused while the value is held. Closures count as not
/// lasting, and so do tuples that are too large to be walked.
fn is_lasting<M>(value: &Value<M>) -> bool {
    match value {
        Value::Tensor(tensor) => matches!(tensor.place, Place::Shared(_)),
        Value::Tuple(fields) => fields.too_large().is_none() && fields.iter().all(is_lasting),
        Value::Shape(_) | Value::Scalar(_) | Value::String(_) | Value::Null => true,
        Value::Closure(_) | Value::Unset => false,
    }
}

/// Whether two values are identical. Tensors are compared by the address of their memory, their shape and their dtype,
/// not by their elements.
fn is_same<M>(a: &Value<M>, b: &Value<M>) -> bool {
    match (a, b) {
        (Value::Tensor(a), Value::Tensor(b)) => {
            let memory = matches!((&a.place, &b.place), (Place::Shared(a), Place::Shared(b)) if Arc::ptr_eq(a, b));
            memory && a.shape == b.shape && a.dtype == b.dtype
        }
        (Value::Tuple(a), Value::Tuple(b)) => a.len() == b.len() && a.iter().zip(&**b).all(|(a, b)| is_same(a, b)),
        (Value::Shape(a), Value::Shape(b)) => a == b,
        (Value::Scalar(a), Value::Scalar(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Null, Value::Null) => true,
        _ => false,
    }
}
