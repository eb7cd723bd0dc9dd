//! Arguments of type expressions, by position or by keyword: `R.Tensor((2, 3), dtype="float32")`.

use super::checker::Checker;
use super::forms::Form;
use crate::entry::mistake;
use rx_base::Code;
use rx_base::edit_distance::nearest;
use rx_context::mistakes::suggest_in_place;
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind, TokenIndex, TokenRange};

impl Checker<'_> {
    /// Returns the argument `wanted` of a type with the parameters of `form`. If it is the first parameter, also
    /// reports unknown and repeated arguments, so that they are reported once.
    pub(super) fn type_argument<'e>(
        &mut self,
        cursor: Cursor<'_>,
        arguments: &'e [Argument],
        form: &Form,
        wanted: &str,
    ) -> Option<&'e Expr> {
        if form.position(wanted) == Some(0) {
            self.check_type_arguments(cursor, arguments, form);
        }
        let mut positional = 0;
        let mut found = None;
        for argument in arguments {
            let is_wanted = match argument.keyword {
                Some(keyword) => cursor.text(keyword) == wanted,
                None => {
                    positional += 1;
                    form.position(wanted) == Some(positional - 1)
                }
            };
            if is_wanted {
                found = Some(&argument.value);
            }
        }
        found.filter(|arg| !matches!(arg.kind, ExprKind::None))
    }

    fn check_type_arguments(&mut self, cursor: Cursor<'_>, arguments: &[Argument], form: &Form) {
        let mut seen = Vec::new();
        for (at, argument) in arguments.iter().enumerate() {
            let before = self.diagnostics.len();
            let parameter = match argument.keyword {
                Some(keyword) => {
                    let text = cursor.text(keyword);
                    if form.position(text).is_none() {
                        self.unknown_type_argument(cursor, keyword, form);
                    }
                    text
                }
                None => form.params.get(at).map(|param| param.name).unwrap_or_else(|| {
                    let most = format!("a type takes {} arguments here", form.params.len());
                    self.error(Code::TooManyArguments, cursor.span(argument.value.tokens), most);
                    ""
                }),
            };
            if !parameter.is_empty() && seen.contains(&parameter) {
                let span = cursor.span(argument.value.tokens);
                self.error(Code::DuplicateArgument, span, format!("`{parameter}` is passed twice"));
            }
            seen.push(parameter);
            self.offer_removal(before, cursor, arguments, at);
        }
    }

    fn unknown_type_argument(&mut self, cursor: Cursor<'_>, keyword: TokenIndex, form: &Form) {
        let text = cursor.text(keyword);
        let span = cursor.span(TokenRange::one(keyword));
        let message = format!("a type has no argument `{text}`");
        let diagnostic = mistake(Code::UnknownArgument, span, message);
        self.report(suggest_in_place(diagnostic, nearest(text, form.params.iter().map(|param| param.name))));
    }
}
