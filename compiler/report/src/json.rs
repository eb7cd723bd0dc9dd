//! The machine-readable contract: one JSON object per diagnostic (`docs/json.md`).

use crate::source::Source;
use rx_base::{Diagnostic, Span};
use serde::Serialize;

/// A diagnostic as `--format json` writes it. Lines and columns count from 1, columns in characters; ends are exclusive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Record<'a> {
    /// The path as given on the command line.
    pub file: &'a str,
    /// `RX0501`.
    pub code: String,
    /// `call-tir-arg-mismatch`.
    pub name: &'static str,
    /// `error`, `warning`, `info` or `hint`.
    pub severity: &'static str,
    /// What is wrong, in one line.
    pub message: &'a str,
    /// First line of the primary place.
    pub line: u32,
    /// First column of the primary place.
    pub column: u32,
    /// Line of the primary place's end.
    pub end_line: u32,
    /// Column after the primary place.
    pub end_column: u32,
    /// Words on the primary place; may be empty.
    pub label: &'a str,
    /// Other places that explain.
    pub labels: Vec<LabelRecord<'a>>,
    /// Facts without a place.
    pub notes: Vec<&'a str>,
    /// What to do.
    pub help: Vec<&'a str>,
    /// Edits that do it.
    pub fixes: Vec<FixRecord<'a>>,
}

/// A place of the same file with words on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabelRecord<'a> {
    /// What is to be seen there.
    pub message: &'a str,
    /// First line.
    pub line: u32,
    /// First column.
    pub column: u32,
    /// Line of the end.
    pub end_line: u32,
    /// Column after the end.
    pub end_column: u32,
}

/// A change that mends the mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FixRecord<'a> {
    /// The action, as a menu shows it.
    pub title: &'a str,
    /// Whether it is certain enough to apply unseen.
    pub safe: bool,
    /// Replacements that belong together.
    pub edits: Vec<EditRecord<'a>>,
}

/// A replacement of one place by `new_text`; an empty place inserts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EditRecord<'a> {
    /// First line.
    pub line: u32,
    /// First column.
    pub column: u32,
    /// Line of the end.
    pub end_line: u32,
    /// Column after the end.
    pub end_column: u32,
    /// What stands there afterwards.
    pub new_text: &'a str,
}

impl<'a> Record<'a> {
    /// The record of `diagnostic`, found in `source`.
    pub fn new(source: &'a Source<'a>, diagnostic: &'a Diagnostic<Span>) -> Record<'a> {
        let [line, column, end_line, end_column] = place(source, diagnostic.primary);
        let labels = diagnostic.labels.iter().map(|label| {
            let [line, column, end_line, end_column] = place(source, label.place);
            LabelRecord { message: &label.text, line, column, end_line, end_column }
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
    EditRecord { line, column, end_line, end_column, new_text }
}

/// Line and column of both ends, from 1, columns in characters.
pub fn place(source: &Source<'_>, span: Span) -> [u32; 4] {
    let start = source.position(span.start as usize);
    let end = source.position(span.end.max(span.start) as usize);
    [start.line, start.column, end.line, end.column]
}

/// The JSON object of one diagnostic, in one line, without a line end.
pub fn json(source: &Source<'_>, diagnostic: &Diagnostic<Span>) -> String {
    json_line(&Record::new(source, diagnostic))
}

/// `value` as JSON in one line, without a line end; a value that JSON cannot say (a map keyed by no string) is `null`.
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
