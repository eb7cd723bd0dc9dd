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

use crate::file_context::{FileContext, Namespace};
use crate::function::ItemPlace;
use rx_base::{Diagnostic, Name, Span};
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

/// A place in a macro, as one call of it sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MacroPlace {
    /// The macro's name.
    pub name: Name,
    /// The segment of its item.
    pub segment: u32,
    /// Bytes of that segment.
    pub span: Span,
    /// The call that is expanded.
    pub used: ItemPlace,
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
pub(crate) fn is_hygienic(cursor: Cursor<'_>, decorator: &Expr) -> bool {
    let ExprKind::Call { arguments, .. } = &decorator.kind else { return true };
    !arguments.iter().any(|argument| {
        argument.keyword.is_some_and(|keyword| cursor.text(keyword) == "hygienic")
            && argument.value.kind == ExprKind::Bool(false)
    })
}

/// Whether a decorator makes a macro: `@T.inline`, `@T.macro(hygienic=False)`.
pub(crate) fn makes_macro(cursor: Cursor<'_>, file: &FileContext, decorator: &Expr) -> bool {
    let path = match &decorator.kind {
        ExprKind::Call { callee, .. } => callee,
        _ => decorator,
    };
    let Some((head, member)) = cursor.source(path.tokens).split_once('.') else { return false };
    matches!(member, "macro" | "inline") && file.namespace(head) == Some(Namespace::Tir)
}

/// The mistakes of a function, those in macros once each and with the calls that show them.
pub(crate) fn with_uses(found: Vec<Diagnostic<ItemPlace>>) -> Vec<Diagnostic<ItemPlace>> {
    let mut kept: Vec<Diagnostic<ItemPlace>> = Vec::with_capacity(found.len());
    for diagnostic in found {
        let ItemPlace::Macro(place) = &diagnostic.primary else {
            kept.push(diagnostic);
            continue;
        };
        let is_same = |other: &Diagnostic<ItemPlace>| {
            let ItemPlace::Macro(known) = &other.primary else { return false };
            let at = |place: &MacroPlace| (place.name, place.segment, place.span);
            (at(known), other.code) == (at(place), diagnostic.code)
        };
        if !kept.iter().any(is_same) {
            let used = place.used.clone();
            kept.push(with_chain(diagnostic, used));
        }
    }
    kept
}

/// The diagnostic with the call that expands the macro, and with the calls around that one.
fn with_chain(diagnostic: Diagnostic<ItemPlace>, used: ItemPlace) -> Diagnostic<ItemPlace> {
    /// More calls than these say nothing new.
    const MOST: usize = 4;
    let mut diagnostic = diagnostic;
    let mut next = Some(used);
    for _ in 0..MOST {
        let Some(used) = next.take() else { break };
        if let ItemPlace::Macro(outer) = &used {
            next = Some(outer.used.clone());
        }
        diagnostic = diagnostic.with_label(used, "expanded here");
    }
    diagnostic
}
