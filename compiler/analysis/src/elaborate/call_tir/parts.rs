//! Data that the checks of `R.call_tir` share.

use crate::elaborate::bound_call::{BoundCall, constant, current_keyword};
use crate::elaborate::explanation::part_of_type;
use crate::reconcile::ClashKind;
use crate::unify::Bindings;
use rx_base::name::NameSet;
use rx_base::symbolic::Bounds;
use rx_base::{Dim, Name, Span};
use rx_ir::{BufferParam, Expr as IrExpr, PrimFuncSignature, Shape, StructInfo};
use rx_ops::Schema;
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind};

/// The types of a call's outputs as expressions in the source.
pub(in crate::elaborate) struct WrittenOutputs<'e> {
    cursor: Cursor<'e>,
    types: &'e [Expr],
}

impl<'e> WrittenOutputs<'e> {
    /// Finds the `out_ty` among the arguments of a call.
    pub(in crate::elaborate) fn of(schema: &Schema, cursor: Cursor<'e>, arguments: &'e [Argument]) -> Self {
        let named = |argument: &&Argument| {
            argument.keyword.is_some_and(|keyword| current_keyword(cursor.text(keyword)) == "out_ty")
        };
        let position = schema.params.iter().position(|param| param.name == "out_ty");
        let positional = || arguments.get(position?).filter(|argument| argument.keyword.is_none());
        let written = arguments.iter().find(named).or_else(positional);
        let types = match written.map(|argument| &argument.value) {
            Some(Expr { kind: ExprKind::Tuple(types) | ExprKind::List(types), .. }) => &types[..],
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        WrittenOutputs { cursor, types }
    }

    /// Returns the span of an output's type.
    pub(super) fn whole(&self, nth: usize) -> Option<Span> {
        self.types.get(nth).map(|ty| self.cursor.span(ty.tokens))
    }

    /// Returns the span of the part of an output's type of this kind, such as one dim or the dtype; the span of the
    /// whole type if the part is not written.
    pub(super) fn part(&self, nth: usize, kind: ClashKind, axis: Option<usize>) -> Option<Span> {
        self.types.get(nth).map(|ty| part_of_type(self.cursor, ty, kind, axis))
    }
}

/// A call of a prim_func.
pub(super) struct TirCall<'a> {
    pub(super) bound: &'a BoundCall,
    pub(super) written: &'a WrittenOutputs<'a>,
    pub(super) function: Name,
    pub(super) prim: &'a PrimFuncSignature,
}

/// An argument, with its index in the call of a function.
pub(super) struct Passed {
    pub(super) function: Name,
    pub(super) expr: IrExpr,
    pub(super) index: usize,
}

/// The facts that the checks of one call have found so far.
pub(super) struct CallState<'b> {
    /// The values of the callee's symbols.
    pub(super) bindings: Bindings<'b>,
    /// Symbols that have been reported; they get no second diagnostic.
    pub(super) conflicted: NameSet,
    /// The parameters whose arguments have been reported; they get no second diagnostic.
    pub(super) reported: Vec<usize>,
    /// Pairs of dims that are equal once the kernel has run.
    pub(super) learned: Vec<(Dim, Dim)>,
}

impl<'b> CallState<'b> {
    pub(super) fn new(bounds: &'b Bounds) -> CallState<'b> {
        let bindings = Bindings::new(bounds);
        CallState { bindings, conflicted: NameSet::default(), reported: Vec::new(), learned: Vec::new() }
    }
}

/// Returns the scalars of `tir_vars=`, each with its span; `None` if their number is not known.
pub(super) fn scalars(bound: &BoundCall) -> Option<Vec<(Dim, Span)>> {
    let Some(shape) = bound.operand("tir_vars") else { return Some(Vec::new()) };
    let StructInfo::Shape(Shape::Known(dims)) = &shape.ty else { return None };
    Some(dims.iter().map(|dim| (dim.clone(), shape.span)).collect())
}

/// Formats a buffer for messages: `(1, 64) float32`.
pub(super) fn shown(buffer: &BufferParam) -> String {
    let dims: Vec<String> = buffer.shape.iter().map(Dim::to_string).collect();
    let comma = if dims.len() == 1 { "," } else { "" };
    format!("({}{comma}) {}", dims.join(", "), buffer.dtype)
}

/// Returns for each output the index of the argument whose memory it reuses, or -1 for a separate allocation; `None`
/// if the call has no such list.
pub(super) fn indices(bound: &BoundCall, outputs: usize) -> Option<Vec<i64>> {
    let attr = bound.attr("inplace_indices")?;
    let mut indices = match attr {
        rx_ir::Attr::List(items) => items.iter().map(|item| constant(item).unwrap_or(-1)).collect(),
        other => vec![constant(other)?],
    };
    indices.resize(outputs, -1);
    Some(indices)
}
