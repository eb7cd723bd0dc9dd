//! GitHub's workflow commands: lines that a runner converts to annotations.
//!
//! <https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands>

use crate::source::Source;
use rx_base::{Diagnostic, Severity, Span};

/// Formats the command of one diagnostic, without a line end.
pub(crate) fn command(source: &Source<'_>, diagnostic: &Diagnostic<Span>) -> String {
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info | Severity::Hint => "notice",
    };
    let start = source.position(diagnostic.primary.start as usize);
    let end = source.position(diagnostic.primary.end.max(diagnostic.primary.start) as usize);
    let file = property(source.name());
    let title = property(&format!("{} {}", diagnostic.code, diagnostic.code.slug()));
    // An annotation of several lines has no columns.
    let columns = if start.line == end.line && start.column < end.column {
        format!(",col={},endColumn={}", start.column, end.column)
    } else {
        String::new()
    };
    let message = data(&crate::plain::placed_paragraph(source, diagnostic));
    if source.is_notebook() {
        // The annotation would be on a line of the notebook's JSON, so it is on the file.
        return format!("::{level} file={file},title={title}::{message}");
    }
    format!("::{level} file={file},line={},endLine={}{columns},title={title}::{message}", start.line, end.line)
}

/// Formats the command of a file that was not checked.
pub(crate) fn failure(why: &str) -> String {
    format!("::error title=rxcheck::{}", data(why))
}

/// Escapes the text after the second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::{command, failure};
    use crate::Source;
    use rx_base::{Code, Diagnostic, Span};

    #[test]
    fn characters_of_workflow_commands_are_escaped() {
        let source = Source::new("a,b:100%.rx", "x = y\nz\n");
        let wrong = Diagnostic::new(Code::UndefinedName, Span::new(4, 5), "100% of `y`: gone, all").with_note("a\r\nb");
        assert_eq!(
            command(&source, &wrong),
            "::error file=a%2Cb%3A100%25.rx,line=1,endLine=1,col=5,endColumn=6,title=RX0201 undefined-name\
             ::100%25 of `y`: gone, all%0Anote: a%0D%0Ab"
        );
        assert_eq!(failure("a.rx: no such\nfile"), "::error title=rxcheck::a.rx: no such%0Afile");
    }

    #[test]
    fn places_over_several_lines_have_no_columns() {
        let source = Source::new("a.rx", "x = (\n)\n");
        let wrong = Diagnostic::new(Code::CapturedPythonName, Span::new(4, 7), "m");
        let line = "::warning file=a.rx,line=1,endLine=2,title=RX0251 captured-python-name::m";
        assert_eq!(command(&source, &wrong), line);
    }
}
