//! Operators of `R.nn`: neural-network layers, one module per family.

pub(crate) mod activation;
pub(crate) mod attention;
pub(crate) mod compute;
pub(crate) mod conv;
mod conv_advice;
pub(crate) mod conv_rule;
mod costs;
pub(crate) mod loss;
pub(crate) mod norm;
mod norm_layout;
pub(crate) mod pool;
pub(crate) mod rearrange;
pub(crate) mod window;
pub(crate) mod window_layout;
