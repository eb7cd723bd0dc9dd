//! Prim_funcs of TVMScript (`@T.prim_func`): from their text to names, signatures, loops and checks.
//!
//! - [`functions`]: the table of the functions of `T`; binds a call's arguments to their parameters. Checks, readers, completion
//!   and signature help use it, and `tests/scripts/tir_signatures.py` compares it with TVM.
//! - [`names`]: checks that every name is bound and every call of a `T.` function fits its parameters.
//! - [`signature`]: parameters and effects, as `R.call_tir` sees them, without reading the body into loops.
//! - [`reader`]: reads a prim_func into the loop IR of `rx-tir`. A call of a `T.inline` or `T.macro` function is read as the
//!   macro's statements; a mistake in them is reported in the macro, with a label at the call.
//! - [`checks`]: checks the loops: accesses in range, no races, initialized reductions, declared regions.
//! - [`attributes`]: finds `T.func_attr({…})` in the text, for passes that change it.
//! - [`integer`]: integer expressions as dims, the same for prim_funcs and Relax functions.
//!
//! # Invariants
//!
//! - An error about the loops of a kernel names an iteration that shows it, and holds for all values of its symbols. A statement
//!   that cannot be read is not checked.
//! - Proofs and searches are bounded per function.

pub mod attributes;
pub mod checks;
pub mod functions;
pub mod integer;
pub mod names;
pub mod reader;
pub mod signature;
