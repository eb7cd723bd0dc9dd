//! Declarations of symbolic variables that TVM releases before 0.27 cannot parse: `n = TypeVar("n")` before a module,
//! and type parameters `def main[n](…)`.

use rx_base::{Code, Diagnostic, TvmVersion};
use rx_context::{FileContext, ItemPlace};
use rx_syntax::Segments;
use rx_syntax::ast::{ExprKind, StatementKind, TokenRange};

/// Reports the declarations of an item that `version`, a release before 0.27, cannot parse.
pub(super) fn check(
    version: TvmVersion,
    segments: &Segments,
    file: &FileContext,
    found: &mut Vec<Diagnostic<ItemPlace>>,
) {
    for (at, segment) in segments.iter().enumerate() {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        for statement in &segment.tree().statements {
            let cursor = segment.cursor(statement);
            let (tokens, construct) = match &statement.tree.kind {
                StatementKind::Assign { targets, value } => {
                    let ([target], ExprKind::Call { callee, .. }) = (targets.as_slice(), &value.kind) else { continue };
                    let is_symbol = matches!(target.kind, ExprKind::Name)
                        && file.symbols.contains(&cursor.name(target.tokens.start));
                    if !is_symbol || !cursor.source(callee.tokens).ends_with("TypeVar") {
                        continue;
                    }
                    (callee.tokens, "`TypeVar`, a symbol of the file")
                }
                StatementKind::Def { type_params, .. } => match (type_params.first(), type_params.last()) {
                    (Some(first), Some(last)) => (TokenRange { start: *first, end: *last + 1 }, "type parameters"),
                    _ => continue,
                },
                _ => continue,
            };
            let message = format!("TVM {version} does not read {construct}");
            found.push(
                Diagnostic::new(Code::TextNotParsed, ItemPlace::Segment(at, cursor.span(tokens)), message)
                    .with_note("before 0.27 a function's symbols are the strings in its header")
                    .with_help("write `\"n\"` in the header, and `n = T.int64()` in the body that uses it"),
            );
        }
    }
}
