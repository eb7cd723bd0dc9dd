//! Formats amounts for display.

use super::FunctionStats;
use rx_base::Dim;

/// The unit of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Arithmetic operations, or elements.
    Operations,
    /// Bytes.
    Bytes,
}

/// Formats an expression with its known range.
pub fn ranged(dim: &Dim, stats: &FunctionStats, unit: Unit) -> String {
    let text = plain(dim, unit);
    if dim.as_constant().is_some() || dim.is_error() {
        return text;
    }
    match stats.range(dim) {
        (Some(low), Some(high)) => format!("{text} ({} to {})", number(low, unit), number(high, unit)),
        (Some(low), None) if low > 0 => format!("{text} (at least {})", number(low, unit)),
        (None, Some(high)) => format!("{text} (at most {})", number(high, unit)),
        _ => text,
    }
}

/// Formats an expression with its unit.
pub fn plain(dim: &Dim, unit: Unit) -> String {
    match (dim.as_constant(), dim.is_error(), unit) {
        (Some(value), ..) => number(value, unit),
        (None, true, _) => "too large to write".to_owned(),
        (None, false, Unit::Bytes) => format!("{dim} B"),
        (None, false, Unit::Operations) => dim.to_string(),
    }
}

/// Formats a number: `8.20 G`, `97.50 MiB`; small numbers are exact.
pub fn number(value: i64, unit: Unit) -> String {
    let (step, names): (f64, [&str; 5]) = match unit {
        Unit::Operations => (1000.0, ["", " k", " M", " G", " T"]),
        Unit::Bytes => (1024.0, [" B", " KiB", " MiB", " GiB", " TiB"]),
    };
    let mut scaled = value as f64;
    let mut at = 0;
    while scaled.abs() >= step && at + 1 < names.len() {
        scaled /= step;
        at += 1;
    }
    let name = names.get(at).copied().unwrap_or("");
    if at == 0 { format!("{value}{name}") } else { format!("{scaled:.2}{name}") }
}
