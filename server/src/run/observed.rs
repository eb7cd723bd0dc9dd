//! Values of variables and times of kernels that a child reports, with their places converted to ranges of the client's
//! document.

use crate::notebooks::{AskedCell, in_document};
use rx_db::{Document, Encoding, FileKind};
use serde_json::{Map, Value, json};
use tower_lsp::ls_types as proto;

/// The maximal number of values that are kept.
pub const MAX_VALUES: usize = 10_000;

/// The maximal number of kernels that are kept.
pub const MAX_KERNELS: usize = 1000;

/// The maximal number of statements of a kernel, and of dims of a shape, that are kept.
const MAX_PARTS: usize = 256;

/// The maximal length of a name or text, in characters.
const MAX_TEXT: usize = 400;

/// The reported values and kernels, in order. Values without a place are omitted.
#[derive(Debug, Default)]
pub struct Observed {
    values: Vec<(Place, Map<String, Value>)>,
    kernels: Vec<(Vec<Place>, Map<String, Value>)>,
}

/// A place as in events: lines and columns from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    start: (u64, u64),
    end: (u64, u64),
}

impl Place {
    fn read(event: &Value) -> Option<Place> {
        let number = |field| event.get(field).and_then(Value::as_u64);
        let (line, column) = (number("line")?, number("column")?);
        Some(Place { start: (line, column), end: (number("end_line")?, number("end_column")?) })
    }
}

impl Observed {
    /// Records a `value` event.
    pub fn value(&mut self, event: &Value) {
        if self.values.len() < MAX_VALUES
            && let Some(place) = Place::read(event)
        {
            let fields = ["name", "function", "dtype", "shape", "text", "min", "mean", "max", "nan", "seconds"];
            self.values.push((place, taken(event, &fields)));
        }
    }

    /// Records a `kernel` event.
    pub fn kernel(&mut self, event: &Value) {
        if self.kernels.len() < MAX_KERNELS {
            let places = event.get("places").and_then(Value::as_array).into_iter().flatten();
            let places = places.filter_map(Place::read).take(MAX_PARTS).collect();
            self.kernels.push((places, taken(event, &["name", "calls", "seconds"])));
        }
    }

    /// Returns the values and the kernels as JSON, with ranges in the client's position encoding; in a notebook, those
    /// of one cell. `text` is the text that the child compiled.
    pub fn placed(
        self,
        text: &str,
        kind: FileKind,
        encoding: Encoding,
        cell: Option<&AskedCell>,
    ) -> (Vec<Value>, Vec<Value>) {
        if self.values.is_empty() && self.kernels.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let lines = Lines { text, starts: starts(text), document: Document::new(text, kind), encoding, cell };
        let value = |(place, mut fields): (Place, Map<String, Value>)| {
            fields.insert("range".to_owned(), json!(lines.range(place)?));
            Some(Value::Object(fields))
        };
        let kernel = |(places, mut fields): (Vec<Place>, Map<String, Value>)| {
            let ranges: Vec<proto::Range> = places.into_iter().filter_map(|place| lines.range(place)).collect();
            fields.insert("ranges".to_owned(), json!(ranges));
            Value::Object(fields)
        };
        (self.values.into_iter().filter_map(value).collect(), self.kernels.into_iter().map(kernel).collect())
    }
}

/// Extracts the fields of an event that are sent to the client. Missing fields become null.
fn taken(event: &Value, fields: &[&str]) -> Map<String, Value> {
    let taken = fields.iter().map(|field| ((*field).to_owned(), event.get(field).map_or(Value::Null, bounded)));
    taken.collect()
}

/// Truncates the value of a field.
fn bounded(value: &Value) -> Value {
    match value {
        Value::String(text) => text.chars().take(MAX_TEXT).collect::<String>().into(),
        Value::Array(parts) => parts.iter().filter(|part| part.is_number()).take(MAX_PARTS).cloned().collect(),
        Value::Object(_) => Value::Null,
        plain => plain.clone(),
    }
}

/// A converter from the child's lines and columns to the client's.
struct Lines<'t> {
    text: &'t str,
    /// The byte offset of each line's start. The first line starts after a byte order mark.
    starts: Vec<usize>,
    document: Document,
    encoding: Encoding,
    cell: Option<&'t AskedCell>,
}

/// Returns the line starts as the child counts them. Only `\n` ends a line there, while the protocol also has `\r`.
fn starts(text: &str) -> Vec<usize> {
    let mark = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    let after = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
    std::iter::once(mark).chain(after).collect()
}

