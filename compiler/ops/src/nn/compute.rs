//! Compute definitions of the `R.nn` operators, one file per family. The tables of the families refer to them.

pub(crate) mod activation;
pub(crate) mod attention;
pub(crate) mod conv;
mod laid_out;
pub(crate) mod loss;
pub(crate) mod norm;
pub(crate) mod pool;
pub(crate) mod pool_backward;
pub(crate) mod rearrange;
