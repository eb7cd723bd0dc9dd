//! `R.nn.*`.

pub(crate) mod activation;
pub(crate) mod attention;
pub(crate) mod conv;
mod conv_advice;
mod conv_rule;
mod loops;
pub(crate) mod loss;
pub(crate) mod norm;
pub(crate) mod pool;
pub(crate) mod rearrange;
mod window;
