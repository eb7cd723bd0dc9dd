//! Cache of the results of type rules.
//!
//! A network repeats its layers: most calls of an operator pass tensors of the same types and the same attributes as an
//! earlier call. The result of a rule is a pure function of these and of the known bounds of symbols, so it is computed
//! once. Only calls without diagnostics are cached, and only if each operand is a variable of a tensor type.

use super::bound_call::BoundCall;
use rustc_hash::{FxHashMap, FxHasher};
use rx_base::symbolic::Bounds;
use rx_ir::{Argument, Attr, ExprKind, StructInfo};
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
    known: FxHashMap<u64, SmallVec<[Known; 1]>>,
}

/// A call and the result of its rule. The arguments keep the types alive whose addresses are compared.
#[derive(Clone, Debug)]
struct Known {
    operator: &'static str,
    arguments: Box<[Argument]>,
    result: StructInfo,
}

/// The part of an argument that determines the result. A tensor type is compared by address, since equal ones share
/// their allocation ([`super::SharedTypes`]).
#[derive(PartialEq, Hash)]
enum Slot<'a> {
    Absent,
    Tensor(usize),
    Attr(&'a Attr),
}

impl RuleResults {
    /// Returns the hash of a call; `None` if its result is not cached.
    pub(super) fn hash(call: &BoundCall) -> Option<u64> {
        let mut hasher = FxHasher::default();
        call.schema.name.hash(&mut hasher);
        for argument in &call.slots {
            slot(argument)?.hash(&mut hasher);
        }
        Some(hasher.finish())
    }

    /// Returns the result for a call with this hash.
    pub(super) fn get(&self, hash: u64, call: &BoundCall, bounds: &Bounds) -> Option<&StructInfo> {
        let is_same = |known: &&Known| {
            known.operator == call.schema.name && known.arguments.iter().map(slot).eq(call.slots.iter().map(slot))
        };
        let found = self.known.get(&hash)?.iter().find(is_same)?;
        (self.bounds == *bounds).then_some(&found.result)
    }

    /// Stores the result for a call with this hash. Discards the results under other bounds.
    pub(super) fn insert(&mut self, hash: u64, call: &BoundCall, bounds: &Bounds, result: &StructInfo) {
        if self.bounds != *bounds || self.known.len() >= MOST {
            *self = RuleResults { bounds: bounds.clone(), known: FxHashMap::default() };
        }
        let arguments = call.slots.clone().into_boxed_slice();
        let known = Known { operator: call.schema.name, arguments, result: result.clone() };
        self.known.entry(hash).or_default().push(known);
    }
}

/// Returns the part of an argument that determines the result; `None` for operands that are no variables of a tensor
/// type.
fn slot(argument: &Argument) -> Option<Slot<'_>> {
    match argument {
        Argument::Absent => Some(Slot::Absent),
        Argument::Attr(attr) => Some(Slot::Attr(attr)),
        Argument::Operand(operand) => match (&operand.kind, &operand.ty) {
            (ExprKind::Var(_), StructInfo::Tensor(tensor)) => Some(Slot::Tensor(Arc::as_ptr(tensor).addr())),
            _ => None,
        },
        Argument::Operands(_) | Argument::Types(_) => None,
    }
}
