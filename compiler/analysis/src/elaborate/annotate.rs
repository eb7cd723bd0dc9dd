//! Collects inferred types as annotations: their positions and texts.

use super::checker::Checker;
use super::result::Annotate;
use crate::reconcile::{reconcile, says_more};
use rx_base::Span;
use rx_ir::{Expr as IrExpr, ExprKind as IrKind, StructInfo};
use rx_syntax::ast::{ExprKind, StatementKind, TokenRange};
use rx_syntax::{Cursor, Statement};

/// Returns the position in a `def` where a return annotation is inserted, if it has none.
pub fn return_place(cursor: Cursor<'_>, statement: &Statement) -> Option<Span> {
    let StatementKind::Def { ret: None, .. } = statement.tree.kind else { return None };
    // The last token is the colon; the annotation goes after the token before it.
    let last = statement.token_count.checked_sub(2)?;
    Some(Span::empty(cursor.span(TokenRange::one(last)).end))
}

impl Checker<'_> {
    /// Adds the annotation of a variable at `span` that is bound without one. Python allows an annotation only on a
    /// single name, not on `a, b = …`.
    pub(super) fn note_binding(&mut self, span: Span, ty: &StructInfo) {
        if self.annotated.is_none() {
            return;
        }
        let segment = self.segment;
        let Some(statement) = self.statement_at(self.statement as usize) else { return };
        let StatementKind::Assign { targets, .. } = &statement.tree.kind else { return };
        let [target] = &targets[..] else { return };
        let cursor = segment.cursor(statement);
        if matches!(target.kind, ExprKind::Name) && cursor.span(target.tokens) == span && statement.tree.error.is_none()
        {
            let text = self.written_type(ty).map(|text| format!(": {text}"));
            self.note(Span::empty(span.end), text);
        }
    }

    /// Replaces an annotation at `place` that is less precise than the type of its value, where all annotations are
    /// wanted.
    pub(super) fn note_coarser(&mut self, place: Span, declared: &StructInfo, value: &IrExpr) {
        let all = self.annotated.as_ref().is_some_and(|annotated| annotated.style.which == Annotate::All);
        if !all || matches!(value.kind, IrKind::MatchCast(_)) {
            return;
        }
        let bounds = self.bounds.clone();
        let fits = reconcile(declared, &value.ty, &bounds);
        if fits.is_proved() && says_more(&value.ty, declared, &bounds) {
            let text = self.written_type(&value.ty);
            self.note(place, text);
        }
    }

    /// Sets the return annotation of the outermost function.
    pub(super) fn note_return(&mut self, ty: &StructInfo) {
        if self.annotated.is_some() && self.nesting == 0 {
            let text = self.written_in_signature(ty).map(|text| format!(" -> {text}"));
            if let Some(annotated) = &mut self.annotated {
                annotated.returned = text;
            }
        }
    }

    /// Adds the return annotation of the nested function `statement`, whose scope must be open.
    pub(super) fn note_nested_return(&mut self, statement: &Statement, ty: &StructInfo) {
        if self.annotated.is_some()
            && let Some(place) = return_place(self.segment.cursor(statement), statement)
        {
            let text = self.written_in_signature(ty).map(|text| format!(" -> {text}"));
            self.note(place, text);
        }
    }

    fn note(&mut self, place: Span, text: Option<String>) {
        if let (Some(annotated), Some(text)) = (&mut self.annotated, text) {
            annotated.edits.push((place, text));
        }
    }
}
