//! TVM's passes over Relax modules, with the printer and the structural equality that they need.
//!
//! A [`pass::Pass`] is a function from module to module, one file each, under TVM's name and with the arguments of TVM's
//! constructor as JSON; the table is [`pass::ALL`]. The crate reads no text: `rx-db` makes the modules (`Workspace::module`).
//!
//! - [`make`] makes calls with the types that the operators' rules give; [`names`] makes unused names; [`emit`] puts new bindings
//!   before those that need them; [`substitute`] replaces names, values and dims.
//! - [`mod@print`] writes TVM's spelling and layout; [`equal`] is TVM's `StructuralEqual`.
//! - `passes::fuse_ops` groups calls by TVM's rules for each dataflow block; a group whose order of calls would change what is
//!   read is split. `passes::fuse_tir` merges the loops of a group by `rx_tir::rewrite::import`, as `rx-lower` joins kernels; a
//!   group without loops stays a function.
//! - A pass that needs computed values calls [`pass::Evaluate`], which the caller supplies.
//!
//! # Invariants
//!
//! - A printed module checks clean and reads back as the same module up to names. Constants keep their bits. The metadata section
//!   holds the constants that functions use, and is printed unchanged if it held exactly those.
//! - No pass relies on another: the caller checks the module after each.
//! - Effects are not moved, dropped or repeated ([`effects`] says which calls have one). A pass adds writes and kills only where
//!   they are allowed.
//! - The prim_funcs that passes make are the operators' compute definitions, which `rx-lower` runs, too. Those that differ only
//!   in names are one.
//! - Two tensors share a storage (`passes::static_plan`) only if the first is dead before the second is passed to a call.

pub mod constant;
pub mod effects;
pub mod emit;
pub mod equal;
pub mod make;
pub mod names;
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