impl Lines<'_> {
    fn range(&self, place: Place) -> Option<proto::Range> {
        let (start, end) = (self.position(place.start)?, self.position(place.end)?);
        if start <= end { in_document(proto::Range::new(start, end), self.cell) } else { None }
    }

    fn position(&self, (line, column): (u64, u64)) -> Option<proto::Position> {
        let line = usize::try_from(line).ok()?.checked_sub(1)?;
        let start = *self.starts.get(line)?;
        let end = self.starts.get(line + 1).map_or(self.text.len(), |next| next - 1);
        let text = self.text.get(start..end)?;
        let before = usize::try_from(column).ok()?.checked_sub(1)?;
        let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        let offset = start + ends.take(before.checked_add(1)?).nth(before)?;
        let (line, column) = self.document.line_column(offset, self.encoding);
        Some(proto::Position::new(line, column))
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_KERNELS, MAX_VALUES, Observed};
    use rx_db::{Encoding, FileKind};
    use serde_json::{Value, json};

    fn value(line: u64, column: u64, end_column: u64) -> Value {
        json!({"event": "value", "name": "lv", "function": "main", "dtype": "float32", "shape": [1, 2], "text": null,
            "min": 0, "mean": 0.5, "max": 1, "nan": 0, "seconds": 0.25, "line": line, "column": column,
            "end_line": line, "end_column": end_column})
    }

    fn kernel(places: Value) -> Value {
        json!({"event": "kernel", "name": "relu", "calls": 3, "seconds": 0.5, "places": places})
    }

    fn placed(text: &str, events: &[Value], encoding: Encoding) -> (Vec<Value>, Vec<Value>) {
        let mut observed = Observed::default();
        for event in events {
            if event["event"] == "value" { observed.value(event) } else { observed.kernel(event) }
        }
        observed.placed(text, FileKind::Rx, encoding, None)
    }

    #[test]
    fn places_are_counted_as_the_client_counts() {
        let text = "x = 1\r\n\"é𝄞\"; 漢 = 2\n";
        for (encoding, column, end) in [(Encoding::Utf8, 10, 13), (Encoding::Utf16, 7, 8), (Encoding::Utf32, 6, 7)] {
            let (values, kernels) = placed(
                text,
                &[
                    value(2, 7, 8),
                    kernel(json!([{"line": 2, "column": 7, "end_line": 2, "end_column": 8}, {"line": 9}])),
                ],
                encoding,
            );
            let range = json!({"start": {"line": 1, "character": column}, "end": {"line": 1, "character": end}});
            let expected = json!({"name": "lv", "function": "main", "dtype": "float32", "shape": [1, 2], "text": null,
                "min": 0, "mean": 0.5, "max": 1, "nan": 0, "seconds": 0.25, "range": range});
            assert_eq!(values, [expected]);
            assert_eq!(kernels, [json!({"name": "relu", "calls": 3, "seconds": 0.5, "ranges": [range]})]);
        }
    }

    #[test]
    fn a_byte_order_mark_is_a_column_of_the_clients_only() {
        let (values, _) = placed("\u{FEFF}lv = 1", &[value(1, 1, 3)], Encoding::Utf16);
        assert_eq!(values[0]["range"]["start"]["character"], 1);
        assert_eq!(values[0]["range"]["end"]["character"], 3);
    }

    #[test]
    fn malformed_and_surplus_observations_are_dropped() {
        let nowhere =
            [value(0, 1, 2), value(1, 0, 2), value(1, 5, 9), value(9, 1, 2), value(1, 3, 2), value(1, u64::MAX, 2)];
        assert_eq!(placed("a = b", &nowhere, Encoding::Utf16).0, Vec::<Value>::new());
        let mut strange = value(1, 1, 2);
        strange["name"] = "n".repeat(5000).into();
        strange["shape"] = json!([1, {"deep": []}, 2]);
        let (values, _) = placed("a = b", &[strange], Encoding::Utf16);
        assert_eq!((values[0]["name"].as_str().map(str::len), &values[0]["shape"]), (Some(400), &json!([1, 2])));
        let mut observed = Observed::default();
        (0..MAX_VALUES + 5).for_each(|_| observed.value(&value(1, 1, 2)));
        (0..MAX_KERNELS + 5).for_each(|_| observed.kernel(&kernel(json!([]))));
        let (values, kernels) = observed.placed("a = b", FileKind::Rx, Encoding::Utf8, None);
        assert_eq!((values.len(), kernels.len()), (MAX_VALUES, MAX_KERNELS));
    }
}
