//! Modules as passes take and give them: their text, what makes two of them the same, and the passes.

pub mod constant;
pub mod effects;
pub mod emit;
pub mod equal;
pub mod make;
pub mod names;
pub mod op_pattern;
pub mod pass;
mod passes;
pub mod pipeline;
pub mod print;
mod scalars;
pub mod substitute;
mod tvm_passes;
pub mod walk;

pub use passes::bind_params::{Bound, bound};
pub use passes::keep_raw_entry::{RawEntry, Renamed, raw_entries};
pub use print::{print, print_with_parts};
pub use scalars::pass_scalars_among_arguments;

/// A module whose functions that passes make are loop-level functions.
pub type Module = rx_ir::Module<rx_tir::PrimFunc>;
