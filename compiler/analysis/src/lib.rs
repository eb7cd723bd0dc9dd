//! From statement trees to types and diagnostics.
//!
//! Everything here is a pure function over immutable text. The unit of work is a *segment* of a function: its elaboration
//! ([`elaborate`]) resolves names, infers struct info and collects diagnostics, and records every fact it asked of the
//! world outside. [`function`] runs the segments of a function in order and redoes only those whose text or recorded facts
//! changed.

pub mod annotate;
pub mod before;
pub mod body;
pub mod decorators;
pub mod elaborate;
pub mod entry;
pub mod file_context;
pub mod function;
mod integer;
pub mod macros;
pub mod metadata;
pub mod operators;
pub mod portability;
pub mod prelude;
pub mod prim_checks;
pub mod prim_func;
pub mod prim_names;
pub mod python;
mod readings;
pub mod reconcile;
pub mod relax_function;
mod repeated_keys;
pub mod returns;
pub mod signature;
pub mod stats;
pub mod suppression;
pub mod tir;
pub mod tir_functions;
pub mod trace;
pub mod unify;
pub mod written_prim_func;

pub use entry::{Entry, ItemPart, Outer, Place};
pub use file_context::FileContext;
