//! `Normalize`: every value has a name, and operands are variables, constants and tuples of such.
//!
//! TVM `src/relax/transform/normalize.cc`. Modules are in this form when they are read, and what passes make is
//! ([`rx_ir::module`]); so there is nothing left to do, but to print what was written otherwise.

use crate::Module;
use crate::pass::{Arguments, Pass, PassError};

/// The pass.
pub const PASS: Pass = Pass {
    name: "Normalize",
    parameters: &[],
    doc: "Gives every value that is computed a name of its own; a text with calls in calls is printed without.",
    reference: "src/relax/transform/normalize.cc",
    run,
};

fn run(module: Module, _: &Arguments) -> Result<Module, PassError> {
    Ok(module)
}
