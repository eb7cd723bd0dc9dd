//! Macros of prim_funcs: `@T.inline` and `@T.macro` functions, expanded where a prim_func calls them.
//!
//! ```text
//! @T.inline                              for i in range(4):
//! def bump(buf, k):              →           B[i] = B[i] + T.float32(1)
//!     buf[k] = buf[k] + T.float32(1)
//! … for i in range(4): bump(B, i)
//! ```
//!
//! Arguments are put in place of the parameters as expressions; other names are those of the place where the macro is defined,
//! with `hygienic=False` those of the place where it is called (TVM `tirx/script/parser/entry.py`).

use crate::{FileContext, Namespace};
use rx_syntax::ast::{Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Segment};
use std::sync::Arc;

/// A macro that is defined outside the functions that call it.
#[derive(Clone, Debug, PartialEq)]
pub struct Macro {
    /// Its text: decorators, header and body.
    pub segments: Arc<[Arc<Segment>]>,
    /// Whether its names are those of the place where it is defined.
    pub hygienic: bool,
}

/// The macro that an item is, by its segments.
pub fn of_item(segments: &Arc<[Arc<Segment>]>) -> Macro {
    let mut head = segments.iter().take(1).flat_map(|segment| {
        segment.tree().statements.iter().map(|statement| (segment.cursor(statement), &statement.tree.kind))
    });
    let lax = head.any(|(cursor, kind)| match kind {
        StatementKind::Decorator(decorator) => !is_hygienic(cursor, decorator),
        _ => false,
    });
    Macro { segments: segments.clone(), hygienic: !lax }
}

/// Whether a decorator makes a macro whose names are those of the place where it is defined: all but `@T.macro(hygienic=False)`.
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
