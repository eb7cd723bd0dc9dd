//! Values about as Python prints them. Arrays follow NumPy's `str` (NumPy `_core/arrayprint.py`, with default options).

use super::format::exponent;
use crate::value::Output;
use rx_tensor::{Scalar, Tensor};

/// The maximal width of a line, in characters.
const WIDTH: usize = 75;
/// The maximal number of decimals of a float in an array of rank 1 or more.
const PRECISION: usize = 8;
/// The largest number of elements of an array that is always printed in full. In larger arrays, `...` replaces the
/// middle of each axis that is longer than twice [`EDGE`].
const THRESHOLD: usize = 1000;
/// The number of elements printed at each end of an axis of a summarized array.
const EDGE: usize = 3;

/// Formats a value.
pub(super) fn shown(value: &Output) -> String {
    match value {
        Output::Tensor(tensor) => array(tensor),
        Output::Shape(dims) => format!("({})", dims.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")),
        Output::Scalar(Scalar::Int(value)) => value.to_string(),
        Output::Scalar(Scalar::Float(value)) => number(*value, false),
        Output::String(text) => text.to_string(),
        Output::Null => "None".to_owned(),
        Output::Tuple(fields) => format!("({})", fields.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Output::Function(name) => format!("the function {name}"),
    }
}

/// Formats one float with the fewest digits that identify it. `single` is whether it is identified as a `float32`.
fn number(value: f64, single: bool) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = if single { format!("{:e}", value as f32) } else { format!("{value:e}") };
        return exponent(&text);
    }
    if single { format!("{:?}", Plain(value as f32)) } else { format!("{:?}", Plain(value)) }
}

/// A float formatted without an exponent, and with `.0` if it is an integer.
struct Plain<T>(T);

impl<T: std::fmt::Display> std::fmt::Debug for Plain<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.0.to_string();
        f.write_str(&text)?;
        if text.contains('.') { Ok(()) } else { f.write_str(".0") }
    }
}

fn array(tensor: &Tensor) -> String {
    let single = tensor.dtype().bits <= 32;
    if tensor.shape().is_empty() {
        return match tensor.get(0) {
            Some(Scalar::Int(value)) if tensor.dtype().is_bool() => python_bool(value),
            Some(Scalar::Int(value)) => value.to_string(),
            Some(Scalar::Float(value)) => number(value, single),
            None => String::new(),
        };
    }
    if tensor.is_empty() {
        return "[]".to_owned();
    }
    let cut = tensor.len() > THRESHOLD;
    let mut shown = Vec::new();
    visible(tensor.shape(), cut, 0, &mut shown);
    let elements: Vec<(usize, Scalar)> = shown.iter().filter_map(|at| Some((*at, tensor.get(*at)?))).collect();
    let words = words(&elements, tensor.dtype().is_bool(), single);
    let by_place: std::collections::HashMap<usize, String> = elements.iter().map(|(at, _)| *at).zip(words).collect();
    Array { shape: tensor.shape(), words: &by_place, cut }.text(0, 0, " ", WIDTH)
}

fn python_bool(value: i64) -> String {
    if value != 0 { "True" } else { "False" }.to_owned()
}

/// Returns the indices of an axis that are printed, with `None` for the omitted middle.
fn edges(extent: i64, cut: bool) -> Vec<Option<usize>> {
    let extent = extent as usize;
    match cut && extent > 2 * EDGE {
        true => (0..EDGE).map(Some).chain([None]).chain((extent - EDGE..extent).map(Some)).collect(),
        false => (0..extent).map(Some).collect(),
    }
}

/// Appends the row-major offsets of the elements that are printed.
fn visible(shape: &[i64], cut: bool, start: usize, into: &mut Vec<usize>) {
    let Some((extent, inner)) = shape.split_first() else { return into.push(start) };
    let size = inner.iter().product::<i64>() as usize;
    edges(*extent, cut).into_iter().flatten().for_each(|at| visible(inner, cut, start + at * size, into));
}

/// Formats each element, padded to a common width.
fn words(elements: &[(usize, Scalar)], is_bool: bool, single: bool) -> Vec<String> {
    let floats: Option<Vec<f64>> = elements
        .iter()
        .map(|(_, value)| match value {
            Scalar::Float(value) => Some(*value),
            Scalar::Int(_) => None,
        })
        .collect();
    let words: Vec<String> = match floats {
        Some(floats) => float_words(&floats, single),
        None => elements
            .iter()
            .map(|(_, value)| match value.as_int().unwrap_or(0) {
                value if is_bool => python_bool(value),
                value => value.to_string(),
            })
            .collect(),
    };
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.into_iter().map(|word| format!("{word:>width$}")).collect()
}

