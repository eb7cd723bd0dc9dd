//! Checks `R.call_tir_inplace`, whose outputs may reuse the memory of arguments (TVM src/relax/op/op.cc,
//! `NormalizeCallTIRInPlace`).

use super::parts::Passed;
use crate::elaborate::bound_call::{BoundCall, constant};
use crate::elaborate::checker::Checker;
use rx_base::Code;
use rx_base::symbolic::{Answer, prove};
use rx_ir::{StructInfo, TensorInfo};

/// Whether the call has `inplace_indices` with one index for each output.
pub(super) fn has_index_for_each(bound: &BoundCall, outputs: usize) -> bool {
    match bound.attr("inplace_indices") {
        Some(rx_ir::Attr::List(items)) => items.len() == outputs,
        Some(other) => constant(other).is_some() && outputs == 1,
        None => false,
    }
}

impl Checker<'_> {
    /// Reports indices that are out of range or repeat an argument; returns whether there are any.
    pub(super) fn wrong_inplace_indices(&mut self, bound: &BoundCall, indices: &[i64], arguments: usize) -> bool {
        let outside = |index: &&i64| !(-1..i64::try_from(arguments).unwrap_or(i64::MAX)).contains(*index);
        let (code, message) = if let Some(index) = indices.iter().find(outside) {
            let message = format!(
                "{}: `inplace_indices` names argument {index}, but the number of arguments is {arguments} \
                 (-1 is separate memory)",
                bound.schema.name
            );
            (Code::AttrOutOfRange, message)
        } else if let Some((at, index)) =
            indices.iter().enumerate().find(|(at, index)| **index >= 0 && indices[..*at].contains(index))
        {
            let message = format!(
                "{}: `inplace_indices` gives argument {index} to output {at} and to one before it, which would write over it",
                bound.schema.name
            );
            (Code::AttrBadValue, message)
        } else {
            return false;
        };
        self.error(code, bound.span("inplace_indices"), message);
        true
    }

    /// Reports an argument that is not proved to have the size and dtype of the output that reuses its memory.
    pub(super) fn check_inplace_argument(&mut self, passed: &Passed, output: &StructInfo) {
        let fits = match (passed.expr.ty.as_tensor(), output.as_tensor()) {
            (Some(argument), Some(output)) => self.is_as_large(argument, output),
            _ => passed.expr.ty != StructInfo::Object,
        };
        if !fits {
            let given = &passed.expr.ty;
            self.argument_mismatch(passed, &format!("is {given}, the output in its place, {output}, must be as large"));
        }
    }

    fn is_as_large(&self, argument: &TensorInfo, output: &TensorInfo) -> bool {
        let (Some(given), Some(wanted)) = (argument.shape.dims(), output.shape.dims()) else {
            return argument.shape == rx_ir::Shape::Error || output.shape.dims().is_none();
        };
        // Dims that are proved different have been reported against the buffer.
        let open = |(given, wanted)| prove::equal(given, wanted, &self.bounds) == Answer::Open;
        argument.dtype.is_some() && !given.iter().zip(wanted).any(open)
    }
}
