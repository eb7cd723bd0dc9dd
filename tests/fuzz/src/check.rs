//! Text to everything that is said about it.

use rx_db::{FileKind, Workspace};
use rx_report::Source;

/// The most bytes that may be said about a text of `length` bytes.
fn most_output(length: usize) -> usize {
    (1 << 20) + 256 * length
}

/// Checks `data`: every place lies in the text, and what is said does not explode.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for kind in [FileKind::Rx, FileKind::Python] {
        let mut workspace = Workspace::new();
        let file = workspace.add(&text, kind);
        let diagnostics = workspace.diagnostics(file);
        let source = Source::new("fuzz.rx", &text);
        let mut said = 0;
        for diagnostic in &diagnostics {
            let edits = diagnostic.fixes.iter().flat_map(|fix| fix.edits.iter().map(|(span, _)| *span));
            for span in diagnostic.labels.iter().map(|label| label.place).chain(edits).chain([diagnostic.primary]) {
                assert!(text.get(span.range()).is_some(), "{span:?} is no place in the text: {diagnostic:?}");
            }
            said += rx_report::full(&source, diagnostic, true).len();
            said += rx_report::concise(&source, diagnostic, false).len();
            said += rx_report::json(&source, diagnostic).len();
        }
        assert!(diagnostics.is_sorted_by_key(|diagnostic| diagnostic.primary), "diagnostics are out of order");
        for row in workspace.types(file) {
            assert!(text.get(row.span.range()).is_some(), "{:?} is no place in the text: {row:?}", row.span);
            said += row.struct_info.len();
        }
        for part in 0..=16 {
            said += workspace.hover(file, text.len() * part / 16).map_or(0, |hover| hover.markdown.len());
        }
        assert!(said <= most_output(text.len()), "{said} bytes are said about {} bytes of text", text.len());
    }
}
