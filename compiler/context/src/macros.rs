//! Macros of prim_funcs: `@T.inline` and `@T.macro` functions, expanded where a prim_func calls them.
//!
//! ```text
//! @T.inline                              for i in range(4):
//! def bump(buf, k):              →           B[i] = B[i] + T.float32(1)
//!     buf[k] = buf[k] + T.float32(1)
//! … for i in range(4): bump(B, i)
//! ```
//!
//! Arguments replace the parameters as expressions. Other names are resolved where the macro is defined, or with
//! `hygienic=False` where it is called (TVM `tirx/script/parser/entry.py`).

use crate::{FileContext, Namespace};
use rx_syntax::ast::{Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Segments};

/// A macro that is defined outside the functions that call it.
#[derive(Clone, Debug, PartialEq)]
pub struct Macro {
    /// The macro's text: decorators, header and body.
    pub segments: Segments,
    /// Whether its names are resolved where it is defined.
    pub hygienic: bool,
}

/// Returns the macro that an item defines.
pub fn of_item(segments: &Segments) -> Macro {
    let mut head = segments.iter().take(1).flat_map(|segment| {
        segment.tree().statements.iter().map(|statement| (segment.cursor(statement), &statement.tree.kind))
    });
    let lax = head.any(|(cursor, kind)| match kind {
        StatementKind::Decorator(decorator) => !is_hygienic(cursor, decorator),
        _ => false,
    });
    Macro { segments: segments.clone(), hygienic: !lax }
}

/// Whether a decorator makes a hygienic macro, whose names are resolved where it is defined: all but
/// `@T.macro(hygienic=False)`.
pub fn is_hygienic(cursor: Cursor<'_>, decorator: &Expr) -> bool {
    cursor.flag(decorator, "hygienic").unwrap_or(true)
}

/// Whether a decorator makes a macro: `@T.inline`, `@T.macro(hygienic=False)`.
pub fn makes_macro(cursor: Cursor<'_>, file: &FileContext, decorator: &Expr) -> bool {
    let path = match &decorator.kind {
        ExprKind::Call { callee, .. } => callee,
        _ => decorator,
    };
    let Some((head, member)) = cursor.source(path.tokens).split_once('.') else { return false };
    matches!(member, "macro" | "inline") && file.namespace(head) == Some(Namespace::Tir)
}
