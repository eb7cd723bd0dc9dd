//! Text made to break a reader: too deep, too long, too many, in circles, of odd characters. Each gives a few sane
//! diagnostics, in bounded time and memory, on the stack that rx gives its workers.

use rx_base::{Code, Diagnostic, Span};
use rx_db::{FileKind, Workspace};

/// Stack of a worker.
const STACK: usize = 64 << 20;

/// The most bytes said about one text here.
const MOST_SAID: usize = 8 << 20;

/// Everything rx says of `text`; places are checked to lie in it.
fn said(text: &str, kind: FileKind) -> Vec<Diagnostic<Span>> {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, kind);
    let diagnostics = workspace.diagnostics(file);
    let mut bytes = 0;
    for diagnostic in &diagnostics {
        let labels = diagnostic.labels.iter().map(|label| label.place);
        for span in labels.chain([diagnostic.primary]) {
            assert!(text.get(span.range()).is_some(), "{span:?} is no place: {diagnostic:?}");
        }
        bytes += format!("{diagnostic:?}").len();
    }
    for row in workspace.types(file) {
        assert!(text.get(row.span.range()).is_some(), "{row:?} stands nowhere");
        bytes += row.struct_info.len();
    }
    for part in 0..=4 {
        bytes += workspace.hover(file, text.len() * part / 4).map_or(0, |hover| hover.markdown.len());
    }
    assert!(bytes < MOST_SAID, "{bytes} bytes are said");
    diagnostics
}

/// Runs `work` with a worker's stack.
fn on_a_worker<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).expect("a thread");
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn main() {}
