//! GitLab's code quality report: a JSON array.
//!
//! <https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>

use crate::format::Report;
use crate::json::{json_line, place};
use crate::source::Source;
use rx_base::{Diagnostic, Severity, Span};
use serde_json::json;

/// Renders the object of one diagnostic.
pub(crate) fn issue(source: &Source<'_>, diagnostic: &Diagnostic<Span>, fingerprint: &str) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "major",
        Severity::Warning => "minor",
        Severity::Info | Severity::Hint => "info",
    };
    let [mut line, mut column, mut end_line, mut end_column] = place(source, diagnostic.primary);
    let mut description = format!("{}: {}", diagnostic.code, diagnostic.message);
    if source.is_notebook() {
        // The format requires a line of the file, which for a notebook would be a line of its JSON.
        [line, column, end_line, end_column] = [1; 4];
        let cell = source.position(diagnostic.primary.start as usize).line_words();
        description = format!("{}: {cell}: {}", diagnostic.code, diagnostic.message);
    }
    json_line(&json!({
        "type": "issue",
        "check_name": diagnostic.code.slug(),
        "description": description,
        "content": { "body": crate::plain::placed_paragraph(source, diagnostic) },
        "categories": ["Bug Risk"],
        "severity": severity,
        "fingerprint": fingerprint,
        "location": {
            "path": source.name(),
            "positions": {
                "begin": { "line": line, "column": column },
                "end": { "line": end_line, "column": end_column },
            },
        },
    }))
}

/// Renders the array. The format cannot represent files that were not checked.
pub(crate) fn document(report: &Report) -> String {
    match report.joined() {
        issues if issues.is_empty() => "[]\n".to_owned(),
        issues => format!("[\n{issues}\n]\n"),
    }
}
