//! `AnnotateTIROpPattern`: every prim_func says what kind of operator it is.
//!
//! TVM `src/relax/transform/annotate_tir_op_pattern.cc`.

use crate::Module;
use crate::pass::{Arguments, Pass, PassError};
use rx_base::Dim;
use rx_ir::{Attr, Item, LoopFunction};
use rx_schedule::op_pattern::{OpPattern, op_pattern};
use rx_tir::PrimFunc;
use std::sync::Arc;

/// The pass.
pub const PASS: Pass = Pass {
    name: "AnnotateTIROpPattern",
    parameters: &[],
    doc: "Says of every prim_func what fusion may do with it, in `op_pattern`: 0 elementwise, 1 broadcast, 2 injective, 3 a \
          reduction, 4 what element-wise work may follow, 8 opaque.",
    reference: "src/relax/transform/annotate_tir_op_pattern.cc",
    run,
};

/// The attribute.
const KEY: &str = "op_pattern";

fn run(mut module: Module, _: &Arguments) -> Result<Module, PassError> {
    for item in &mut module.items {
        if let Item::Loops(function) = item
            && !is_annotated(function)
        {
            // What the loop-level IR does not have, no pass fuses.
            let pattern = function.loops().map_or(OpPattern::Opaque, |loops| op_pattern(loops));
            Arc::make_mut(function).set_attribute(KEY, Attr::Int(Dim::constant(pattern.number())));
        }
    }
    Ok(module)
}

/// Whether a function has a kind already; 0 is as good as none.
fn is_annotated(function: &LoopFunction<PrimFunc>) -> bool {
    function.attribute(KEY).is_some_and(|kind| kind.as_int() != Some(0))
}
