//! Tensors in memory, as every way to run a function takes and returns them.
//!
//! A [`Tensor`] is a dtype, a shape and dense row-major bytes, aligned to 64. [`Element`] is the meaning of a dtype's bytes: how
//! an integer wraps, how a float rounds. Around it: NumPy's files ([`npy`], [`npz`]), [`mod@safetensors`], statistics of a result
//! ([`stats`]), and tensors drawn from a seed ([`random`], described in `docs/random.md`).
//!
//! Elements of 4-bit dtypes take one byte each in memory; files hold their values ([`in_files`]).
//!
//! # Invariants
//!
//! - A reader allocates no more than the length of the file allows, whatever the header states. Files are written as a whole or
//!   not at all.

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
