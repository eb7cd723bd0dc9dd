//! Questions about kernels that lowering and the steps ask, each a pure function of its key.
//!
//! Networks repeat their layers, and an edit leaves most kernels as they were: who keeps the answers ([`Queries`]) does not compute
//! them again. [`Direct`] keeps none. `rx-build` keeps them in its database.

use crate::fuse::{Merged, Pair, Rewrite, Rewritten};
use crate::loops::Loops;
use crate::lower::{CallKernel, OperatorCall};
use rx_schedule::Preferences;
use std::sync::Arc;

/// Answers to questions about kernels.
pub trait Queries {
    /// The kernel that computes a call of an operator; or why there is none.
    fn call(&self, call: &OperatorCall) -> Result<Arc<CallKernel>, Arc<str>> {
        call.kernel().map(Arc::new)
    }

    /// Two kernels as one, where that is possible.
    fn merge(&self, pair: &Pair) -> Option<Arc<Merged>> {
        pair.merged().map(Arc::new)
    }

    /// A kernel's function changed, where that is possible.
    fn rewrite(&self, rewrite: &Rewrite) -> Option<Arc<Rewritten>> {
        rewrite.rewritten().map(Arc::new)
    }

    /// Whether a device makes one kernel of a function of several reductions ([`Preferences::makes_one`]).
    fn makes_one(&self, loops: &Loops, preferences: &dyn Preferences) -> bool {
        preferences.makes_one(loops)
    }
}

/// Computes every answer anew.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Queries for Direct {}

/// A rewritten function alone.
pub(crate) fn rewritten(queries: &dyn Queries, rewrite: &Rewrite) -> Option<Loops> {
    queries.rewrite(rewrite).map(|made| made.loops.clone())
}
