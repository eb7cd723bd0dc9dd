//! Operators on tensors that are not of neural networks in particular.

pub(crate) mod binary;
pub(crate) mod create;
pub(crate) mod datatype;
pub(crate) mod einsum;
pub(crate) mod elementwise;
pub(crate) mod index;
mod index_map;
pub(crate) mod join;
pub(crate) mod layout_transform;
pub(crate) mod linear_algebra;
pub(crate) mod loops;
pub(crate) mod manipulate;
pub(crate) mod manipulate_gather;
pub(crate) mod operands;
pub(crate) mod qdq;
pub(crate) mod reshape;
pub(crate) mod sampling;
pub(crate) mod scatter;
pub(crate) mod search;
pub(crate) mod set_functions;
pub(crate) mod shape_functions;
pub(crate) mod slice;
pub(crate) mod sorting;
pub(crate) mod statistical;
pub(crate) mod ternary;
pub(crate) mod values;
