//! Printing of string literals.

use crate::Cursor;
use crate::ast::Expr;

/// Writes `text` as a literal in double quotes.
pub fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 || u32::from(c) == 0x7f => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Writes a string expression. A single literal in double quotes is written as it is; other plain literals are
/// concatenated and quoted again. Literals that have a prefix or triple quotes, or are broken, keep their spelling.
pub(crate) fn requote(out: &mut String, expr: &Expr, cursor: Cursor<'_>) {
    let literals = expr.tokens.start..expr.tokens.end;
    let plain = |token| {
        let text: &str = cursor.text(token);
        text.starts_with(['"', '\'']) && !text.starts_with("\"\"\"") && !text.starts_with("'''")
    };
    let single_double = literals.len() == 1 && cursor.text(expr.tokens.start).starts_with('"');
    match cursor.string_value(expr) {
        Some(text) if !single_double && literals.clone().all(plain) => quote(out, &text),
        _ => {
            for (at, token) in literals.enumerate() {
                out.push_str(if at > 0 { " " } else { "" });
                out.push_str(cursor.text(token));
            }
        }
    }
}
