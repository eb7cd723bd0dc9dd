//! Constant propagation for the Python code around functions: names bound to literal values, such as `WIDTH = 24` or
//! `kind = "float16"`.
//!
//! ```text
//! before:  WIDTH = 24
//!          def main(x: R.Tensor((WIDTH, 2 * WIDTH), "float32")): ...
//! after:   def main(x: R.Tensor((24, 48), "float32")): ...
//! ```
//!
//! TVM's parser evaluates such names when it reads a function. rx does not run Python: a name is a constant if it is
//! bound once, to a literal or to arithmetic on constants ([`visible`]). Its uses are replaced in the statements'
//! trees ([`substituted`]), so that all users of the trees (types, loops, attributes, decorators) see literals.

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

use rx_syntax::Segments;
use std::sync::Arc;

/// Returns the segments of an item with its constants replaced by literals. Unchanged segments are shared with
/// `segments`.
pub fn substituted(segments: &Segments, constants: &Arc<PyConstants>, memo: &SubstitutionMemo) -> Segments {
    memo.substituted(segments, constants)
}

#[cfg(test)]
mod tests;
