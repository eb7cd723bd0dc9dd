//! Generates well-typed Relax texts of any size, from the layers that TVM's importers print.
//!
//! - [`scale`]: residual and transformer blocks with annotated bindings, in one function or in many.
//! - [`network`]: a plain chain of convolutions and activations, in several languages, for comparing language servers.
//!
//! A text depends only on its options, so the command that prints a benchmark's input identifies it.

mod function;
mod layers;
mod network;
mod scale;

pub use network::{Language, network};
pub use scale::{Kind, Scale, scale};
