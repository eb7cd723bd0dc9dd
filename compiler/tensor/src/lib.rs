//! Tensors in memory, as every way of running a function takes and gives them.
//!
//! A [`Tensor`] is a dtype, a shape and dense row-major bytes, aligned to 64. [`Element`] is what a dtype's bytes mean:
//! how an integer wraps, how a float rounds. Around it: NumPy's files ([`npy`], [`npz`]), [`mod@safetensors`], what is said of a
//! result ([`stats`]), and tensors drawn from a seed ([`random`]).

pub mod element;
mod error;
pub mod file;
pub mod in_files;
mod minifloat;
pub mod npy;
pub mod npz;
pub mod random;
pub mod safetensors;
pub mod stats;
mod storage;
mod tensor;

pub use element::{Element, float_of_int, int_of_float, round};
pub use error::TensorError;
pub use file::{Arrays, FileError, FileProblem, Progress};
pub use stats::{Comparison, Stats, compare};
pub use tensor::{Native, Scalar, Tensor};
