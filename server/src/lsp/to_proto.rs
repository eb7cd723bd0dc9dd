//! Conversions from the server's types to the protocol's.

mod navigation;

pub use navigation::{
    call_item, document_symbols, file_symbols, folds, has_letters, highlights, incoming, locations, outgoing,
    selection, symbols_at,
};

use super::{Profile, SOURCE, Uri, notebooks, semantic, writing};
use crate::notebooks::Layout;
use crate::pull::Report;
use crate::reads::Subject;
use crate::run::Outcome;
use crate::run::stage::{Part, PassOutput, Shown};
use rx_base::{Code, Diagnostic, Fix, Severity, Span};
use rx_db::{Document, Encoding};
use rx_settings::FILE_NAME;
use serde_json::json;
use tower_lsp::ls_types as proto;

/// The published diagnostics of one file.
pub type Diagnostics = Vec<proto::Diagnostic>;

/// Diagnostics of one document or notebook, each with the index of its cell; outside notebooks the index is 0.
pub type PlacedDiagnostics = Vec<(usize, proto::Diagnostic)>;

/// The section of the client's settings that belongs to rx.
const SECTION: &str = "rx";

/// The maximal number of diagnostics that are shown for one file. More would only slow down the editor.
pub const MAX_DIAGNOSTICS: usize = 1000;

