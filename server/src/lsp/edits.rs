//! Conversions of edits to the protocol's types.

use super::{Uri, to_proto};
use crate::reads::Subject;
use rx_base::fix::Edit;
use std::collections::HashMap;
use tower_lsp::ls_types as proto;

/// Converts edits of the subject's text.
pub fn text_edits(subject: &Subject<'_>, edits: Vec<Edit>) -> Vec<proto::TextEdit> {
    let document = subject.view.document();
    let encoding = subject.profile.encoding;
    let edit = |(span, new_text)| proto::TextEdit { range: to_proto::range(document, span, encoding), new_text };
    edits.into_iter().map(edit).collect()
}

/// Converts edits of the subject's text to a workspace edit. It names the version of the text if the client supports
/// that.
pub fn workspace_edit(subject: &Subject<'_>, edits: Vec<Edit>) -> proto::WorkspaceEdit {
    let uri: Uri = subject.uri.clone();
    let edits = text_edits(subject, edits);
    if !subject.profile.writing.versioned {
        // The protocol's type requires a map keyed by URI. The cached parts of a URI that clippy objects to are not
        // hashed.
        #[allow(clippy::mutable_key_type)]
        let changes = HashMap::from([(uri, edits)]);
        return proto::WorkspaceEdit { changes: Some(changes), ..Default::default() };
    }
    let text_document = proto::OptionalVersionedTextDocumentIdentifier { uri, version: Some(subject.version) };
    let edits = edits.into_iter().map(proto::OneOf::Left).collect();
    let edit = proto::TextDocumentEdit { text_document, edits };
    proto::WorkspaceEdit { document_changes: Some(proto::DocumentChanges::Edits(vec![edit])), ..Default::default() }
}
