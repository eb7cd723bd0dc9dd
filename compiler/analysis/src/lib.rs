//! Checks Relax functions: from statement trees to struct info and diagnostics.
//!
//! Everything here is a pure function over immutable text. The unit of work is a *segment* of a function: its elaboration
//! ([`elaborate`]) resolves names, infers struct info and collects diagnostics, and records every fact that it asked of the world
//! outside. [`function`] runs the segments of a function in order and redoes only those whose text or recorded facts changed.
//!
//! - For lowering and passes: the typed body of a checked function ([`body`], [`relax_function`]), by a second elaboration with
//!   the recorded answers.
//! - For people: the origin of a dim ([`trace`]), costs ([`stats`]), inferred types as edits ([`annotate`]), the scope at a place
//!   ([`before`]).
//! - [`operators`] reads the `[[ops]]` tables of `rx.toml`. [`python`] replaces names that Python binds once to a literal; every
//!   reader of an item's trees reads the replaced ones, and passes get text with the literals written out.
//!
//! # Invariants
//!
//! - Types are proved; annotations are checked. An annotation never replaces an inferred type that it contradicts.
//! - One mistake gives one diagnostic. A tensor whose annotation is contradicted keeps both readings (`readings`): a later use is
//!   correct if it fits either, and a second mistake if it fits neither. Other contradictions become error parts, which are
//!   compatible with everything.
//! - The elaboration of a segment depends on its text, the state it starts in, the file's context and the recorded answers of
//!   `Outer`; on nothing else, global or thread-local.
//! - A fact about symbols holds in the statements after the one that states it, up to the end of its block; that statement is
//!   checked at run time.
//! - No recursion is as deep as a function is long: segments and statements are processed by loops.
//! - Fixes are searched only for statements that have a mistake, by trying changes that a rule can judge (`elaborate::trial`).
//! - Values are recorded like types: with the entry of a variable, free of positions, compared by value. The body of a callee is
//!   examined (`Outer::summary`) only if something is known of an argument, and never in a cycle.

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
