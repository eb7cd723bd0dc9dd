//! The module level of a file, as its functions see it: imports, declared dims and devices, macros, constants of the metadata
//! section.
//!
//! Readers of prim_funcs and of Relax functions share it: the meaning of a module-level name ([`FileContext`]), the place of a
//! diagnostic ([`ItemPlace`]), and the diagnostics that both report ([`mistakes`]). For example, under `from tvm.script import
//! tirx as X`, [`FileContext::namespace`] of `X` is [`Namespace::Tir`].
//!
//! # Invariants
//!
//! - A context is free of positions and compared by value, so an edit that changes no declaration rechecks nothing.

pub mod file_context;
pub mod macros;
pub mod metadata;
pub mod mistakes;
mod place;

pub use file_context::{FileContext, Namespace};
pub use place::{ItemPart, ItemPlace, MacroPlace, NOWHERE, with_uses};
