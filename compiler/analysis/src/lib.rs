//! Checks Relax functions: from syntax trees to struct info and diagnostics.
//!
//! Everything here is a pure function of immutable text. The unit of work is a *segment* of a function. Its
//! elaboration ([`elaborate`]) resolves names, infers struct info, collects diagnostics, and records each query about
//! the code outside the segment with its answer. [`function`] runs the segments of a function in order, and reruns
//! only those whose text or recorded answers changed.
//!
//! - For lowering and passes: the typed body of a checked function ([`body`], [`relax_function`]), by a second
//!   elaboration with the recorded answers.
//! - For users: the origin of a dim ([`trace`]), costs ([`stats`]), inferred types as edits ([`annotate`]), the scope
//!   at a position ([`position_scope`]).
//! - [`operators`] reads the `[[ops]]` tables of `rx.toml`. [`python`] replaces names that Python binds once to a
//!   literal. All users of an item's trees see the literals, and passes get text that contains them.
//!
//! # Invariants
//!
//! - Inferred types are proved; annotations are checked. An annotation never replaces an inferred type that it
//!   contradicts.
//! - One mistake gives one diagnostic. A tensor whose annotation is contradicted keeps both types (`readings`): a
//!   later use is correct if it fits either, and a second mistake if it fits neither. Other contradictions become
//!   error parts, which are compatible with everything.
//! - The elaboration of a segment depends only on its text, the state at its start, the file's context and the
//!   recorded answers of `Outer`; it uses no global or thread-local state.
//! - A fact about symbols holds in the statements after the one that states it, up to the end of its block; that
//!   statement is checked at run time.
//! - The depth of recursion does not depend on the length of a function: segments and statements are processed by
//!   loops.
//! - Fixes are searched only for statements that have a mistake, by trying changes that a rule can judge
//!   (`elaborate::trial`).
//! - Known values are recorded like types: in the entry of a variable, without positions, compared by value. The body
//!   of a callee is examined (`Outer::summary`) only if something is known of an argument, and never in a cycle.

pub mod annotate;
pub mod body;
pub mod decorators;
pub mod elaborate;
pub mod entry;
pub mod function;
pub mod operators;
pub mod position_scope;
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