/// Formats floats as NumPy's `FloatingFormat`: either all or none have an exponent, and decimal points are aligned.
fn float_words(values: &[f64], single: bool) -> Vec<String> {
    let sizes = || values.iter().map(|value| value.abs()).filter(|size| size.is_finite() && *size != 0.0);
    let (most, least) = (sizes().fold(0.0, f64::max), sizes().fold(f64::INFINITY, f64::min));
    let with_exponent = sizes().next().is_some() && (most >= 1e8 || least < 1e-4 || most / least > 1000.0);
    let split = |value: &f64| -> (String, String, String) {
        if !value.is_finite() {
            return (number(*value, single), String::new(), String::new());
        }
        let digits = match (with_exponent, single) {
            (true, true) => format!("{:e}", *value as f32),
            (true, false) => format!("{value:e}"),
            (false, true) => (*value as f32).to_string(),
            (false, false) => value.to_string(),
        };
        let (mantissa, power) = digits.split_once('e').unwrap_or((&digits, ""));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if fraction.len() <= PRECISION {
            return (whole.to_owned(), fraction.to_owned(), power.to_owned());
        }
        let rounded = format!("{:.PRECISION$}", mantissa.parse::<f64>().unwrap_or(*value));
        let (whole, fraction) = rounded.split_once('.').unwrap_or((&rounded, ""));
        (whole.to_owned(), fraction.trim_end_matches('0').to_owned(), power.to_owned())
    };
    let parts: Vec<(String, String, String)> = values.iter().map(split).collect();
    let finite = || parts.iter().zip(values).filter(|(_, value)| value.is_finite()).map(|(part, _)| part);
    let decimals = finite().map(|(_, fraction, _)| fraction.len()).max().unwrap_or(0);
    let any_finite = finite().next().is_some();
    let joined = |((whole, fraction, power), value): (&(String, String, String), &f64)| match value.is_finite() {
        false => whole.clone(),
        true if with_exponent => exponent(&format!("{whole}.{fraction:0<decimals$}e{power}")),
        true => format!("{whole}.{fraction:<decimals$}"),
    };
    let words = parts.iter().zip(values).map(joined);
    // Finite numbers keep the trailing spaces that align their decimal points. `nan` and `inf` have none: the caller
    // pads them on the left.
    words.map(|word| if any_finite { word } else { word.trim().to_owned() }).collect()
}

/// An array that is being formatted.
struct Array<'a> {
    shape: &'a [i64],
    words: &'a std::collections::HashMap<usize, String>,
    cut: bool,
}

impl Array<'_> {
    /// Formats the subarray that begins at offset `start` and has the axes from `axis` on. Each line but the first
    /// begins with `indent`, unless it is empty. Lines have at most `width` characters, unless a single element is
    /// longer.
    fn text(&self, axis: usize, start: usize, indent: &str, width: usize) -> String {
        let Some((extent, inner)) = self.shape.get(axis..).and_then(<[i64]>::split_first) else {
            return self.words.get(&start).cloned().unwrap_or_default();
        };
        let size = inner.iter().product::<i64>() as usize;
        let places = edges(*extent, self.cut);
        let word = |place: &Option<usize>| match place {
            None => "...".to_owned(),
            Some(at) => self.text(axis + 1, start + at * size, &format!("{indent} "), width.saturating_sub(1)),
        };
        let mut text = String::new();
        if inner.is_empty() {
            let mut line = indent.to_owned();
            for (at, place) in places.iter().enumerate() {
                let word = word(place);
                if line.len() + word.len() > width.saturating_sub(1) && line.len() > indent.len() {
                    text.push_str(line.trim_end());
                    text.push('\n');
                    indent.clone_into(&mut line);
                }
                line.push_str(&word);
                if at + 1 < places.len() {
                    line.push(' ');
                }
            }
            text.push_str(&line);
        } else {
            let parts: Vec<String> = places.iter().map(|place| format!("{indent}{}", word(place))).collect();
            text = parts.join(&"\n".repeat(inner.len()));
        }
        format!("[{}]", text.get(indent.len()..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts are the output of NumPy 2.
    #[test]
    fn arrays_print_like_numpy() {
        let floats =
            |shape: &[i64], values: &[f32]| Output::Tensor(Tensor::from_f32s(shape, values).expect("a tensor"));
        let ints = |shape: &[i64], values: &[i64]| Output::Tensor(Tensor::from_i64s(shape, values).expect("a tensor"));
        for (value, wanted) in [
            (floats(&[], &[0.1]), "0.1"),
            (floats(&[3], &[1.0, 2.5, -3.25]), "[ 1.    2.5  -3.25]"),
            (floats(&[2], &[f32::NAN, 1.0]), "[nan  1.]"),
            (floats(&[2], &[1e-5, 2.55]), "[1.00e-05 2.55e+00]"),
            (floats(&[2, 2], &[1.0, 0.0, 0.0, 1.0]), "[[1. 0.]\n [0. 1.]]"),
            (ints(&[1, 2, 2], &[1, -20, 3, 4]), "[[[  1 -20]\n  [  3   4]]]"),
            (ints(&[0], &[]), "[]"),
            (ints(&[1001], &[7; 1001]), "[7 7 7 ... 7 7 7]"),
            (
                ints(&[30], &[100; 30]),
                "[100 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100\n 100 100 100 100 100 100 100 100 100 100 100 100]",
            ),
        ] {
            assert_eq!(shown(&value), wanted);
        }
    }
}