/// Returns the result of `initialize`: the server's capabilities.
pub fn initialize_result(profile: &Profile) -> proto::InitializeResult {
    let encoding = match profile.encoding {
        Encoding::Utf8 => proto::PositionEncodingKind::UTF8,
        Encoding::Utf16 => proto::PositionEncodingKind::UTF16,
        Encoding::Utf32 => proto::PositionEncodingKind::UTF32,
    };
    let sync = proto::TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(proto::TextDocumentSyncKind::INCREMENTAL),
        ..Default::default()
    };
    let mut capabilities = proto::ServerCapabilities {
        position_encoding: Some(encoding),
        text_document_sync: Some(sync.into()),
        notebook_document_sync: profile.notebooks.then(|| proto::OneOf::Left(notebooks::options())),
        diagnostic_provider: profile.pulls.then(|| {
            proto::DiagnosticServerCapabilities::Options(proto::DiagnosticOptions {
                identifier: Some(SOURCE.to_owned()),
                ..Default::default()
            })
        }),
        workspace: Some(proto::WorkspaceServerCapabilities {
            workspace_folders: Some(proto::WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(proto::OneOf::Left(true)),
            }),
            ..Default::default()
        }),
        // Names and structure.
        definition_provider: Some(proto::OneOf::Left(true)),
        references_provider: Some(proto::OneOf::Left(true)),
        document_highlight_provider: Some(proto::OneOf::Left(true)),
        rename_provider: Some(match profile.prepares_renames {
            false => proto::OneOf::Left(true),
            true => proto::OneOf::Right(proto::RenameOptions {
                prepare_provider: Some(true),
                work_done_progress_options: Default::default(),
            }),
        }),
        document_symbol_provider: Some(proto::OneOf::Left(true)),
        workspace_symbol_provider: Some(proto::OneOf::Left(true)),
        folding_range_provider: Some(proto::FoldingRangeProviderCapability::Simple(true)),
        selection_range_provider: Some(proto::SelectionRangeProviderCapability::Simple(true)),
        call_hierarchy_provider: Some(true.into()),
        semantic_tokens_provider: Some(semantic::options().into()),
        hover_provider: Some(true.into()),
        document_link_provider: Some(proto::DocumentLinkOptions {
            resolve_provider: Some(false),
            work_done_progress_options: Default::default(),
        }),
        ..Default::default()
    };
    writing::offer(&mut capabilities, profile);
    proto::InitializeResult {
        capabilities,
        server_info: Some(proto::ServerInfo {
            name: "rx-lsp".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
        offset_encoding: None,
    }
}

/// Returns the registration for changes of settings files.
pub fn settings_files_watch() -> proto::Registration {
    proto::Registration {
        id: "rx/settings".to_owned(),
        method: "workspace/didChangeWatchedFiles".to_owned(),
        register_options: Some(json!({"watchers": [{"globPattern": format!("**/{FILE_NAME}")}]})),
    }
}

/// Returns the registration for changes of the client's `rx` settings.
pub fn own_settings_watch() -> proto::Registration {
    proto::Registration {
        id: "rx/configuration".to_owned(),
        method: "workspace/didChangeConfiguration".to_owned(),
        register_options: Some(json!({"section": SECTION})),
    }
}

/// Returns the item of `workspace/configuration` for the client's `rx` settings.
pub fn own_settings() -> proto::ConfigurationItem {
    proto::ConfigurationItem { scope_uri: None, section: Some(SECTION.to_owned()) }
}

/// Converts the response to a pull request for diagnostics.
pub fn report(report: Report) -> proto::DocumentDiagnosticReportResult {
    let report = match (report.diagnostics, report.id) {
        (None, Some(result_id)) => {
            proto::DocumentDiagnosticReport::Unchanged(proto::RelatedUnchangedDocumentDiagnosticReport {
                unchanged_document_diagnostic_report: proto::UnchangedDocumentDiagnosticReport { result_id },
                related_documents: None,
            })
        }
        (items, result_id) => proto::DocumentDiagnosticReport::Full(proto::RelatedFullDocumentDiagnosticReport {
            full_document_diagnostic_report: proto::FullDocumentDiagnosticReport {
                result_id,
                items: items.unwrap_or_default(),
            },
            related_documents: None,
        }),
    };
    proto::DocumentDiagnosticReportResult::Report(report)
}

/// Converts a byte span of `document` to a range in the client's position encoding.
pub fn range(document: &Document, span: Span, encoding: Encoding) -> proto::Range {
    let position = |offset: u32| {
        let (line, column) = document.line_column(offset as usize, encoding);
        proto::Position::new(line, column)
    };
    proto::Range::new(position(span.start), position(span.end.max(span.start)))
}

/// Converts a byte span of `document` to a location: in the document `uri`, or in a notebook with this layout, in the
/// cell in which the span begins.
pub fn location(
    document: &Document,
    uri: &Uri,
    layout: Option<&Layout>,
    span: Span,
    encoding: Encoding,
) -> proto::Location {
    let (index, range) = place(range(document, span, encoding), layout);
    proto::Location { uri: document_uri(index, (uri, layout)).clone(), range }
}

/// Returns the cell in which a range of the text begins, and the range in that cell. Outside notebooks the index is 0.
fn place(range: proto::Range, layout: Option<&Layout>) -> (usize, proto::Range) {
    layout.map_or((0, range), |layout| layout.range(range))
}

/// Returns the URI of the cell with this index; outside notebooks `uri`.
fn document_uri<'a>(index: usize, (uri, layout): (&'a Uri, Option<&'a Layout>)) -> &'a Uri {
    layout.and_then(|layout| layout.documents().get(index)).map_or(uri, |(uri, _)| uri)
}

/// Converts diagnostics as [`placed_diagnostics`], each with the URI of its document.
pub fn diagnostics(
    document: &Document,
    subject: (&Uri, Option<&Layout>),
    found: &[Diagnostic<Span>],
    profile: &Profile,
) -> Vec<(Uri, proto::Diagnostic)> {
    let placed = placed_diagnostics(document, subject, found, profile);
    placed.into_iter().map(|(index, diagnostic)| (document_uri(index, subject).clone(), diagnostic)).collect()
}

/// Converts the diagnostics of one document, or of a notebook with this layout. If there are more than
/// [`MAX_DIAGNOSTICS`], only the most severe are kept, in the order of the text, and a note reports the number of the
/// others.
pub fn placed_diagnostics(
    document: &Document,
    (uri, layout): (&Uri, Option<&Layout>),
    found: &[Diagnostic<Span>],
    profile: &Profile,
) -> PlacedDiagnostics {
    let writer = Writer { document, uri, layout, profile };
    if found.len() <= MAX_DIAGNOSTICS {
        return found.iter().map(|diagnostic| writer.diagnostic(diagnostic)).collect();
    }
    let mut shown: Vec<usize> = (0..found.len()).collect();
    // INVARIANT: `shown` holds indices of `found` only.
    shown.sort_by_key(|&index| found[index].severity);
    let left_out = shown.split_off(MAX_DIAGNOSTICS);
    shown.sort_unstable();
    let mut diagnostics: Vec<_> = shown.into_iter().map(|index| writer.diagnostic(&found[index])).collect();
    if let Some(first) = left_out.iter().min() {
        let message = format!("{} more diagnostics of this file are not shown", left_out.len());
        let (index, range) = writer.place(found[*first].primary);
        diagnostics.push((index, remark(range, proto::DiagnosticSeverity::INFORMATION, message)));
    }
    diagnostics
}

/// Returns the diagnostics of a file that could not be checked: `message`, on its first line; in a notebook, on that of
/// the first cell.
pub fn not_checked(message: &str) -> PlacedDiagnostics {
    vec![(0, remark(proto::Range::default(), proto::DiagnosticSeverity::WARNING, message.to_owned()))]
}

/// Returns a diagnostic about the server itself, which has no code.
fn remark(range: proto::Range, severity: proto::DiagnosticSeverity, message: String) -> proto::Diagnostic {
    proto::Diagnostic {
        range,
        severity: Some(severity),
        source: Some(SOURCE.to_owned()),
        message,
        ..Default::default()
    }
}

/// Converts a hover.
pub fn hover(subject: &Subject<'_>, hover: rx_ide::Hover) -> proto::Hover {
    proto::Hover {
        contents: proto::HoverContents::Markup(markup(hover.markdown, subject.profile.markdown)),
        range: Some(subject.range(hover.span)),
    }
}

/// Converts document links.
pub fn links(subject: &Subject<'_>, links: Vec<rx_ide::Link>) -> Vec<proto::DocumentLink> {
    let links = links.into_iter().filter(|link| subject.holds(link.span));
    let link = |link: rx_ide::Link| proto::DocumentLink {
        range: subject.range(link.span),
        target: link.target.parse().ok(),
        tooltip: None,
        data: None,
    };
    links.map(link).collect()
}

/// Converts the outcome of a run to the response of `rx.run`.
pub fn run_result(outcome: &Outcome) -> proto::LSPAny {
    json!({
        "ok": outcome.ok,
        "cancelled": outcome.cancelled,
        "message": outcome.message,
        "modules": outcome.modules,
        "missing": { "dims": outcome.missing.dims, "inputs": outcome.missing.inputs },
        "seconds": outcome.seconds,
        "outputs": outcome.outputs,
        "values": outcome.values,
        "kernels": outcome.kernels,
        "log": outcome.log,
    })
}

/// Converts a stage to the response of `rx.stage`.
pub fn stage(shown: &Shown) -> proto::LSPAny {
    let part = |part: &Part| json!({"name": part.name, "lines": [part.lines.0, part.lines.1], "ranges": part.ranges});
    let pass = |made: &PassOutput| {
        json!({
            "pass": made.pass,
            "changed": made.changed,
            "problem": made.problem,
            "lines": [made.lines.0, made.lines.1],
        })
    };
    json!({
        "function": shown.function,
        "module": shown.module,
        "stage": shown.stage.word(),
        "language": shown.stage.language(),
        "text": shown.text.as_ref().ok(),
        "message": shown.text.as_ref().err(),
        "parts": shown.parts.iter().map(part).collect::<Vec<_>>(),
        "passes": shown.passes.iter().map(pass).collect::<Vec<_>>(),
    })
}

/// Converts Markdown to markup content; to plain text if the client does not support Markdown.
pub fn markup(text: String, markdown: bool) -> proto::MarkupContent {
    let (kind, value) = match markdown {
        true => (proto::MarkupKind::Markdown, text),
        false => (proto::MarkupKind::PlainText, without_fences(&text)),
    };
    proto::MarkupContent { kind, value }
}

/// Removes the lines that open and close code blocks, for clients that show plain text.
fn without_fences(markdown: &str) -> String {
    let lines: Vec<&str> = markdown.lines().filter(|line| !line.starts_with("```")).collect();
    lines.join("\n")
}

/// A converter of the diagnostics of one document for one client.
struct Writer<'a> {
    document: &'a Document,
    uri: &'a Uri,
    layout: Option<&'a Layout>,
    profile: &'a Profile,
}

