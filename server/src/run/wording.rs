//! Wording of a run's outcome: events, outputs and durations as text for the user.

use super::child::file_name;
use serde_json::Value;

/// The maximal length of foreign text in a message, in characters.
const MAX_WORDS: usize = 400;

/// Returns the text of an event, preceded by its place: `net.rx:17: …`.
pub fn placed(event: &Value, field: &str) -> String {
    let text = words(event.get(field).and_then(Value::as_str).unwrap_or("unknown reason"));
    let file = event.get("file").and_then(Value::as_str).map(|file| words(&file_name(file)));
    match (file, event.get("line").and_then(Value::as_u64)) {
        (Some(file), Some(line)) => format!("{file}:{line}: {text}"),
        _ => text,
    }
}

/// Describes an output: `out0 float32 (1, 10), min -1.5, mean 0.1, max 2.5`.
pub fn described(output: &Value) -> String {
    let text = |field| words(output.get(field).and_then(Value::as_str).unwrap_or("?"));
    let dims: Vec<String> =
        output.get("shape").and_then(Value::as_array).into_iter().flatten().take(16).map(Value::to_string).collect();
    let comma = if dims.len() == 1 { "," } else { "" };
    let mut line = format!("{} {} ({}{comma})", text("name"), text("dtype"), dims.join(", "));
    for field in ["min", "mean", "max"] {
        // JSON has neither NaN nor infinity; both are written as null.
        let value = output.get(field).and_then(Value::as_f64).map_or_else(|| "not finite".to_owned(), significant);
        line.push_str(&format!(", {field} {value}"));
    }
    match output.get("nan").and_then(Value::as_u64) {
        None | Some(0) => line,
        Some(count) => format!("{line}, {count} NaN"),
    }
}

/// Formats a value with about five significant digits.
fn significant(value: f64) -> String {
    let size = value.abs();
    match value {
        _ if value == value.trunc() && size < 1e9 => format!("{value}"),
        _ if (1e-3..1e6).contains(&size) => format!("{value:.4}"),
        _ => format!("{value:.4e}"),
    }
}

/// Returns the median of an array of numbers.
pub fn median(times: Option<&Value>) -> Option<f64> {
    let mut times: Vec<f64> = times?.as_array()?.iter().filter_map(Value::as_f64).collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

/// Formats a duration: `3.1 ms`, `0.84 s`.
pub fn shown(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1e-3 => format!("{:.0} µs", seconds * 1e6),
        seconds if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{seconds:.2} s"),
    }
}

/// Returns the first of several errors, followed by the number of the others. For example, three errors yield
/// `first (and 2 more errors)`.
pub fn with_more(first: &str, count: usize) -> String {
    match count {
        0 | 1 => first.to_owned(),
        2 => format!("{first} (and 1 more error)"),
        count => format!("{first} (and {} more errors)", count - 1),
    }
}

/// Returns the message for a text that is longer than `most` bytes.
pub fn too_long(most: u64) -> String {
    format!("cannot be shown: its text is longer than {} MiB", most >> 20)
}

/// Truncates foreign text and replaces its control characters by spaces.
pub fn words(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut cut: String = text.chars().take(MAX_WORDS).map(clean).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}
