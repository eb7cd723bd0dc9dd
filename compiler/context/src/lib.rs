//! A file as its items see it: imports, declared dims and devices, macros, constants of the metadata section.
//!
//! Readers of prim_funcs and of Relax functions share this: what a name of the module level means ([`FileContext`]), where a
//! diagnostic is ([`ItemPlace`]), and the diagnostics that both make ([`mistakes`]). For example, under
//! `from tvm.script import tirx as X`, [`FileContext::namespace`] of `X` is [`Namespace::Tir`].

pub mod file_context;
pub mod macros;
pub mod metadata;
pub mod mistakes;
mod place;

pub use file_context::{FileContext, Namespace};
pub use place::{ItemPart, ItemPlace, MacroPlace, NOWHERE, with_uses};
