//! Completions and signature help.

use super::{PARAMETER_HINTS, Point, Uri, to_proto};
use crate::reads::Subject;
use rx_ide::{Completion, CompletionKind, Subject as Of};
use serde::{Deserialize, Serialize};
use tower_lsp::ls_types as proto;

/// The `data` of a completion whose documentation is computed by `completionItem/resolve`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// The document.
    pub uri: Uri,
    line: u32,
    column: u32,
    operator: String,
    param: Option<String>,
}

/// Returns the completions at a position.
pub fn completions(subject: &Subject<'_>, at: Point) -> proto::CompletionList {
    let found = rx_ide::completions(&subject.view, subject.offset(at), subject.profile.writing.snippets);
    let items = found.items.into_iter().enumerate();
    let items = items.map(|(rank, completion)| item(subject, at, rank, completion)).collect();
    proto::CompletionList { is_incomplete: found.incomplete, items }
}

fn item(subject: &Subject<'_>, at: Point, rank: usize, completion: Completion) -> proto::CompletionItem {
    let writing = &subject.profile.writing;
    let late = completion.subject.map(|of| late(subject, at, of));
    let (data, documentation) = match late {
        Some(late) if writing.late_docs => (serde_json::to_value(late).ok(), None),
        Some(late) => (None, doc(subject, &late)),
        None => (None, None),
    };
    // The first placeholder of the snippet is an argument.
    let is_call = completion.snippet && completion.insert.contains("(${1:");
    let command = || proto::Command {
        title: "Show the signature".to_owned(),
        command: PARAMETER_HINTS.to_owned(),
        arguments: None,
    };
    proto::CompletionItem {
        command: (is_call && writing.parameter_hints).then(command),
        kind: Some(kind(completion.kind)),
        detail: Some(completion.detail).filter(|detail| !detail.is_empty()),
        sort_text: Some(format!("{:02}{rank:05}", completion.group)),
        filter_text: Some(completion.label.clone()),
        label: completion.label,
        insert_text_format: completion.snippet.then_some(proto::InsertTextFormat::SNIPPET),
        // Lines of a snippet end with `\n` whatever the document's line ends are. Editors convert them, and some would
        // keep an additional `\r`.
        text_edit: Some(proto::CompletionTextEdit::Edit(proto::TextEdit {
            range: subject.range(completion.replace),
            new_text: completion.insert,
        })),
        tags: (completion.deprecated && writing.deprecated).then(|| vec![proto::CompletionItemTag::DEPRECATED]),
        data,
        documentation,
        ..Default::default()
    }
}

fn late(subject: &Subject<'_>, at: Point, of: Of) -> Late {
    let (operator, param) = match of {
        Of::Operator(operator) => (operator, None),
        Of::Param(operator, param) => (operator, Some(param)),
    };
    Late { uri: subject.uri.clone(), line: at.line, column: at.column, operator, param }
}

/// Returns the data for resolving a completion; `None` if it has no documentation to resolve.
pub fn late_of(item: &proto::CompletionItem) -> Option<Late> {
    serde_json::from_value(item.data.clone()?).ok()
}

/// Returns the documentation of a completion.
pub fn doc(subject: &Subject<'_>, late: &Late) -> Option<proto::Documentation> {
    let of = match &late.param {
        Some(param) => Of::Param(late.operator.clone(), param.clone()),
        None => Of::Operator(late.operator.clone()),
    };
    let offset = subject.offset(Point { line: late.line, column: late.column });
    let item = subject.view.document().locate(offset)?.item;
    let text = rx_ide::completion_doc(&subject.view, item, &of)?;
    Some(documentation(text, subject.profile.writing.markdown_docs))
}

fn documentation(text: String, markdown: bool) -> proto::Documentation {
    proto::Documentation::MarkupContent(to_proto::markup(text, markdown))
}

fn kind(kind: CompletionKind) -> proto::CompletionItemKind {
    match kind {
        CompletionKind::Operator | CompletionKind::Function => proto::CompletionItemKind::FUNCTION,
        CompletionKind::Namespace => proto::CompletionItemKind::MODULE,
        CompletionKind::Variable => proto::CompletionItemKind::VARIABLE,
        CompletionKind::Symbol => proto::CompletionItemKind::TYPE_PARAMETER,
        CompletionKind::Keyword => proto::CompletionItemKind::FIELD,
        CompletionKind::Value => proto::CompletionItemKind::ENUM_MEMBER,
        CompletionKind::Type => proto::CompletionItemKind::CLASS,
        CompletionKind::Snippet => proto::CompletionItemKind::SNIPPET,
    }
}

/// Returns the signature of the call around a position.
pub fn signature_help(subject: &Subject<'_>, at: Point) -> Option<proto::SignatureHelp> {
    let found = rx_ide::signature_help(&subject.view, subject.offset(at))?;
    let writing = &subject.profile.writing;
    let docs = |text: String| (!text.is_empty()).then(|| documentation(text, writing.markdown_signatures));
    let units = |end: usize| {
        let text = found.label.get(..end).unwrap_or_default();
        u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX)
    };
    let params = found.params.iter().map(|(range, doc)| proto::ParameterInformation {
        label: match writing.label_offsets {
            true => proto::ParameterLabel::LabelOffsets([units(range.start), units(range.end)]),
            false => proto::ParameterLabel::Simple(found.label.get(range.clone()).unwrap_or_default().to_owned()),
        },
        documentation: docs(doc.clone()),
    });
    // In the protocol, an index past the last parameter means that no parameter is active.
    let active = found.active.unwrap_or(found.params.len());
    let active = Some(u32::try_from(active).unwrap_or(u32::MAX));
    let signature = proto::SignatureInformation {
        parameters: Some(params.collect()),
        documentation: docs(found.doc),
        active_parameter: active.filter(|_| writing.active_parameter),
        label: found.label,
    };
    Some(proto::SignatureHelp { signatures: vec![signature], active_signature: Some(0), active_parameter: active })
}
