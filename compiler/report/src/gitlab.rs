//! GitLab's code quality report: a JSON array.
//!
//! <https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>

use crate::format::Report;
use crate::json::json_line;
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
    let start = source.position(diagnostic.primary.start as usize);
    let end = source.position(diagnostic.primary.end.max(diagnostic.primary.start) as usize);
    json_line(&json!({
        "type": "issue",
        "check_name": diagnostic.code.slug(),
        "description": format!("{}: {}", diagnostic.code, diagnostic.message),
        "content": { "body": crate::plain::paragraph(diagnostic) },
        "categories": ["Bug Risk"],
        "severity": severity,
        "fingerprint": fingerprint,
        "location": {
            "path": source.name(),
            "positions": {
                "begin": { "line": start.line, "column": start.column },
                "end": { "line": end.line, "column": end.column },
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
