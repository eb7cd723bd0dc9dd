//! The Python around functions, as far as it gives names literal values: `WIDTH = 24`, `kind = "float16"`.
//!
//! TVM's parser takes such values when it reads a function. rx runs no Python: a name is a constant where it is bound once,
//! to a literal or to arithmetic of constants ([`visible`]). Its uses are replaced in the statements' trees ([`substituted`]),
//! so that everything that reads them (types, loops, attributes, decorators) sees literals.

mod arithmetic;
mod builtins;
mod evaluate;
mod memo;
mod scopes;
mod spell;
mod substitute;
mod value;

pub use memo::SubstitutionMemo;
pub use scopes::{Outer, visible};
pub use spell::spelled_out;
pub use value::{PyConstants, PyValue};

use rx_syntax::Segment;
use std::sync::Arc;

/// The segments of an item with literals in place of the constants it names. Unchanged segments are shared with `segments`.
pub fn substituted(
    segments: &Arc<[Arc<Segment>]>,
    constants: &Arc<PyConstants>,
    memo: &SubstitutionMemo,
) -> Arc<[Arc<Segment>]> {
    memo.substituted(segments, constants)
}

#[cfg(test)]
mod tests;
