//! Positions of statements in the program's text, for tables and JSON events.

use rx_base::Span;
use rx_report::{Position, Source};
use serde_json::{Value, json};

/// The position of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    start: Position,
    end: Position,
}

impl Place {
    /// Looks up a part of the text.
    pub fn of(source: &Source<'_>, span: Span) -> Place {
        let end = span.end.max(span.start);
        Place { start: source.position(span.start as usize), end: source.position(end as usize) }
    }

    /// Formats the line for a table: `7`, or `cell 3, line 7` in a notebook.
    pub fn line(self) -> String {
        self.start.line_after_path()
    }

    /// Returns the line for a trace: a number, or in a notebook the text of [`Place::line`].
    pub fn line_value(self) -> Value {
        if self.start.cell.is_some() { self.line().into() } else { self.start.line.into() }
    }

    /// Returns the position as fields of a JSON event.
    pub fn fields(self) -> Value {
        let Place { start, end } = self;
        let mut fields = json!({
            "line": start.line, "column": start.column, "end_line": end.line, "end_column": end.column,
        });
        if let Some(cell) = start.cell {
            fields["cell"] = cell.into();
        }
        fields
    }
}
