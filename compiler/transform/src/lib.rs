//! TVM's passes over Relax modules, a printer of TVMScript, and structural equality of modules.
//!
//! A [`pass::Pass`] is a function from module to module. If TVM has the pass, it has TVM's name and takes the arguments
//! of TVM's Python constructor, as JSON. Each pass is one module in `passes`, except that `decompose` holds three;
//! [`pass::ALL`] lists all passes. This crate does not parse TVMScript: `rx-db` builds the modules
//! (`Workspace::module`).
//!
//! - [`make`] builds operator calls, with types from the operators' inference rules. [`names`] generates unused names.
//!   [`emit`] inserts new bindings before the binding that needs them. [`substitute`] replaces names, values and dims.
//! - [`mod@print`] prints a module with TVM's spelling and layout. [`equal`] is TVM's `StructuralEqual`.
//! - `passes::fuse_ops` groups the calls of each dataflow block by TVM's fusion rules. It dissolves a group into single
//!   calls if merging them would move an in-place write before a read of the overwritten value, or if groups would
//!   depend on each other. `passes::fuse_tir` merges the loops of each group with `rx_tir::rewrite::import`, as
//!   `rx-lower` does for kernels; a group that cannot become one prim_func, for example because a called prim_func has
//!   no loop-level body, stays a function.
//! - A pass that needs computed values, such as constant folding, calls [`pass::Evaluate`], which the caller supplies.
//!
//! # Invariants
//!
//! - A printed module has no errors and parses back to the same module, up to names. Constants keep their bits, except
//!   that a NaN in a literal may become another NaN. The metadata section is rewritten to hold the constants that
//!   functions use. It is printed unchanged if it holds exactly these already, or if it cannot be rewritten (unknown
//!   data, entries that are not tensors, references from text).
//! - No pass needs another pass to have run in order to be correct. The caller checks the module after each pass.
//! - Passes do not reorder, drop or duplicate effects ([`effects`] defines which calls have effects). A pass adds
//!   writes and kills only where they are allowed.
//! - The bodies of the prim_funcs that `LegalizeOps` creates are the operators' compute definitions, which `rx-lower`
//!   runs as well. Prim_funcs that differ only in names are shared.
//! - Two tensors share a storage (`passes::static_plan`) only if the first is dead before the second is passed to a
//!   call.

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

/// A Relax module whose prim_funcs are loop-level functions of `rx-tir`.
pub type Module = rx_ir::Module<rx_tir::PrimFunc>;
