//! Conversion of the syntax errors in trees to diagnostics with spans and messages.

use crate::ast::SyntaxError;
use crate::header;
use crate::segment::{Segment, Statement};
use crate::token::TokenKind;
use rx_base::{Code, Diagnostic, Span};

/// Returns the syntax errors of a segment's statements, at most one a statement, with spans in the segment. Indentation
/// errors are not included: see [`crate::Item::indentation_diagnostics`].
pub fn syntax_diagnostics(segment: &Segment) -> Vec<Diagnostic<Span>> {
    let tree = segment.tree();
    tree.statements.iter().filter_map(|statement| statement_diagnostic(segment, statement)).collect()
}

fn statement_diagnostic(segment: &Segment, statement: &Statement) -> Option<Diagnostic<Span>> {
    let error = header::first_error(&statement.tree)?;
    let cursor = segment.cursor(statement);
    let message = match error.message {
        "" => message(&error, cursor.kind(error.tokens.start), cursor.text(error.tokens.start)),
        given => given.to_owned(),
    };
    let span = cursor.span(error.tokens);
    let mut diagnostic = Diagnostic::new(error.code, span, message);
    if error.code == Code::InvalidCharacter {
        let character = cursor.text(error.tokens.start);
        diagnostic.message = format!("`{}` starts no token of TVMScript", character.escape_debug());
    }
    Some(diagnostic)
}

/// Builds a message such as ``expected an expression or `)`, found `=` ``.
fn message(error: &SyntaxError, found: Option<TokenKind>, text: &str) -> String {
    let found = match found.filter(|_| error.tokens.start < error.tokens.end) {
        None => "the end of the line".to_owned(),
        Some(TokenKind::Name) => format!("the name `{text}`"),
        Some(kind) => kind.phrase().to_owned(),
    };
    match error.expected.split_last() {
        None => format!("unexpected {found}"),
        Some((only, [])) => format!("expected {only}, found {found}"),
        Some((last, others)) => format!("expected {} or {last}, found {found}", others.join(", ")),
    }
}
