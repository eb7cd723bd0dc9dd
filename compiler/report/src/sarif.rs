//! SARIF 2.1.0: one run with its rules and results.
//!
//! <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>

use crate::format::Report;
use crate::json::json_line;
use crate::source::Source;
use rx_base::{Code, Diagnostic, Fix, Severity, Span};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Renders the result object of one diagnostic.
pub(crate) fn result(source: &Source<'_>, diagnostic: &Diagnostic<Span>, fingerprint: &str) -> String {
    let mut result = json!({
        "ruleId": diagnostic.code.to_string(),
        "level": level(diagnostic.severity),
        "message": { "text": plain(&crate::plain::placed_paragraph(source, diagnostic)) },
        "locations": [location(source, diagnostic.primary, &diagnostic.primary_label)],
        "partialFingerprints": { "rxLine/v1": fingerprint },
    });
    let related: Vec<Value> =
        diagnostic.labels.iter().map(|label| location(source, label.place, &label.text)).collect();
    // Replacements are at places of a file, and a cell's text is in the file as JSON.
    let fixes = diagnostic.fixes.iter().filter(|_| !source.is_notebook());
    let fixes: Vec<Value> = fixes.map(|fix| self::fix(source, fix)).collect();
    for (key, values) in [("relatedLocations", related), ("fixes", fixes)] {
        if let (false, Some(result)) = (values.is_empty(), result.as_object_mut()) {
            result.insert(key.to_owned(), Value::Array(values));
        }
    }
    json_line(&result)
}

/// Renders the document.
pub(crate) fn document(report: &Report) -> String {
    let notifications: Vec<Value> =
        report.failures().iter().map(|why| json!({ "level": "error", "message": { "text": plain(why) } })).collect();
    let run = [
        format!("\"tool\": {{ \"driver\": {} }}", json_line(&driver(&report.codes()))),
        "\"columnKind\": \"unicodeCodePoints\"".to_owned(),
        format!(
            "\"invocations\": [{}]",
            json_line(&json!({
                "executionSuccessful": notifications.is_empty(),
                "toolExecutionNotifications": notifications,
            }))
        ),
        format!("\"results\": [\n{}\n]", report.joined()),
    ];
    format!("{{\"$schema\": \"{SCHEMA}\", \"version\": \"2.1.0\", \"runs\": [{{\n{}\n}}]}}\n", run.join(",\n"))
}

fn driver(codes: &BTreeSet<Code>) -> Value {
    let rules: Vec<Value> = codes.iter().map(|code| rule(*code)).collect();
    json!({
        "name": "rxcheck",
        "version": env!("CARGO_PKG_VERSION"),
        "informationUri": env!("CARGO_PKG_REPOSITORY"),
        "rules": rules,
    })
}

fn rule(code: Code) -> Value {
    let (url, summary) = (code.url(), code.summary());
    let markdown = crate::page(code).map_or_else(|| format!("{summary} [{code}]({url})"), str::to_owned);
    json!({
        "id": code.to_string(),
        "name": code.slug(),
        "shortDescription": { "text": summary },
        "help": { "text": format!("{summary} See {url}"), "markdown": markdown },
        "helpUri": url,
        "defaultConfiguration": { "level": level(code.severity()) },
    })
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info | Severity::Hint => "note",
    }
}

fn location(source: &Source<'_>, place: Span, words: &str) -> Value {
    let mut location = if source.is_notebook() {
        // A region would be a part of the notebook's JSON, so the cell and the line are a logical location.
        let line = source.position(place.start as usize).line_words();
        json!({
            "physicalLocation": { "artifactLocation": artifact(source) },
            "logicalLocations": [{ "fullyQualifiedName": line }],
        })
    } else {
        json!({ "physicalLocation": { "artifactLocation": artifact(source), "region": region(source, place) } })
    };
    if let (false, Some(location)) = (words.is_empty(), location.as_object_mut()) {
        location.insert("message".to_owned(), json!({ "text": plain(words) }));
    }
    location
}

fn fix(source: &Source<'_>, fix: &Fix<Span>) -> Value {
    let replacements: Vec<Value> = fix
        .edits
        .iter()
        .map(|(place, text)| json!({ "deletedRegion": region(source, *place), "insertedContent": { "text": text } }))
        .collect();
    json!({
        "description": { "text": plain(&fix.title) },
        "artifactChanges": [{ "artifactLocation": artifact(source), "replacements": replacements }],
        "properties": { "safe": fix.safe },
    })
}

fn region(source: &Source<'_>, place: Span) -> Value {
    let start = source.position(place.start as usize);
    let end = source.position(place.end.max(place.start) as usize);
    json!({
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    })
}

fn artifact(source: &Source<'_>) -> Value {
    json!({ "uri": uri(source.name()) })
}

/// Converts a path to a URI: a reference relative to the working directory, or a `file:` URI.
fn uri(path: &str) -> String {
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    let mut uri = String::with_capacity(path.len());
    if path.starts_with('/') {
        uri.push_str("file://");
    } else if path.as_bytes().get(1) == Some(&b':') && cfg!(windows) {
        uri.push_str("file:///");
    }
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Escapes a message string, in which SARIF reads `{0}` as a placeholder and `[text](target)` as a link.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let placeholders = text.as_bytes().windows(2).any(|pair| pair[0] == b'{' && pair[1].is_ascii_digit());
    let links = text.contains("](");
    for c in text.chars() {
        match c {
            '{' | '}' if placeholders => plain.extend([c, c]),
            '[' | ']' if links => plain.extend(['\\', c]),
            _ => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{plain, uri};

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("nets/a b%.rx"), "nets/a%20b%25.rx");
        assert_eq!(uri("/srv/é.rx"), "file:///srv/%C3%A9.rx");
        assert_eq!(uri("<stdin>"), "%3Cstdin%3E");
    }

    #[test]
    fn messages_hold_no_placeholders_and_no_links() {
        assert_eq!(plain("shape (1, n) of {\"a\": [1]}"), "shape (1, n) of {\"a\": [1]}");
        assert_eq!(plain("{0} of x[1](2)"), "{{0}} of x\\[1\\](2)");
    }
}
