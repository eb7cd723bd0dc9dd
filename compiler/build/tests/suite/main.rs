//! Tests of the queries from a text to its kernels.

mod cancelled;
mod incremental;
