//! Fuzz target: checks a text and renders all results.

use rx_db::{FileKind, Workspace};
use rx_report::Source;

/// The most bytes that the rendering of one diagnostic, one type or one hover may have.
const MOST_SAID: usize = 1 << 20;

/// The most diagnostics that are rendered: each takes about 50 µs, and a text can have one per byte.
const MOST_RENDERED: usize = 256;

/// Panics if a rendering is unreasonably long.
fn bounded(said: &str) {
    assert!(said.len() <= MOST_SAID, "{} bytes are said at once", said.len());
}

/// Checks `data`: every position must be inside the text, and no rendering may be too long.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for kind in [FileKind::Rx, FileKind::Python] {
        let mut workspace = Workspace::new();
        let file = workspace.add(&text, kind);
        let diagnostics = workspace.diagnostics(file);
        let source = Source::new("fuzz.rx", &text);
        assert!(diagnostics.len() <= text.len() + 1, "{} mistakes in {} bytes", diagnostics.len(), text.len());
        for diagnostic in &diagnostics {
            let edits = diagnostic.fixes.iter().flat_map(|fix| fix.edits.iter().map(|(span, _)| *span));
            for span in diagnostic.labels.iter().map(|label| label.place).chain(edits).chain([diagnostic.primary]) {
                assert!(text.get(span.range()).is_some(), "{span:?} is no place in the text: {diagnostic:?}");
            }
        }
        for diagnostic in diagnostics.iter().take(MOST_RENDERED) {
            bounded(&rx_report::full(&source, diagnostic, true));
            bounded(&rx_report::concise(&source, diagnostic, false));
            bounded(&rx_report::json(&source, diagnostic));
        }
        assert!(diagnostics.is_sorted_by_key(|diagnostic| diagnostic.primary), "diagnostics are out of order");
        for row in workspace.types(file) {
            assert!(text.get(row.span.range()).is_some(), "{:?} is no place in the text: {row:?}", row.span);
            bounded(&row.struct_info);
        }
        for part in 0..=16 {
            if let Some(hover) = workspace.view(file).and_then(|view| rx_ide::hover(&view, text.len() * part / 16)) {
                bounded(&hover.markdown);
            }
        }
    }
}
