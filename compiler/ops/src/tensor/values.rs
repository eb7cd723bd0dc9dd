//! What the operators on tensors make of values. One file per family, as for their loops; a rule is named by the table
//! that lists the operator.

pub(crate) mod arrange;
pub(crate) mod binary;
pub(crate) mod create;
pub(crate) mod elementwise;
pub(crate) mod join;
pub(crate) mod pick;
pub(crate) mod reduce;
pub(crate) mod sort;
