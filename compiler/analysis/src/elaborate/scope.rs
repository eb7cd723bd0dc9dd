//! The scope of one block.

use crate::entry::{Entry, FunctionContext};
use rx_base::name::NameMap;
use rx_base::{Name, Span};
use rx_ir::StructInfo;
use std::sync::Arc;

/// The definitions of one block of this segment.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// The definition of each name, with its span if it is in this segment.
    pub(super) names: NameMap<(Entry, Option<Span>)>,
    /// The context of a nested function, if the block is its body: functions have separate contexts and dataflow
    /// blocks.
    pub(crate) context: Option<Arc<FunctionContext>>,
}

impl Scope {
    /// Returns the definition of `name` in this scope, with its span if it is in this segment.
    pub(super) fn definition(&self, name: Name) -> Option<(&Entry, Option<Span>)> {
        self.names.get(&name).map(|(entry, place)| (entry, *place))
    }

    /// Returns the names in this scope that denote known integers.
    pub(super) fn integers(&self) -> Vec<Name> {
        let is_integer = |entry: &Entry| match entry {
            Entry::Symbol { bound, .. } => *bound,
            Entry::Value { ty: StructInfo::Prim(prim), .. } => prim.dtype.is_none_or(|dtype| dtype.is_int()),
            _ => false,
        };
        self.names.iter().filter(|(_, (entry, _))| is_integer(entry)).map(|(name, _)| *name).collect()
    }
}
