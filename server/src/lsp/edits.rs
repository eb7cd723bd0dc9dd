//! Conversions of edits to the protocol's types.

use super::{Location, Uri};
use crate::reads::Subject;
use rx_base::fix::Edit;
use rx_base::notebook;
use std::collections::HashMap;
use tower_lsp::ls_types as proto;

/// Converts edits of the subject's text; in a notebook, those of its cell. No edits are returned if the cell does not
/// allow one of them.
pub fn text_edits(subject: &Subject<'_>, edits: Vec<Edit>) -> Vec<proto::TextEdit> {
    let whole = subject.whole();
    let is_here = |(span, _): &Edit| whole.start <= span.start && span.end <= whole.end;
    let edits = allowed(subject, edits.into_iter().filter(is_here).collect());
    edits.into_iter().map(|(span, new_text)| proto::TextEdit { range: subject.range(span), new_text }).collect()
}

/// Converts edits of the subject's text to a workspace edit; in a notebook, of all its cells. It names the version of
/// the text if the client supports that. It is empty if the cells do not allow one of the edits.
pub fn workspace_edit(subject: &Subject<'_>, edits: Vec<Edit>) -> proto::WorkspaceEdit {
    let edits = by_document(subject, allowed(subject, edits));
    if !subject.profile.writing.versioned {
        // The protocol's type requires a map keyed by URI. The cached parts of a URI that clippy objects to are not
        // hashed.
        #[allow(clippy::mutable_key_type)]
        let changes = HashMap::from_iter(edits);
        return proto::WorkspaceEdit { changes: Some(changes), ..Default::default() };
    }
    let edits = edits.into_iter().map(|(uri, edits)| {
        let version = Some(subject.version_of(&uri));
        let text_document = proto::OptionalVersionedTextDocumentIdentifier { uri, version };
        proto::TextDocumentEdit { text_document, edits: edits.into_iter().map(proto::OneOf::Left).collect() }
    });
    let edits = proto::DocumentChanges::Edits(edits.collect());
    proto::WorkspaceEdit { document_changes: Some(edits), ..Default::default() }
}

/// Whether the subject is no notebook, or its cells [allow](notebook::allows) all edits.
pub fn are_allowed(subject: &Subject<'_>, edits: &[Edit]) -> bool {
    subject.cell.is_none() || notebook::allows(&subject.view.document().text(), edits)
}

/// Returns the edits; none if they are not allowed together.
fn allowed(subject: &Subject<'_>, edits: Vec<Edit>) -> Vec<Edit> {
    if are_allowed(subject, &edits) { edits } else { Vec::new() }
}

/// Groups edits by document, in the order of the first edit of each. Without edits, the subject has an empty group.
fn by_document(subject: &Subject<'_>, edits: Vec<Edit>) -> Vec<(Uri, Vec<proto::TextEdit>)> {
    let mut groups = vec![(subject.uri.clone(), Vec::new())];
    for (span, new_text) in edits {
        let Location { uri, range } = subject.location(span);
        let edit = proto::TextEdit { range, new_text };
        match groups.iter_mut().find(|(group, _)| *group == uri) {
            Some((_, group)) => group.push(edit),
            None => groups.push((uri, vec![edit])),
        }
    }
    if groups.len() > 1 {
        groups.retain(|(_, group)| !group.is_empty());
    }
    groups
}
