//! Inlay hints.

use super::Point;
use super::edits::text_edits;
use crate::reads::Subject;
use rx_base::Span;
use rx_ide::Hint;
use serde_json::json;
use tower_lsp::ls_types as proto;

/// Returns the inlay hints of a range.
pub fn hints(subject: &Subject<'_>, (from, to): (Point, Point)) -> Vec<proto::InlayHint> {
    let range = subject.span(from, to).range();
    let found = rx_ide::hints(&subject.view, range, subject.preferences.hints);
    let found = found.into_iter().filter(|it| subject.holds(Span::empty(it.offset)));
    found.map(|it| hint(subject, it)).collect()
}

fn hint(subject: &Subject<'_>, hint: Hint) -> proto::InlayHint {
    let late = subject.profile.writing.late_hints;
    let position = subject.range(Span::empty(hint.offset)).start;
    proto::InlayHint {
        position,
        label: proto::InlayHintLabel::String(hint.label),
        kind: Some(proto::InlayHintKind::TYPE),
        text_edits: hint.edit.map(|edit| text_edits(subject, vec![edit])),
        tooltip: (!late).then(|| tooltip(hint.full.clone())),
        padding_left: None,
        padding_right: None,
        data: late.then(|| json!(hint.full)),
    }
}

fn tooltip(full: String) -> proto::InlayHintTooltip {
    proto::InlayHintTooltip::String(full)
}

/// Returns the hint with its tooltip, which is the answer to `inlayHint/resolve`.
pub fn resolved(mut hint: proto::InlayHint) -> proto::InlayHint {
    if let Some(serde_json::Value::String(full)) = hint.data.take() {
        hint.tooltip = Some(tooltip(full));
    }
    hint
}
