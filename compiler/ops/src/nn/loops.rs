//! How the operators of `R.nn` are computed: their loops. One file per family; a definition is named by the table that
//! lists the operator.

pub(crate) mod activation;
pub(crate) mod attention;
pub(crate) mod conv;
mod laid_out;
pub(crate) mod loss;
pub(crate) mod norm;
pub(crate) mod pool;
pub(crate) mod pool_backward;
pub(crate) mod rearrange;
