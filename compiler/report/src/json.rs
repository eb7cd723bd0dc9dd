//! The JSON output, a stable interface: one object per diagnostic (`docs/json.md`).

use crate::source::Source;
use rx_base::{Diagnostic, Span};
use serde::Serialize;

/// A diagnostic as `--format json` writes it. Lines and columns count from 1, columns in characters; ends are
/// exclusive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Record<'a> {
    /// The path as given on the command line.
    pub file: &'a str,
    /// The code, such as `RX0501`.
    pub code: String,
    /// The name of the code, such as `call-tir-arg-mismatch`.
    pub name: &'static str,
    /// `error`, `warning`, `info` or `hint`.
    pub severity: &'static str,
    /// The message, in one line.
    pub message: &'a str,
    /// In a notebook, the number of the cell, from 1; lines are those of the cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<u32>,
    /// First line of the primary place.
    pub line: u32,
    /// First column of the primary place.
    pub column: u32,
    /// Line of the primary place's end.
    pub end_line: u32,
    /// Column after the primary place.
    pub end_column: u32,
    /// The label of the primary place; may be empty.
    pub label: &'a str,
    /// Secondary labels.
    pub labels: Vec<LabelRecord<'a>>,
    /// Notes, which have no place.
    pub notes: Vec<&'a str>,
    /// Help messages.
    pub help: Vec<&'a str>,
    /// Fixes.
    pub fixes: Vec<FixRecord<'a>>,
}

/// A label: a place in the same file with a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabelRecord<'a> {
    /// The message.
    pub message: &'a str,
    /// In a notebook, the number of the cell, from 1; lines are those of the cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<u32>,
    /// First line.
    pub line: u32,
    /// First column.
    pub column: u32,
    /// Line of the end.
    pub end_line: u32,
    /// Column after the end.
    pub end_column: u32,
}

/// A change that fixes the mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FixRecord<'a> {
    /// The title, as a menu shows it.
    pub title: &'a str,
    /// Whether the fix is safe to apply without review.
    pub safe: bool,
    /// The replacements, which must be applied together.
    pub edits: Vec<EditRecord<'a>>,
}

/// A replacement of one place by `new_text`; an empty place inserts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EditRecord<'a> {
    /// In a notebook, the number of the cell, from 1; lines are those of the cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<u32>,
    /// First line.
    pub line: u32,
    /// First column.
    pub column: u32,
    /// Line of the end.
    pub end_line: u32,
    /// Column after the end.
    pub end_column: u32,
    /// The new text of the place.
    pub new_text: &'a str,
}

impl<'a> Record<'a> {
    /// Creates the record of `diagnostic`, found in `source`.
    pub fn new(source: &'a Source<'a>, diagnostic: &'a Diagnostic<Span>) -> Record<'a> {
        let [line, column, end_line, end_column] = place(source, diagnostic.primary);
        let labels = diagnostic.labels.iter().map(|label| {
            let [line, column, end_line, end_column] = place(source, label.place);
            let cell = cell(source, label.place);
            LabelRecord { message: &label.text, cell, line, column, end_line, end_column }
        });
        let fixes = diagnostic.fixes.iter().map(|fix| FixRecord {
            title: &fix.title,
            safe: fix.safe,
            edits: fix.edits.iter().map(|(span, new_text)| edit(source, *span, new_text)).collect(),
        });
        Record {
            file: source.name(),
            code: diagnostic.code.to_string(),
            name: diagnostic.code.slug(),
            severity: diagnostic.severity.word(),
            message: &diagnostic.message,
            cell: cell(source, diagnostic.primary),
            line,
            column,
            end_line,
            end_column,
            label: &diagnostic.primary_label,
            labels: labels.collect(),
            notes: diagnostic.notes.iter().map(String::as_str).collect(),
            help: diagnostic.help.iter().map(String::as_str).collect(),
            fixes: fixes.collect(),
        }
    }
}

fn edit<'a>(source: &Source<'_>, span: Span, new_text: &'a str) -> EditRecord<'a> {
    let [line, column, end_line, end_column] = place(source, span);
    EditRecord { cell: cell(source, span), line, column, end_line, end_column, new_text }
}

/// Returns the number of the cell in which a place of a notebook begins.
fn cell(source: &Source<'_>, span: Span) -> Option<u32> {
    source.position(span.start as usize).cell
}

/// Returns line and column of the start, then of the end; counted from 1, columns in characters.
/// For example, the first two characters of a text have the place `[1, 1, 1, 3]`.
pub(crate) fn place(source: &Source<'_>, span: Span) -> [u32; 4] {
    let start = source.position(span.start as usize);
    let end = source.position(span.end.max(span.start) as usize);
    [start.line, start.column, end.line, end.column]
}

/// Renders the JSON object of one diagnostic, in one line, without a line end.
pub fn json(source: &Source<'_>, diagnostic: &Diagnostic<Span>) -> String {
    json_line(&Record::new(source, diagnostic))
}

/// Renders `value` as JSON in one line, without a line end; `null` if JSON cannot represent it (a map whose keys are
/// not strings).
pub fn json_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

#[cfg(test)]
mod tests {
    use super::json;
    use crate::Source;
    use rx_base::{Code, Diagnostic, Fix, Span};

    #[test]
    fn every_field_of_the_contract_is_there() {
        let text = "漢 = R.rellu(x)\n";
        let source = Source::new("a.rx", text);
        let diagnostic = Diagnostic::new(Code::UnknownOperator, Span::new(8, 13), "`R` has no `rellu`")
            .with_primary_label("no such operator")
            .with_label(Span::new(0, 3), "bound here")
            .with_note("a \"note\"")
            .with_help("did you mean `relu`?")
            .with_fix(Fix {
                title: "use `relu`".into(),
                edits: vec![(Span::new(8, 13), "nn.relu".into())],
                safe: true,
            });
        let expected = concat!(
            r#"{"file":"a.rx","code":"RX0202","name":"unknown-operator","severity":"error","#,
            r#""message":"`R` has no `rellu`","line":1,"column":7,"end_line":1,"end_column":12,"#,
            r#""label":"no such operator","#,
            r#""labels":[{"message":"bound here","line":1,"column":1,"end_line":1,"end_column":2}],"#,
            r#""notes":["a \"note\""],"help":["did you mean `relu`?"],"#,
            r#""fixes":[{"title":"use `relu`","safe":true,"edits":"#,
            r#"[{"line":1,"column":7,"end_line":1,"end_column":12,"new_text":"nn.relu"}]}]}"#
        );
        assert_eq!(json(&source, &diagnostic), expected);
    }
}
