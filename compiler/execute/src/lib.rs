//! Runs checked files: the parts that `rxrun` and `rxopt` share.
//!
//! - [`modules`]: the module of a file that is meant; [`program`]: its constants, decoded; [`inputs`]: arguments drawn from a
//!   seed.
//! - [`values`]: the functions of two files run on the same arguments, which is the test of a pass; [`evaluate`]: a function run
//!   by the interpreter within limits, for passes that need values.
//!
//! # Invariants
//!
//! - Names of functions are looked up within one module (`rx_db::ModuleId`), never in a whole file.
//! - A function that is not run is reported with the reason. Results that could not be compared never count as equal.

#![forbid(unsafe_code)]

mod evaluate;
pub mod inputs;
mod limits;
pub mod modules;
pub mod program;
pub mod values;

pub use evaluate::{BYTES, ROUNDS, evaluate};
pub use limits::indexed_dims;
