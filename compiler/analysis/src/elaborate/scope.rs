//! The names of one block.

use crate::entry::{Entry, FunctionContext};
use rx_base::name::NameMap;
use rx_base::{Name, Span};
use rx_ir::StructInfo;
use std::sync::Arc;

/// Definitions of one block of this segment.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// What each stands for, and where it was defined if that is in this segment.
    pub(super) names: NameMap<(Entry, Option<Span>)>,
    /// A nested function: the function context differs, dataflow blocks are its own.
    pub(crate) context: Option<Arc<FunctionContext>>,
}

impl Scope {
    /// What `name` was defined as in it, and where if that is in this segment.
    pub(super) fn definition(&self, name: Name) -> Option<(&Entry, Option<Span>)> {
        self.names.get(&name).map(|(entry, place)| (entry, *place))
    }

    /// The names defined in it that stand for known integers.
    pub(super) fn integers(&self) -> Vec<Name> {
        let is_integer = |entry: &Entry| match entry {
            Entry::Symbol { bound, .. } => *bound,
            Entry::Value { ty: StructInfo::Prim(prim), .. } => prim.dtype.is_none_or(|dtype| dtype.is_int()),
            _ => false,
        };
        self.names.iter().filter(|(_, (entry, _))| is_integer(entry)).map(|(name, _)| *name).collect()
    }
}
