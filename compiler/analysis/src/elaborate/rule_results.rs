//! Cache of the results of type rules.
//!
//! A network repeats its layers: most calls of an operator pass tensors of the same types and the same attributes as an
//! earlier call. The result of a rule is a pure function of these and of the known bounds of symbols, so it is computed
//! once. Only calls without diagnostics are cached, and only if each operand is a variable of a tensor type.

use super::bound_call::BoundCall;
use rustc_hash::{FxHashMap, FxHasher};
use rx_base::symbolic::Bounds;
use rx_ir::{Argument, Attr, ExprKind, StructInfo, TensorInfo};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The number of results at which the cache is cleared. Results of edited text accumulate.
const MOST: usize = 1 << 12;

/// The results of type rules, by call, under the same bounds.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleResults {
    bounds: Bounds,
    /// By the hash of the call.
    known: FxHashMap<u64, SmallVec<[(CallKey, StructInfo); 1]>>,
}

/// The parts of a call that determine the result of its rule.
#[derive(Clone, Debug)]
pub(super) struct CallKey {
    operator: &'static str,
    slots: Box<[Slot]>,
}

/// An argument in a [`CallKey`]. Tensor types are compared by address, since equal ones share their allocation
/// ([`super::SharedTypes`]); the key keeps it alive.
#[derive(Clone, Debug)]
enum Slot {
    Absent,
    Tensor(Arc<TensorInfo>),
    Attr(Attr),
}

impl RuleResults {
    /// Returns the hash of a call; `None` if its result is not cached.
    pub(super) fn hash(call: &BoundCall) -> Option<u64> {
        let mut hasher = FxHasher::default();
        call.schema.name.hash(&mut hasher);
        for slot in &call.slots {
            match slot {
                Argument::Absent => 0u8.hash(&mut hasher),
                Argument::Operand(_) => Arc::as_ptr(tensor(slot)?).addr().hash(&mut hasher),
                Argument::Attr(attr) => attr.hash(&mut hasher),
                Argument::Operands(_) | Argument::Types(_) => return None,
            }
        }
        Some(hasher.finish())
    }

    /// Returns the result for a call with this hash.
    pub(super) fn get(&self, hash: u64, call: &BoundCall, bounds: &Bounds) -> Option<&StructInfo> {
        let found = self.known.get(&hash)?.iter().find(|(key, _)| key.is_of(call))?;
        (self.bounds == *bounds).then_some(&found.1)
    }

    /// Stores the result for a call with this hash. Discards the results under other bounds.
    pub(super) fn insert(&mut self, hash: u64, call: &BoundCall, bounds: &Bounds, result: &StructInfo) {
        if self.bounds != *bounds || self.known.len() >= MOST {
            *self = RuleResults { bounds: bounds.clone(), known: FxHashMap::default() };
        }
        let slot = |slot: &Argument| {
            Some(match slot {
                Argument::Absent => Slot::Absent,
                Argument::Operand(_) => Slot::Tensor(tensor(slot)?.clone()),
                Argument::Attr(attr) => Slot::Attr(attr.clone()),
                Argument::Operands(_) | Argument::Types(_) => return None,
            })
        };
        if let Some(slots) = call.slots.iter().map(slot).collect() {
            let key = CallKey { operator: call.schema.name, slots };
            self.known.entry(hash).or_default().push((key, result.clone()));
        }
    }
}

impl CallKey {
    fn is_of(&self, call: &BoundCall) -> bool {
        let is_same = |(own, other): (&Slot, &Argument)| match (own, other) {
            (Slot::Absent, Argument::Absent) => true,
            (Slot::Tensor(own), Argument::Operand(_)) => tensor(other).is_some_and(|other| Arc::ptr_eq(own, other)),
            (Slot::Attr(own), Argument::Attr(other)) => own == other,
            _ => false,
        };
        self.operator == call.schema.name
            && self.slots.len() == call.slots.len()
            && self.slots.iter().zip(&call.slots).all(is_same)
    }
}

/// Returns the type of an argument that is a variable of a tensor type.
fn tensor(argument: &Argument) -> Option<&Arc<TensorInfo>> {
    match argument {
        Argument::Operand(operand) => match (&operand.kind, &operand.ty) {
            (ExprKind::Var(_), StructInfo::Tensor(tensor)) => Some(tensor),
            _ => None,
        },
        _ => None,
    }
}
