//! From a checked text to something that runs: its items as lowering asks for them ([`Items`]), the tensors of its constants
//! ([`constants`]), and modules of passes evaluated by the interpreter ([`evaluate`]).

mod evaluate;
mod source;

pub use evaluate::{ROUNDS, evaluate};
pub use source::{Items, constants};
