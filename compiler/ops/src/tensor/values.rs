//! Value rules of the tensor operators, one file per family as for their loops. The tables of the families refer to
//! them.

pub(crate) mod arrange;
pub(crate) mod binary;
pub(crate) mod create;
pub(crate) mod elementwise;
pub(crate) mod join;
pub(crate) mod pick;
pub(crate) mod reduce;
pub(crate) mod sort;
