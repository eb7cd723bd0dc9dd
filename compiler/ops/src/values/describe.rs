//! Descriptions of known values in words, for diagnostics.

use rx_ir::{Elements, End, TensorValues};
use std::fmt::Display;

/// Describes known values: `0, 2, 4, …, 62`, `0 to n - 1`, `at most 15`. Returns `None` if nothing is known.
pub fn describe(values: &TensorValues) -> Option<String> {
    match &values.elements {
        Some(Elements::Ints(elements)) => Some(listed(elements)),
        Some(Elements::Floats(elements)) => Some(listed(elements)),
        None => describe_range(values.low().as_ref(), values.high().as_ref()),
    }
}

/// Describes a range: `0 to n - 1`, `at least 0`, `at most 15`, `15`.
pub fn describe_range(low: Option<&End>, high: Option<&End>) -> Option<String> {
    match (low, high) {
        (Some(low), Some(high)) if low.value == high.value => Some(low.value.to_string()),
        (Some(low), Some(high)) => Some(format!("{} to {}", low.value, high.value)),
        (Some(low), None) => Some(format!("at least {}", low.value)),
        (None, Some(high)) => Some(format!("at most {}", high.value)),
        (None, None) => None,
    }
}

fn listed<T: Display + PartialEq>(elements: &[T]) -> String {
    match elements {
        [] => "no element".to_owned(),
        [first, rest @ ..] if !rest.is_empty() && rest.iter().all(|other| other == first) => {
            format!("{first} everywhere")
        }
        all if all.len() <= 6 => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        [a, b, c, .., last] => format!("{a}, {b}, {c}, …, {last}"),
        all => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}
