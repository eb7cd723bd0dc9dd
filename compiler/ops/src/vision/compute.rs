//! Compute definitions of the `R.vision` operators. The tables in the parent module refer to them.

pub(super) mod multibox;
pub(super) mod roi;