impl Writer<'_> {
    fn place(&self, span: Span) -> (usize, proto::Range) {
        place(range(self.document, span, self.profile.encoding), self.layout)
    }

    fn location(&self, span: Span) -> proto::Location {
        location(self.document, self.uri, self.layout, span, self.profile.encoding)
    }

    fn diagnostic(&self, diagnostic: &Diagnostic<Span>) -> (usize, proto::Diagnostic) {
        let profile = self.profile;
        let (index, range) = self.place(diagnostic.primary);
        let diagnostic = proto::Diagnostic {
            range,
            severity: Some(severity(diagnostic.severity)),
            code: Some(proto::NumberOrString::String(diagnostic.code.to_string())),
            code_description: if profile.code_links { code_page(diagnostic.code) } else { None },
            source: Some(SOURCE.to_owned()),
            message: self.message(diagnostic),
            related_information: profile
                .related_information
                .then(|| self.related(diagnostic))
                .filter(|it| !it.is_empty()),
            tags: tags(diagnostic.code, profile),
            data: (profile.data && !diagnostic.fixes.is_empty()).then(|| self.fixes(index, &diagnostic.fixes)),
        };
        (index, diagnostic)
    }

    /// Returns the message, followed by labels, notes and help on separate lines.
    fn message(&self, diagnostic: &Diagnostic<Span>) -> String {
        let mut message = diagnostic.message.clone();
        let mut line = |text: String| {
            message.push('\n');
            message.push_str(&text);
        };
        if !diagnostic.primary_label.is_empty() {
            line(diagnostic.primary_label.clone());
        }
        if !self.profile.related_information {
            for label in &diagnostic.labels {
                let start = self.place(label.place).1.start;
                line(format!("line {}: {}", start.line.saturating_add(1), label.text));
            }
        }
        diagnostic.notes.iter().for_each(|note| line(format!("note: {note}")));
        diagnostic.help.iter().for_each(|help| line(format!("help: {help}")));
        message
    }

    fn related(&self, diagnostic: &Diagnostic<Span>) -> Vec<proto::DiagnosticRelatedInformation> {
        let related = diagnostic.labels.iter().map(|label| proto::DiagnosticRelatedInformation {
            location: self.location(label.place),
            message: label.text.clone(),
        });
        related.collect()
    }

    /// Returns the fixes as `data` of the diagnostic, which the client returns in its code action request. Their texts
    /// have the document's line ends.
    fn fixes(&self, index: usize, fixes: &[Fix<Span>]) -> serde_json::Value {
        let end = self.document.line_end();
        // The edits have no URI, so in a notebook they must be in the cell of the diagnostic.
        let cell_at = |offset| self.place(Span::new(offset, offset)).0;
        let is_here = |place: Span| self.layout.is_none() || [place.start, place.end].map(cell_at) == [index, index];
        let fixes = fixes.iter().filter(|fix| fix.edits.iter().all(|(place, _)| is_here(*place))).map(|fix| {
            let edit = |(place, text): &(Span, String)| {
                json!({"range": self.place(*place).1, "newText": text.replace('\n', end)})
            };
            let edits = fix.edits.iter().map(edit);
            json!({"title": fix.title, "safe": fix.safe, "edits": edits.collect::<Vec<_>>()})
        });
        json!({ "fixes": fixes.collect::<Vec<_>>() })
    }
}

