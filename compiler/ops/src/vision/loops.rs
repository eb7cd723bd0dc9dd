//! How the operators of `R.vision` are computed: their loops. A definition is named by the table that lists the operator.

pub(super) mod multibox;
pub(super) mod roi;
