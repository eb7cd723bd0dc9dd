//! Well-typed Relax texts of any size, made of the layers that TVM's importers print.
//!
//! - [`scale`]: residual and transformer blocks with annotated bindings, in one function or in many.
//! - [`network`]: a plain chain of convolutions and activations, in several languages, for comparing language servers.
//!
//! A text depends on its options alone, so a benchmark's input can be named by the command that prints it.

mod function;
mod layers;
mod network;
mod scale;

pub use network::{Language, network};
pub use scale::{Kind, Scale, scale};
