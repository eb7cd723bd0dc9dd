//! Checked files as programs: which module is meant ([`modules`]), its functions for lowering ([`program`]), arguments drawn from a seed ([`inputs`]), the
//! functions of two files run on the same arguments ([`values`]), modules of passes evaluated by the interpreter
//! ([`evaluate`]), and passes in a row with a check behind each ([`pipeline`]).

#![forbid(unsafe_code)]

mod evaluate;
pub mod inputs;
mod limits;
pub mod modules;
pub mod pipeline;
pub mod program;
pub mod values;

pub use evaluate::{BYTES, ROUNDS, evaluate};
pub use limits::indexed_dims;
