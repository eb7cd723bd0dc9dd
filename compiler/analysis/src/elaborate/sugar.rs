//! Functions of `R` that are not operators: those that Python composes of operators, and alternative spellings of
//! other constructs.

use super::elaborator::Elaborator;
use super::ir::{error, int};
use rx_base::{Dim, Span};
use rx_context::NOWHERE;
use rx_ir::{Expr as IrExpr, ExprKind as IrKind, StructInfo};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind};

/// The names of the functions, for suggestions.
pub(super) const FUNCTIONS: &[&str] = &[
    "nn.relu6",
    "linear",
    "emit",
    "emit_te",
    "emit_with_ty",
    "emit_with_type",
    "emit_with_sinfo",
    "ShapeExpr",
    "TupleGetItem",
];

impl Elaborator<'_> {
    /// Elaborates a call of one of the functions; `None` for any other function.
    pub(super) fn sugar(
        &mut self,
        cursor: Cursor<'_>,
        function: &str,
        arguments: &[Argument],
        span: Span,
    ) -> Option<IrExpr> {
        Some(match function {
            "nn.relu6" => self.relu6(cursor, arguments, span),
            "linear" => self.linear(cursor, arguments, span),
            "emit_with_ty" | "emit_with_type" | "emit_with_sinfo" => self.typed_call(cursor, arguments, span),
            "emit" => match arguments {
                [argument] => self.expr(cursor, &argument.value),
                _ => self.missing(span, "R.emit(value)"),
            },
            // Python builds a tensor expression.
            "emit_te" => {
                arguments.iter().for_each(|argument| self.check.python_names(cursor, &argument.value));
                error(span)
            }
            "TupleGetItem" => match arguments {
                [tuple, index] => self.subscript(cursor, &tuple.value, &index.value, span),
                _ => self.missing(span, "R.TupleGetItem(tuple, index)"),
            },
            _ => return None,
        })
    }

    /// Elaborates `R.nn.relu6(x)` as `R.clip(x, 0, 6)` (TVM relax/op/nn/nn.py).
    fn relu6(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) -> IrExpr {
        let [argument] = arguments else { return self.missing(span, "R.nn.relu6(data)") };
        let data = self.expr(cursor, &argument.value);
        let bound = |value| int(Dim::constant(value), NOWHERE);
        self.check.operator_on("clip", vec![data, bound(0), bound(6)], span)
    }

    /// Elaborates `R.linear(data, weight, bias)` as `data` times the transposed `weight`, plus `bias` (TVM
    /// relax/op/tensor/linear_algebra.py).
    fn linear(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) -> IrExpr {
        let (Some(data), Some(weight)) =
            (argument(cursor, arguments, 0, "data"), argument(cursor, arguments, 1, "weight"))
        else {
            return self.missing(span, "R.linear(data, weight, bias=None)");
        };
        let (data, weight) = (self.expr(cursor, data), self.expr(cursor, weight));
        let transposed = self.check.operator_on("permute_dims", vec![weight], span);
        let product = self.check.operator_on("matmul", vec![data, transposed], span);
        match argument(cursor, arguments, 2, "bias").filter(|bias| !matches!(bias.kind, ExprKind::None)) {
            Some(bias) => {
                let bias = self.expr(cursor, bias);
                self.check.operator_on("add", vec![product, bias], span)
            }
            None => product,
        }
    }

    /// Elaborates `R.emit_with_ty("relax.op", (arguments), (types,))`, as which TVM prints an operator that has no
    /// function in `R`.
    fn typed_call(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) -> IrExpr {
        let [_, values, types @ ..] = arguments else {
            return self.missing(span, "R.emit_with_ty(\"relax.op\", arguments, ty_args)");
        };
        self.expr(cursor, &values.value);
        let types = types.first().map(|types| match &types.value.kind {
            ExprKind::Tuple(types) | ExprKind::List(types) => types.iter().map(|ty| self.type_of(cursor, ty)).collect(),
            _ => vec![self.type_of(cursor, &types.value)],
        });
        let ty = types.and_then(|types: Vec<StructInfo>| types.first().cloned()).unwrap_or(StructInfo::Error);
        IrExpr { kind: IrKind::Error, ty, span }
    }
}

/// Returns the argument at a position or with a name.
fn argument<'e>(cursor: Cursor<'_>, arguments: &'e [Argument], at: usize, name: &str) -> Option<&'e Expr> {
    let by_name = |argument: &&Argument| argument.keyword.is_some_and(|keyword| cursor.text(keyword) == name);
    let positional = arguments.get(at).filter(|argument| argument.keyword.is_none());
    positional.or_else(|| arguments.iter().find(by_name)).map(|argument| &argument.value)
}
