//! The parts of a call of a prim_func that its checks share.

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

/// The types of a call's outputs as they are written.
pub(in crate::elaborate) struct WrittenOutputs<'e> {
    cursor: Cursor<'e>,
    types: &'e [Expr],
}

impl<'e> WrittenOutputs<'e> {
    /// Those of a call with these arguments.
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

    /// The whole type of an output.
    pub(super) fn whole(&self, nth: usize) -> Option<Span> {
        self.types.get(nth).map(|ty| self.cursor.span(ty.tokens))
    }

    /// The part of an output's type that is of this kind; the whole type where it is not written.
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

/// An argument together with its place in the call of a function.
pub(super) struct Passed {
    pub(super) function: Name,
    pub(super) expr: IrExpr,
    pub(super) index: usize,
}

/// The facts about a call that the checks so far have found.
pub(super) struct CallState<'b> {
    /// The values of the callee's symbols.
    pub(super) bindings: Bindings<'b>,
    /// Symbols that have a diagnostic: they get no second one.
    pub(super) conflicted: NameSet,
    /// Parameters whose argument does not fit: they get no second diagnostic.
    pub(super) reported: Vec<usize>,
    /// Dims that are equal once the kernel runs.
    pub(super) learned: Vec<(Dim, Dim)>,
}

impl<'b> CallState<'b> {
    pub(super) fn new(bounds: &'b Bounds) -> CallState<'b> {
        let bindings = Bindings::new(bounds);
        CallState { bindings, conflicted: NameSet::default(), reported: Vec::new(), learned: Vec::new() }
    }
}

/// The scalars of `tir_vars=`, each with its place; `None` where their number is not known.
pub(super) fn scalars(bound: &BoundCall) -> Option<Vec<(Dim, Span)>> {
    let Some(shape) = bound.operand("tir_vars") else { return Some(Vec::new()) };
    let StructInfo::Shape(Shape::Known(dims)) = &shape.ty else { return None };
    Some(dims.iter().map(|dim| (dim.clone(), shape.span)).collect())
}

/// A buffer as messages show it: `(1, 64) float32`.
pub(super) fn shown(buffer: &BufferParam) -> String {
    let dims: Vec<String> = buffer.shape.iter().map(Dim::to_string).collect();
    let comma = if dims.len() == 1 { "," } else { "" };
    format!("({}{comma}) {}", dims.join(", "), buffer.dtype)
}

/// For each output the argument in whose memory it is written, -1 for one of its own; `None` where the call has no such
/// list.
pub(super) fn indices(bound: &BoundCall, outputs: usize) -> Option<Vec<i64>> {
    let attr = bound.attr("inplace_indices")?;
    let mut indices = match attr {
        rx_ir::Attr::List(items) => items.iter().map(|item| constant(item).unwrap_or(-1)).collect(),
        other => vec![constant(other)?],
    };
    indices.resize(outputs, -1);
    Some(indices)
}
