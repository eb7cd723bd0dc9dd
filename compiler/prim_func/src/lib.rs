//! Prim_funcs of TVMScript (`@T.prim_func`): from their text to names, signatures, loops and checks.
//!
//! - [`functions`]: the table of the functions of `T`; binds a call's arguments to their parameters.
//! - [`names`]: checks that every name is bound and every call of a `T.` function fits its parameters.
//! - [`signature`]: parameters and effects, as `R.call_tir` sees them, without reading the body into loops.
//! - [`reader`]: reads a prim_func into the loop IR of `rx-tir`, with its macros expanded.
//! - [`checks`]: checks the loops: accesses in range, no races, reductions that begin, declared regions.
//! - [`attributes`]: finds `T.func_attr({…})` in the text, for passes that change it.
//! - [`integer`]: integer expressions as dims, the same for prim_funcs and Relax functions.

pub mod attributes;
pub mod checks;
pub mod functions;
pub mod integer;
pub mod names;
pub mod reader;
pub mod signature;
