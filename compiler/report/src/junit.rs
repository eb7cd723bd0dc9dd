//! JUnit's XML: one test suite per file, one test case per diagnostic.

use crate::format::{Piece, Report};
use crate::plain::printable;
use crate::source::Source;
use rx_base::{Diagnostic, Severity, Span};
use std::fmt::Write;

/// Renders the test case of one diagnostic. Errors and warnings are failures; less serious diagnostics are output of a
/// passed case.
pub(crate) fn case(source: &Source<'_>, diagnostic: &Diagnostic<Span>) -> String {
    let start = source.position(diagnostic.primary.start as usize);
    let (file, message) = (escape(source.name()), escape(&diagnostic.message));
    let name = format!("{} {}", diagnostic.code, diagnostic.code.slug());
    let place = format!("{}:{start}: ", source.name());
    let body = escape(&(place + &crate::plain::paragraph(diagnostic)));
    // A line of a cell is no line of the file.
    let line = if source.is_notebook() { String::new() } else { format!(" line=\"{}\"", start.line) };
    let inside = match diagnostic.severity {
        Severity::Error | Severity::Warning => {
            format!("<failure type=\"{}\" message=\"{message}\">{body}</failure>", diagnostic.severity)
        }
        Severity::Info | Severity::Hint => format!("<system-out>{body}</system-out>"),
    };
    format!("<testcase classname=\"{file}\" name=\"{name}\" file=\"{file}\"{line}>{inside}</testcase>")
}

/// Renders the document. A file without diagnostics is a suite with one passed case; a file that was not checked is an
/// error.
pub(crate) fn document(report: &Report) -> String {
    let mut suites = String::new();
    let mut totals = (0, 0);
    for (name, pieces) in report.files() {
        let (tests, failures) = suite(&mut suites, name, pieces);
        totals = (totals.0 + tests, totals.1 + failures);
    }
    let errors = report.failures().len();
    for why in report.failures() {
        let why = escape(why);
        // INVARIANT: writing to a string does not fail.
        let _ = writeln!(
            suites,
            "  <testsuite name=\"rxcheck\" tests=\"1\" failures=\"0\" errors=\"1\">\n    <testcase \
             classname=\"rxcheck\" name=\"read\"><error message=\"{why}\"/></testcase>\n  </testsuite>"
        );
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"rxcheck\" tests=\"{}\" failures=\"{}\" \
         errors=\"{errors}\">\n{suites}</testsuites>\n",
        totals.0 + errors,
        totals.1
    )
}

/// Writes the suite of a file and returns the numbers of tests and failures.
fn suite(out: &mut String, name: &str, pieces: &[Piece]) -> (usize, usize) {
    let name = escape(name);
    let tests = pieces.len().max(1);
    let failures = pieces.iter().filter(|piece| piece.text.contains("<failure ")).count();
    // INVARIANT: writing to a string does not fail.
    let _ = writeln!(out, "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">");
    if pieces.is_empty() {
        let _ = writeln!(out, "    <testcase classname=\"{name}\" name=\"rxcheck\"/>");
    }
    for piece in pieces {
        let _ = writeln!(out, "    {}", piece.text);
    }
    out.push_str("  </testsuite>\n");
    (tests, failures)
}

/// Escapes text of an attribute or element; characters that XML 1.0 does not allow are replaced by visible ones.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\u{FFFE}' | '\u{FFFF}' => escaped.push('\u{FFFD}'),
            c => escaped.push(printable(c)),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn xml_stays_xml() {
        assert_eq!(escape("a < \"b\" & c\n\x01\u{FFFF}"), "a &lt; &quot;b&quot; &amp; c&#10;␁\u{FFFD}");
    }
}