fn severity(severity: Severity) -> proto::DiagnosticSeverity {
    match severity {
        Severity::Error => proto::DiagnosticSeverity::ERROR,
        Severity::Warning => proto::DiagnosticSeverity::WARNING,
        Severity::Info => proto::DiagnosticSeverity::INFORMATION,
        Severity::Hint => proto::DiagnosticSeverity::HINT,
    }
}

/// Returns the link to the documentation page of `code`.
fn code_page(code: Code) -> Option<proto::CodeDescription> {
    let href = code.url().parse().ok()?;
    Some(proto::CodeDescription { href })
}

/// Returns the tags of a diagnostic. Text without effect is tagged as unnecessary, and editors show it faded.
fn tags(code: Code, profile: &Profile) -> Option<Vec<proto::DiagnosticTag>> {
    let unnecessary = matches!(code, Code::AttrNoEffect | Code::UnusedSuppression) && profile.unnecessary;
    unnecessary.then(|| vec![proto::DiagnosticTag::UNNECESSARY])
}

#[cfg(test)]
mod tests {
    use super::{MAX_DIAGNOSTICS, diagnostics};
    use crate::lsp::{Profile, Uri};
    use rx_base::{Code, Diagnostic, Fix, Severity, Span};
    use rx_db::{Document, Encoding, FileKind};
    use serde_json::{Value, json};

