//! Parameters of the forms of `R` that are not operators and so have no schema, such as `R.const`, `R.match_cast` and
//! `R.shape`.

use super::checker::Checker;
use rx_base::edit_distance::nearest;
use rx_base::{Code, counted};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, ExprKind, TokenRange};

use crate::entry::{mistake, replace_fix};

/// The forms, each with its parameters by position; a parameter has its name and possibly its classic name (TVM
/// `script/parser/relax/entry.py`).
const FORMS: &[(&str, &[&[&str]])] = &[
    ("const", &[&["value"], &["dtype"]]),
    ("shape", &[&["value"]]),
    ("str", &[&["value"]]),
    ("dtype", &[&["value"]]),
    ("prim_value", &[&["value"]]),
    ("match_cast", &[&["value"], &["ty", "struct_info"]]),
    ("ExternFunc", &[&["global_symbol"], &["ty", "struct_info"], &["span"]]),
];

impl Checker<'_> {
    /// Reports arguments that the form `function` does not take. The elaboration of the form reports missing ones.
    pub(super) fn check_form(&mut self, cursor: Cursor<'_>, arguments: &[Argument], function: &str) {
        let Some((_, params)) = FORMS.iter().find(|(name, _)| *name == function) else { return };
        if arguments.iter().any(|argument| matches!(argument.value.kind, ExprKind::Starred { .. })) {
            return;
        }
        for (at, argument) in arguments.iter().enumerate() {
            let before = self.diagnostics.len();
            match argument.keyword {
                Some(keyword) => self.check_form_keyword(cursor, keyword, function, params),
                None if at >= params.len() => {
                    let most = counted(params.len(), "argument");
                    let place = cursor.span(argument.value.tokens);
                    let message = format!("{function}: takes at most {most}, more are passed");
                    self.error(Code::TooManyArguments, place, message);
                }
                None => {}
            }
            self.offer_removal(before, cursor, arguments, at);
        }
    }

    fn check_form_keyword(&mut self, cursor: Cursor<'_>, keyword: u32, function: &str, params: &[&[&str]]) {
        let written = cursor.text(keyword);
        if params.iter().any(|names| names.contains(&written)) {
            return;
        }
        let place = cursor.span(TokenRange::one(keyword));
        let message = format!("{function}: there is no argument `{written}`");
        let mut diagnostic = mistake(Code::UnknownArgument, place, message);
        if let Some(near) = nearest(written, params.iter().filter_map(|names| names.first().copied())) {
            let fix = replace_fix(place, format!("change to {near}"), near);
            diagnostic = diagnostic.with_help(format!("did you mean `{near}`?")).with_fix(fix);
        }
        self.report(diagnostic);
    }
}
