//! Elaborates `R.match_cast`, a cast that is checked at run time.

use super::elaborator::Elaborator;
use super::explanation::guilty_part;
use super::ir::error;
use super::types::Binds;
use crate::entry::{Place, mistake, replace_fix};
use crate::readings::{self, Reading};
use crate::reconcile::reconcile;
use crate::unify::Bindings;
use rx_base::symbolic::Answer;
use rx_base::{Code, Span};
use rx_ir::{Expr as IrExpr, ExprKind as IrKind, StructInfo};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind};

impl Elaborator<'_> {
    /// Elaborates `R.match_cast(value, type)` in a binding: binds the symbols of the type, and reports a cast that
    /// cannot succeed.
    pub(super) fn match_cast(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) -> IrExpr {
        self.check.check_form(cursor, arguments, "match_cast");
        let [value, ty, ..] = arguments else {
            self.check.error(Code::MissingArgument, span, "an argument is missing: `R.match_cast(value, type)`");
            return error(span);
        };
        let value = self.expr(cursor, &value.value);
        self.bind_symbols(cursor, &ty.value, Binds::MatchCast);
        let before = self.check.diagnostics.len();
        let cast = self.type_of(cursor, &ty.value);
        self.check.offer_symbols(before);
        let bounds = self.check.bounds.clone();
        if let Some(clash) = reconcile(&cast, &value.ty, &bounds).clash {
            let message =
                format!("the cast never matches: {}, the cast wants {}", clash.actual_at_path(), clash.wanted);
            let mut diagnostic = mistake(Code::MatchCastNeverMatches, guilty_part(cursor, &ty.value, &clash), message)
                .with_primary_label(format!("asserts {}", clash.part(&cast)))
                .with_label(
                    Place::Here(value.span),
                    format!("this is {}", readings::of_type(&value.ty, Reading::Inferred)),
                );
            diagnostic = self.check.with_definition(diagnostic, &value, "gets its type here");
            if let Some(text) = self.check.written_type(&value.ty) {
                let place = cursor.span(ty.value.tokens);
                diagnostic = diagnostic.with_fix(replace_fix(place, "cast to the inferred type", text));
            }
            let diagnostic = self.check.with_facts(diagnostic, &clash.dims());
            self.check.report(diagnostic);
        } else if !self.cast_contradicts_itself(cursor, &ty.value, &cast, &value) {
            self.check.refine_types(&cast, &value.ty, cursor.span(ty.value.tokens));
            self.check.refine_extents(&cast, cursor.span(ty.value.tokens));
        }
        // A cast to `T.int64` keeps the known value of a scalar.
        let ty = match (&cast, &value.ty) {
            (StructInfo::Prim(cast), StructInfo::Prim(actual)) if cast.value.is_none() => {
                StructInfo::Prim(rx_ir::PrimInfo { dtype: cast.dtype.or(actual.dtype), value: actual.value.clone() })
            }
            _ => cast,
        };
        IrExpr { kind: IrKind::MatchCast(Box::new(value)), ty, span }
    }

    /// Reports a cast that equates unequal dims: `R.Tensor((d, d))` of a tensor of shape `(3, 4)`.
    fn cast_contradicts_itself(
        &mut self,
        cursor: Cursor<'_>,
        written: &Expr,
        cast: &StructInfo,
        value: &IrExpr,
    ) -> bool {
        let given = readings::of_type(&value.ty, Reading::Inferred);
        let bounds = self.check.bounds.clone();
        let equalities = Bindings::new(&bounds).meet_types(cast, &given, 0);
        let Some(wrong) = equalities.iter().find(|equality| equality.answer == Answer::Refuted) else { return false };
        let first = wrong.wanted_here.clone().unwrap_or(rx_base::Dim::ERROR);
        let (wanted, actual) = (&wrong.wanted, &wrong.actual);
        let message = match wanted.as_symbol() {
            Some(symbol) => format!("the cast never matches: `{symbol}` cannot be {first} and {actual}"),
            None => format!("the cast never matches: `{wanted}` is {first} here, the value has {actual}"),
        };
        let mut uses = Vec::new();
        if let Some(symbol) = wanted.as_symbol() {
            dims_called(cursor, written, &symbol, &mut uses);
        }
        let place = uses.get(1).copied().unwrap_or(cursor.span(written.tokens));
        let mut diagnostic = mistake(Code::MatchCastNeverMatches, place, message)
            .with_label(Place::Here(value.span), format!("this is {given}"));
        if let (Some(first_use), Some(symbol)) = (uses.first().filter(|_| uses.len() > 1), wanted.as_symbol()) {
            diagnostic = diagnostic.with_label(Place::Here(*first_use), format!("`{symbol}` is {first} here"));
        }
        diagnostic = self.check.with_definition(diagnostic, value, "gets its type here");
        let diagnostic = diagnostic.with_help("give dims that differ different names");
        let diagnostic = self.check.with_facts(diagnostic, &[&first, actual]);
        self.check.report(diagnostic);
        true
    }
}

/// Collects the spans of the dims in a type that have the name `symbol`, in order.
fn dims_called(cursor: Cursor<'_>, written: &Expr, symbol: &str, into: &mut Vec<Span>) {
    let is_dim = match &written.kind {
        ExprKind::Name => cursor.text(written.tokens.start) == symbol,
        ExprKind::String => cursor.string_value(written).is_some_and(|text| text == symbol),
        _ => false,
    };
    if is_dim {
        into.push(cursor.span(written.tokens));
    }
    for child in written.children() {
        dims_called(cursor, child, symbol, into);
    }
}
