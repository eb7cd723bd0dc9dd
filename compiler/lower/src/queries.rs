//! The queries about kernels that lowering and the steps make. Each result is a pure function of its key.
//!
//! Networks repeat their layers, and an edit leaves most kernels unchanged, so an implementation of [`Queries`] may
//! cache the results. [`Direct`] caches nothing; `rx-build` caches them in its database.

use crate::fuse::{Merged, Pair, Rewrite, Rewritten};
use crate::loops::Loops;
use crate::lower::{CallKernel, OperatorCall};
use rx_loops::TargetInfo;
use std::sync::Arc;

/// Computes kernels, or looks them up in a cache.
pub trait Queries {
    /// Returns the kernel of an operator call, or the reason why there is none.
    fn call(&self, call: &OperatorCall) -> Result<Arc<CallKernel>, Arc<str>> {
        call.kernel().map(Arc::new)
    }

    /// Returns a producer and its consumer as one kernel, or `None` where they cannot be merged.
    fn merge(&self, pair: &Pair) -> Option<Arc<Merged>> {
        pair.merged().map(Arc::new)
    }

    /// Returns a rewritten function, or `None` where the rewrite is not possible.
    fn rewrite(&self, rewrite: &Rewrite) -> Option<Arc<Rewritten>> {
        rewrite.rewritten().map(Arc::new)
    }

    /// Whether the device schedules a function with several reductions as one kernel
    /// ([`TargetInfo::can_schedule_as_one_kernel`]).
    fn can_schedule_as_one_kernel(&self, loops: &Loops, target_info: &dyn TargetInfo) -> bool {
        target_info.can_schedule_as_one_kernel(loops)
    }
}

/// Queries without a cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Queries for Direct {}

/// Returns only the function of a rewrite's result.
pub(crate) fn rewritten(queries: &dyn Queries, rewrite: &Rewrite) -> Option<Loops> {
    queries.rewrite(rewrite).map(|made| made.loops.clone())
}
