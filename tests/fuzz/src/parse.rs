//! Fuzz target: parses, prints and formats a text.

use rx_base::Span;
use rx_syntax::dialect::Dialect;
use rx_syntax::format::format;
use rx_syntax::printer::{print, tree_eq};
use rx_syntax::{Document, Encoding, FileKind, syntax_diagnostics};

/// Parses `data` as a script and as Python. No text may be lost, every position must be inside the text, and the
/// printed or formatted form of a text without mistakes must parse to the same trees.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for kind in [FileKind::Rx, FileKind::Python] {
        let document = Document::new(&text, kind);
        assert_eq!(document.text(), text, "text is lost");
        let mistakes = trees(&document);
        positions(&document, &text);
        let printed: Vec<String> = Dialect::ALL.into_iter().map(|dialect| print(&document, dialect)).collect();
        let formatted = format(&document, Dialect::detect(&document));
        if mistakes == 0 {
            formatting_keeps_trees(&document, &formatted, kind);
            for printed in printed {
                let read = Document::new(&printed, kind);
                assert_eq!(trees(&read), 0, "what is printed has mistakes:\n{printed}");
            }
        }
    }
}

/// Parses all segments; returns the number of mistakes.
fn trees(document: &Document) -> usize {
    let mut mistakes = 0;
    for item in document.items() {
        let segment_of = |index: usize| item.segments.get(index).map_or("", |segment| segment.text());
        for segment in item.segments.iter() {
            for statement in &segment.tree().statements {
                assert_inside(segment.text(), statement.span);
            }
            for comment in segment.comments() {
                assert_inside(segment.text(), comment);
            }
            for diagnostic in syntax_diagnostics(segment) {
                assert_inside(segment.text(), diagnostic.primary);
                mistakes += 1;
            }
        }
        for (index, diagnostic) in item.indentation_diagnostics() {
            assert_inside(segment_of(index), diagnostic.primary);
            mistakes += 1;
        }
    }
    mistakes
}

fn assert_inside(text: &str, span: Span) {
    assert!(text.get(span.range()).is_some(), "{span:?} is no place in a text of {} bytes", text.len());
}

/// Checks that lines and columns convert back to the same byte offsets.
fn positions(document: &Document, text: &str) {
    for part in 0..=8 {
        let offset = text.floor_char_boundary(text.len() * part / 8);
        // The offset between `\r` and `\n` is not a separate position.
        if text.as_bytes().get(..=offset).is_some_and(|bytes| bytes.ends_with(b"\r\n")) {
            continue;
        }
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            let (line, column) = document.line_column(offset, encoding);
            assert_eq!(
                document.offset_of(line, column, encoding),
                offset,
                "line {line}, column {column}, {encoding:?}"
            );
        }
    }
}

fn formatting_keeps_trees(document: &Document, formatted: &str, kind: FileKind) {
    let read = Document::new(formatted, kind);
    if let Err(difference) = tree_eq(document, &read) {
        panic!("formatting changed a tree: {difference}\n{formatted}");
    }
    assert_eq!(format(&read, Dialect::detect(&read)), formatted, "formatting twice differs");
}