    fn written(found: &[Diagnostic<Span>], profile: Profile) -> Value {
        let document = Document::new("x = 1\n# 🦀 y\n", FileKind::Rx);
        let uri: Uri = "file:///a.rx".parse().unwrap();
        let found = diagnostics(&document, (&uri, None), found, &profile);
        serde_json::to_value(found.into_iter().map(|(_, diagnostic)| diagnostic).collect::<Vec<_>>()).unwrap()
    }

    fn mismatch() -> Diagnostic<Span> {
        let fix = Fix { title: "use 2".into(), edits: vec![(Span::new(4, 5), "2".into())], safe: true };
        Diagnostic::new(Code::CallTirArgMismatch, Span::new(13, 14), "`y` is not 2")
            .with_label(Span::new(4, 5), "it is 1 here")
            .with_note("1 is not 2")
            .with_help("write 2")
            .with_fix(fix)
    }

    #[test]
    fn everything_a_capable_client_takes() {
        let profile = Profile {
            related_information: true,
            code_links: true,
            data: true,
            unnecessary: true,
            ..Profile::default()
        };
        let written = &written(&[mismatch()], profile)[0];
        assert_eq!(written["code"], "RX0501");
        assert_eq!(written["severity"], 1);
        assert_eq!(written["message"], "`y` is not 2\nnote: 1 is not 2\nhelp: write 2");
        // `🦀` is two UTF-16 units.
        assert_eq!(written["range"]["start"], json!({"line": 1, "character": 5}));
        assert_eq!(written["relatedInformation"][0]["message"], "it is 1 here");
        assert_eq!(written["relatedInformation"][0]["location"]["uri"], "file:///a.rx");
        assert_eq!(written["data"]["fixes"][0]["edits"][0]["newText"], "2");
        assert!(written["codeDescription"]["href"].as_str().is_some_and(|href| href.ends_with("/rx0501.md")));
    }

    #[test]
    fn a_plain_client_gets_the_places_as_text() {
        let written = &written(&[mismatch()], Profile { encoding: Encoding::Utf8, ..Profile::default() })[0];
        assert_eq!(written["message"], "`y` is not 2\nline 1: it is 1 here\nnote: 1 is not 2\nhelp: write 2");
        assert_eq!(written["range"]["start"], json!({"line": 1, "character": 7}));
        assert!(written.get("relatedInformation").is_none() && written.get("data").is_none());
    }

    #[test]
    fn the_most_serious_are_kept_when_there_are_too_many() {
        let hint = Diagnostic::new(Code::SliceEndClamped, Span::new(0, 1), "clamped");
        let mut found = vec![hint; MAX_DIAGNOSTICS + 5];
        found.push(mismatch());
        let written = written(&found, Profile::default());
        let written = written.as_array().unwrap();
        assert_eq!(written.len(), MAX_DIAGNOSTICS + 1);
        assert_eq!(written[MAX_DIAGNOSTICS - 1]["code"], "RX0501");
        assert_eq!(written[MAX_DIAGNOSTICS]["message"], "6 more diagnostics of this file are not shown");
        assert_eq!(found[0].severity, Severity::Hint);
    }
}
