//! Prim_funcs of TVMScript (`@T.prim_func`): name resolution, signatures, translation to loop IR, and checks.
//!
//! - [`functions`]: the table of the functions of `T`, and the binding of a call's arguments to their parameters.
//!   Checks, the reader, completion and signature help use it. `tests/scripts/tir_signatures.py` compares it with
//!   TVM.
//! - [`names`]: checks that every name is bound and that every call of a `T.` function fits its parameters.
//! - [`signature`]: parameters and effects as `R.call_tir` sees them, computed from the syntax tree without building
//!   loops.
//! - [`reader`]: translates a prim_func into the loop IR of `rx-tir`. A call of a `T.inline` or `T.macro` function is
//!   expanded into the macro's statements; a mistake in a macro of another item is reported in the macro, with a label
//!   at the call.
//! - [`checks`]: checks the statements of a prim_func: accesses in range, no races, initialized reductions, declared
//!   regions.
//! - [`attributes`]: finds `T.func_attr({…})` in the text, for passes that change it.
//! - [`integer`]: builds symbolic dims from integer expressions, in the same way for prim_funcs and Relax functions.
//!
//! # Invariants
//!
//! - An error about the loops of a kernel names an iteration that shows it, and holds for all values of the function's
//!   symbols for which the access happens. A statement that cannot be read is not checked.
//! - The cost of proofs and searches is bounded per function.

pub mod attributes;
pub mod checks;
pub mod functions;
pub mod integer;
pub mod names;
pub mod reader;
pub mod signature;
