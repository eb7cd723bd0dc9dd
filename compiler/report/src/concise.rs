//! One-line rendering of diagnostics.

use crate::full::severity_color;
use crate::plain::line_of;
use crate::source::Source;
use ariadne::Fmt;
use rx_base::{Diagnostic, Span};

/// The most characters of a message in one line.
const LONGEST_MESSAGE: usize = 2000;

/// Formats `path:line:column: error[RX0501] message`, without a line end; with `color`, the severity is coloured. In a
/// notebook, the place is `path:cell 3, line 7, column 5`.
pub fn concise(source: &Source<'_>, diagnostic: &Diagnostic<Span>, color: bool) -> String {
    let position = source.position(diagnostic.primary.start as usize);
    let name = line_of(source.name(), LONGEST_MESSAGE);
    let message = line_of(&diagnostic.message, LONGEST_MESSAGE);
    let kind = format!("{}[{}]", diagnostic.severity, diagnostic.code);
    let kind = if color { kind.fg(severity_color(diagnostic.severity)).to_string() } else { kind };
    format!("{name}:{position}: {kind} {message}")
}

#[cfg(test)]
mod tests {
    use super::concise;
    use crate::Source;
    use rx_base::{Code, Diagnostic, Span};

    #[test]
    fn one_line_whatever_the_message() {
        let source = Source::new("dir/a.rx", "x = 1\né = y\n");
        let diagnostic = Diagnostic::new(Code::UndefinedName, Span::new(11, 12), "`y` is\nnot defined");
        assert_eq!(concise(&source, &diagnostic, false), "dir/a.rx:2:5: error[RX0201] `y` is not defined");
        assert!(concise(&source, &diagnostic, true).contains("\x1b[31merror[RX0201]\x1b[0m `y`"));
    }
}
