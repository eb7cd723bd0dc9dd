//! From the protocol's types to ours.

use super::{Change, Point, Profile, Uri};
use rx_db::{Encoding, FileKind};
use tower_lsp::ls_types::{
    ClientCapabilities, DiagnosticTag, MarkupKind, Position, PositionEncodingKind, TextDocumentContentChangeEvent,
};

/// What a client with these capabilities can take.
pub fn profile(capabilities: &ClientCapabilities) -> Profile {
    let document = capabilities.text_document.as_ref();
    let diagnostics = document.and_then(|document| document.publish_diagnostics.as_ref());
    let tags = diagnostics.and_then(|diagnostics| diagnostics.tag_support.as_ref());
    let hover = document.and_then(|document| document.hover.as_ref());
    let formats = hover.and_then(|hover| hover.content_format.as_ref());
    let says = |flag: Option<bool>| flag == Some(true);
    Profile {
        encoding: encoding(capabilities),
        related_information: says(diagnostics.and_then(|it| it.related_information)),
        code_links: says(diagnostics.and_then(|it| it.code_description_support)),
        data: says(diagnostics.and_then(|it| it.data_support)),
        unnecessary: tags.is_some_and(|tags| tags.value_set.contains(&DiagnosticTag::UNNECESSARY)),
        markdown: formats.is_some_and(|formats| formats.contains(&MarkupKind::Markdown)),
    }
}

/// The cheapest encoding the client knows; UTF-16 is what everyone must.
fn encoding(capabilities: &ClientCapabilities) -> Encoding {
    let general = capabilities.general.as_ref();
    let offered = general.and_then(|general| general.position_encodings.as_deref()).unwrap_or_default();
    if offered.contains(&PositionEncodingKind::UTF8) {
        Encoding::Utf8
    } else if offered.contains(&PositionEncodingKind::UTF32) {
        Encoding::Utf32
    } else {
        Encoding::Utf16
    }
}

/// A position.
pub fn point(position: Position) -> Point {
    Point { line: position.line, column: position.character }
}

/// One change of a `didChange`.
pub fn change(change: TextDocumentContentChangeEvent) -> Change {
    Change { range: change.range.map(|range| (point(range.start), point(range.end))), text: change.text }
}

/// Whether a document is Relax text or Python around it: by its language, else by its extension.
pub fn file_kind(language: &str, uri: &Uri) -> FileKind {
    let path = uri.path().as_str();
    match language {
        "python" => FileKind::Python,
        "rx" | "relax" | "tvmscript" => FileKind::Rx,
        _ if path.ends_with(".py") || path.ends_with(".pyi") => FileKind::Python,
        _ => FileKind::Rx,
    }
}

#[cfg(test)]
mod tests {
    use super::{file_kind, profile};
    use crate::lsp::{Profile, Uri};
    use rx_db::{Encoding, FileKind};
    use serde_json::json;

    #[test]
    fn the_cheapest_common_encoding_is_chosen() {
        let of = |encodings| {
            let capabilities = serde_json::from_value(json!({"general": {"positionEncodings": encodings}})).unwrap();
            profile(&capabilities).encoding
        };
        assert_eq!(of(json!(["utf-16", "utf-32", "utf-8"])), Encoding::Utf8);
        assert_eq!(of(json!(["utf-16", "utf-32"])), Encoding::Utf32);
        assert_eq!(of(json!(["utf-7"])), Encoding::Utf16);
    }

    #[test]
    fn a_client_that_says_nothing_gets_the_least() {
        assert_eq!(profile(&Default::default()), Profile::default());
    }

    #[test]
    fn the_language_counts_before_the_extension() {
        let kind = |language, uri: &str| file_kind(language, &uri.parse::<Uri>().unwrap());
        assert_eq!(kind("python", "file:///a"), FileKind::Python);
        assert_eq!(kind("", "file:///a.py"), FileKind::Python);
        assert_eq!(kind("rx", "file:///a.py"), FileKind::Rx);
        assert_eq!(kind("plaintext", "untitled:Untitled-1"), FileKind::Rx);
    }
}
