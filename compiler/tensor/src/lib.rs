//! Tensors in memory: the arguments and results of every way to run a function.
//!
//! A [`Tensor`] has a dtype, a shape and dense row-major bytes, aligned to 64. [`Element`] defines the meaning of a
//! dtype's bytes: how integers wrap and how floats are rounded. Other modules read and write NumPy's files ([`npy`],
//! [`npz`]) and [`mod@safetensors`], compute statistics of a result ([`stats`]), and draw random tensors from a seed
//! ([`random`], described in `docs/random.md`).
//!
//! An element of a 4-bit dtype takes one byte in memory. Files contain the values of such elements in a wider dtype
//! ([`in_files`]); for example, an `int4` tensor is written as an `int8` array.
//!
//! # Invariants
//!
//! - A reader allocates no more memory than the length of the file allows, whatever the header says. Files are written
//!   completely or not at all.

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
