//! Runs checked files: the code that `rxrun` and `rxopt` share.
//!
//! - [`modules`] chooses the module of a file. [`program`] decodes its constants. [`inputs`] draws arguments from a
//!   seed.
//! - [`values`] runs the functions of two files on the same arguments and compares the results, to test a pass.
//!   [`evaluate`] runs a function on the interpreter within limits, for passes that need its value.
//!
//! # Invariants
//!
//! - Function names are looked up in one module (`rx_db::ModuleId`), never in a whole file.
//! - A function that is not run is reported with the reason. Results that cannot be compared never count as equal.

#![forbid(unsafe_code)]

mod evaluate;
pub mod inputs;
mod limits;
pub mod modules;
pub mod program;
pub mod values;

pub use evaluate::{BYTES, ITERATIONS, evaluate};
pub use limits::indexed_dims;
