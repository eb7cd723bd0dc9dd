//! Edits of documents.

use super::{Uri, to_proto};
use crate::reads::Subject;
use rx_base::fix::Edit;
use std::collections::HashMap;
use tower_lsp::ls_types as proto;

/// Edits of the subject's text.
pub fn text_edits(subject: &Subject<'_>, edits: Vec<Edit>) -> Vec<proto::TextEdit> {
    let document = subject.view.document();
    let encoding = subject.profile.encoding;
    let edit = |(span, new_text)| proto::TextEdit { range: to_proto::range(document, span, encoding), new_text };
    edits.into_iter().map(edit).collect()
}

/// Edits of the subject as one change, with the version they are for where the client wants it.
pub fn workspace_edit(subject: &Subject<'_>, edits: Vec<Edit>) -> proto::WorkspaceEdit {
    let uri: Uri = subject.uri.clone();
    let edits = text_edits(subject, edits);
    if !subject.profile.writing.versioned {
        // The protocol's type says so; nothing inside a URI that is hashed changes.
        #[allow(clippy::mutable_key_type)]
        let changes = HashMap::from([(uri, edits)]);
        return proto::WorkspaceEdit { changes: Some(changes), ..Default::default() };
    }
    let text_document = proto::OptionalVersionedTextDocumentIdentifier { uri, version: Some(subject.version) };
    let edits = edits.into_iter().map(proto::OneOf::Left).collect();
    let edit = proto::TextDocumentEdit { text_document, edits };
    proto::WorkspaceEdit { document_changes: Some(proto::DocumentChanges::Edits(vec![edit])), ..Default::default() }
}
