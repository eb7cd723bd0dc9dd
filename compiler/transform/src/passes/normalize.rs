//! `Normalize`: binds every subexpression to a variable, so that operands are variables, constants and tuples of those.
//!
//! ```text
//! y = R.add(R.exp(x), x)   →   lv = R.exp(x)
//!                              y = R.add(lv, x)
//! ```
//!
//! Requires nothing. Guarantees A-normal form. The implementation returns its input, since modules are in this form
//! from the start and passes keep it so ([`rx_ir::module`]); the effect is seen only when a source text that was not in
//! this form is printed.
//!
//! Reference: TVM `src/relax/transform/normalize.cc`.

use crate::Module;
use crate::pass::{Arguments, Pass, PassError};

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "Normalize",
    parameters: &[],
    doc: "Gives every computed value a separate name, so that no call is nested in another.",
    reference: "src/relax/transform/normalize.cc",
    run,
};

fn run(module: Module, _: &Arguments) -> Result<Module, PassError> {
    Ok(module)
}
