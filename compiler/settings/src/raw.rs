//! Tables of `rx.toml` that other crates parse, with the positions of their keys and values.

use crate::read::place;
use rx_base::Span;
use toml::de::{DeTable, DeValue};

/// A table as written.
#[derive(Clone, Debug, PartialEq)]
pub struct RawTable {
    /// The position; for a table under `[[name]]` that of the header.
    pub place: Span,
    /// The entries, sorted by key.
    pub entries: Vec<RawEntry>,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct RawEntry {
    /// The key.
    pub key: String,
    /// The position of the key.
    pub key_place: Span,
    /// The value.
    pub value: RawValue,
    /// The position of the value.
    pub place: Span,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum RawValue {
    /// `true` or `false`.
    Bool(bool),
    /// An integer; `None` if it does not fit in 64 bits.
    Integer(Option<i64>),
    /// A number.
    Float(f64),
    /// A string.
    String(String),
    /// A date or time, as written.
    Date(String),
    /// An array: values with their positions.
    Array(Vec<(Span, RawValue)>),
    /// A table.
    Table(RawTable),
}

impl RawTable {
    /// Converts the table at `at`. Positions are relative to `mark` bytes into the text. The parser limits the nesting
    /// depth.
    pub(crate) fn new(at: Span, table: &DeTable<'_>, mark: usize) -> RawTable {
        let entries = table.iter().map(|(key, value)| RawEntry {
            key: key.get_ref().to_string(),
            key_place: place(key.span(), mark),
            value: RawValue::new(place(value.span(), mark), value.get_ref(), mark),
            place: place(value.span(), mark),
        });
        RawTable { place: at, entries: entries.collect() }
    }

    /// Returns the entry of a key.
    pub fn get(&self, key: &str) -> Option<&RawEntry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

impl RawValue {
    fn new(at: Span, value: &DeValue<'_>, mark: usize) -> RawValue {
        match value {
            DeValue::Boolean(value) => RawValue::Bool(*value),
            DeValue::Integer(digits) => RawValue::Integer(i64::from_str_radix(digits.as_str(), digits.radix()).ok()),
            DeValue::Float(digits) => RawValue::Float(digits.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::String(text) => RawValue::String(text.to_string()),
            DeValue::Datetime(date) => RawValue::Date(date.to_string()),
            DeValue::Array(items) => {
                let item = |item: &toml::Spanned<DeValue<'_>>| {
                    let at = place(item.span(), mark);
                    (at, RawValue::new(at, item.get_ref(), mark))
                };
                RawValue::Array(items.iter().map(item).collect())
            }
            DeValue::Table(table) => RawValue::Table(RawTable::new(at, table, mark)),
        }
    }
}
