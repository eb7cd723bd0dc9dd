//! `R.nn.*`.

pub(crate) mod activation;
