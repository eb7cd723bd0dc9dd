//! Checked files as programs: their functions for lowering ([`program`]), arguments drawn from a seed ([`inputs`]), and the
//! functions of two files run on the same arguments ([`values`]).

#![forbid(unsafe_code)]

pub mod inputs;
mod limits;
pub mod program;
pub mod values;

pub use limits::indexed_dims;
