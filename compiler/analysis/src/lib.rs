//! From the statement trees of Relax functions to types and diagnostics.
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
pub mod function;
pub mod operators;
pub mod prelude;
pub mod python;
mod readings;
pub mod reconcile;
pub mod relax_function;
pub mod returns;
pub mod signature;
pub mod stats;
pub mod suppression;
pub mod trace;
pub mod unify;

pub use entry::{Entry, Outer, Place};
