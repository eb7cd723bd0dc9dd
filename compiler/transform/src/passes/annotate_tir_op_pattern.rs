//! `AnnotateTIROpPattern`: sets the attribute `op_pattern` of every prim_func, which decides how `FuseOps` may fuse it.
//!
//! ```text
//! @T.prim_func                                 @T.prim_func
//! def exp(A: T.Buffer((4,)), B: …):       →    def exp(A: T.Buffer((4,)), B: …):
//!                                                  T.func_attr({"op_pattern": 0})
//!     for i in range(4): …                         for i in range(4): …
//! ```
//!
//! Requires nothing. Guarantees that every prim_func has a pattern; one that has a pattern other than 0 keeps it.
//!
//! Reference: TVM `src/relax/transform/annotate_tir_op_pattern.cc`.

use crate::Module;
use crate::pass::{Arguments, Pass, PassError};
use rx_base::Dim;
use rx_ir::{Attr, Item, LoopFunction};
use rx_loops::op_pattern::{OpPattern, op_pattern};
use rx_tir::PrimFunc;
use std::sync::Arc;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "AnnotateTIROpPattern",
    parameters: &[],
    doc: "Classifies every prim_func for fusion, in `op_pattern`: 0 elementwise, 1 broadcast, 2 injective, 3 a \
          reduction, 4 fusible with an elementwise consumer, 8 opaque.",
    reference: "src/relax/transform/annotate_tir_op_pattern.cc",
    run,
};

/// The name of the attribute.
const KEY: &str = "op_pattern";

fn run(mut module: Module, _: &Arguments) -> Result<Module, PassError> {
    for item in &mut module.items {
        if let Item::Loops(function) = item
            && !is_annotated(function)
        {
            // A prim_func that the loop-level IR cannot represent is opaque to fusion.
            let pattern = function.loops().map_or(OpPattern::Opaque, |loops| op_pattern(loops));
            Arc::make_mut(function).set_attribute(KEY, Attr::Int(Dim::constant(pattern.number())));
        }
    }
    Ok(module)
}

/// Whether a prim_func has a pattern that it keeps: any except 0 (elementwise), which is computed again.
fn is_annotated(function: &LoopFunction<PrimFunc>) -> bool {
    function.attribute(KEY).is_some_and(|kind| kind.as_int() != Some(0))
}
