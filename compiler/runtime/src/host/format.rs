//! `R.print` and `R.assert_op`, with Python format strings (TVM `python/tvm/relax/op/base.py`).

use super::Arguments;
use super::show::shown;
use crate::value::Output;
use rx_tensor::Scalar;

/// Formats `print(values, format)`: the format string with the values inserted, or the values alone if there is none.
pub(super) fn print(arguments: &Arguments) -> Result<String, String> {
    let values = variadic(arguments.at(0));
    match arguments.text(1) {
        "" => Ok(values.iter().map(shown).collect::<Vec<_>>().join(" ")),
        format => filled(format, values),
    }
}

/// Checks `assert_op(condition, format_args, format)`. Returns an empty tuple if the condition is true, otherwise an
/// error with the formatted message.
pub(super) fn assert_op(arguments: &Arguments) -> Result<Output, String> {
    let holds = match arguments.at(0) {
        Output::Scalar(value) => value.as_float() != 0.0,
        Output::Tensor(tensor) if tensor.shape().is_empty() && tensor.dtype().is_bool() => {
            tensor.get(0).is_some_and(|value| value.as_float() != 0.0)
        }
        other => return Err(format!("the condition must be a boolean scalar, it is {}", shown(other))),
    };
    if holds {
        return Ok(Output::Tuple(Vec::new()));
    }
    // The values may be given as a single tuple.
    let values = match variadic(arguments.at(1)) {
        [Output::Tuple(values)] => values,
        values => values,
    };
    let said = match (arguments.text(2), values) {
        ("", []) => return Err("the assertion failed".to_owned()),
        ("", values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        (format, values) => filled(format, values)?,
    };
    Err(format!("the assertion failed: {said}"))
}

fn variadic(value: &Output) -> &[Output] {
    match value {
        Output::Tuple(values) => values,
        Output::Null => &[],
        other => std::slice::from_ref(other),
    }
}

/// Replaces `{}`, `{0}` and `{:…}` in a format string by values. `{{` and `}}` produce single braces.
fn filled(format: &str, values: &[Output]) -> Result<String, String> {
    let mut text = String::with_capacity(format.len());
    let mut rest = format;
    let mut next = 0;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            text.push_str(&from[..1]);
            rest = after;
            continue;
        }
        let field = from.strip_prefix('{').and_then(|inside| inside.split_once('}'));
        let Some((field, after)) = field else {
            return Err(format!("the format string {format:?} has a brace without its other"));
        };
        let (place, spec) = field.split_once(':').unwrap_or((field, ""));
        let place = place.split(['!']).next().unwrap_or(place);
        let index = match place {
            "" => {
                next += 1;
                next - 1
            }
            place => place
                .parse()
                .map_err(|_| format!("the format string {format:?} has the field {place:?}, which is no number"))?,
        };
        let value = values.get(index).ok_or_else(|| {
            format!("the format string {format:?} asks for value {index}, {} are given", values.len())
        })?;
        text.push_str(&formatted(value, spec)?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

/// A Python format specification, of the form `[[fill]align][sign][0][width][.precision][type]`. For example, `04d`
/// pads an integer with zeros to four characters.
#[derive(Default)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    plus: bool,
    width: usize,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Spec {
    fn parse(text: &str) -> Option<Spec> {
        let mut spec = Spec::default();
        let is_align = |c: char| matches!(c, '<' | '>' | '^' | '=');
        let chars: Vec<char> = text.chars().collect();
        let mut rest = &chars[..];
        match rest {
            [fill, align, after @ ..] if is_align(*align) => {
                (spec.fill, spec.align, rest) = (Some(*fill), Some(*align), after);
            }
            [align, after @ ..] if is_align(*align) => (spec.align, rest) = (Some(*align), after),
            _ => {}
        }
        if let [sign @ ('+' | '-' | ' '), after @ ..] = rest {
            (spec.plus, rest) = (*sign == '+', after);
        }
        if let ['0', after @ ..] = rest {
            spec.fill = spec.fill.or(Some('0'));
            spec.align = spec.align.or(Some('='));
            rest = after;
        }
        spec.width = number(&mut rest)?.unwrap_or(0);
        if let ['.', after @ ..] = rest {
            rest = after;
            spec.precision = Some(number(&mut rest)??);
        }
        match rest {
            [] => Some(spec),
            [kind] => Some(Spec { kind: Some(*kind), ..spec }),
            _ => None,
        }
    }

    fn padded(&self, text: String, usual: char) -> String {
        let missing = self.width.saturating_sub(text.chars().count());
        let fill = |count: usize| std::iter::repeat_n(self.fill.unwrap_or(' '), count).collect::<String>();
        match self.align.unwrap_or(usual) {
            '<' => text + &fill(missing),
            '^' => fill(missing / 2) + &text + &fill(missing - missing / 2),
            '=' => {
                let sign = text.len() - text.trim_start_matches(['+', '-']).len();
                let (sign, digits) = text.split_at(sign);
                format!("{sign}{}{digits}", fill(missing))
            }
            _ => fill(missing) + &text,
        }
    }
}

/// Removes leading digits from `rest` and parses them. The inner `None` means that there are none, the outer `None`
/// that the number exceeds 1000, the largest width or precision that is supported.
fn number(rest: &mut &[char]) -> Option<Option<usize>> {
    let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
    let (text, after) = rest.split_at(digits);
    *rest = after;
    let text: String = text.iter().collect();
    if text.is_empty() { Some(None) } else { text.parse().ok().filter(|number| *number <= 1000).map(Some) }
}

/// Formats a value according to a format specification.
fn formatted(value: &Output, spec: &str) -> Result<String, String> {
    let wrong = || format!("the format specification {spec:?} cannot be used for {}", shown(value));
    let parsed = Spec::parse(spec).ok_or_else(wrong)?;
    let number = match value {
        Output::Scalar(scalar) => Some(*scalar),
        Output::Tensor(tensor) if tensor.shape().is_empty() && !tensor.dtype().is_bool() => tensor.get(0),
        _ => None,
    };
    let signed = |text: String| if parsed.plus && !text.starts_with('-') { format!("+{text}") } else { text };
    let text = match (parsed.kind, number) {
        (None | Some('s'), _) if parsed.precision.is_none() => {
            let usual = if number.is_some() { '>' } else { '<' };
            return Ok(parsed.padded(signed_if(number.is_some(), shown(value), &signed), usual));
        }
        (Some('d'), Some(Scalar::Int(value))) => value.to_string(),
        (Some('x'), Some(Scalar::Int(value))) => {
            format!("{}{:x}", if value < 0 { "-" } else { "" }, value.unsigned_abs())
        }
        (Some('b'), Some(Scalar::Int(value))) => {
            format!("{}{:b}", if value < 0 { "-" } else { "" }, value.unsigned_abs())
        }
        (Some('f' | 'F'), Some(value)) => format!("{:.*}", parsed.precision.unwrap_or(6), value.as_float()),
        (Some('e'), Some(value)) => exponent(&format!("{:.*e}", parsed.precision.unwrap_or(6), value.as_float())),
        (Some('%'), Some(value)) => format!("{:.*}%", parsed.precision.unwrap_or(6), value.as_float() * 100.0),
        (Some('g') | None, Some(value)) => general(value.as_float(), parsed.precision.unwrap_or(6).max(1)),
        _ => return Err(wrong()),
    };
    Ok(parsed.padded(signed(text), '>'))
}

fn signed_if(is_number: bool, text: String, signed: &dyn Fn(String) -> String) -> String {
    if is_number { signed(text) } else { text }
}

/// Converts a Rust exponent to Python's form: `1e-5` becomes `1e-05`.
pub(super) fn exponent(text: &str) -> String {
    let Some((mantissa, exponent)) = text.split_once('e') else { return text.to_owned() };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// Formats a number as `%g`: with `precision` significant digits, without trailing zeros. If its decimal exponent is
/// below −4 or at least `precision`, the number is written with an exponent.
fn general(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        return shown(&Output::Scalar(Scalar::Float(value)));
    }
    let scientific = format!("{:.*e}", precision - 1, value);
    let power: i64 = scientific.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if power < -4 || power >= precision as i64 {
        let (mantissa, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        return exponent(&format!("{}e{power}", trimmed(mantissa)));
    }
    let decimals = (precision as i64 - 1 - power).max(0) as usize;
    trimmed(&format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_strings_follow_python() {
        let values = [Output::Scalar(Scalar::Int(7)), Output::Scalar(Scalar::Float(2.5)), Output::String("a".into())];
        let filled = |format: &str| super::filled(format, &values);
        for (format, wanted) in [
            ("x {} y {} {}", "x 7 y 2.5 a"),
            ("{1} {0} {0}", "2.5 7 7"),
            ("{{{}}}", "{7}"),
            ("{:04d}|{:.3f}|{:>3}", "0007|2.500|  a"),
            ("{0:<4}|{0:+d}|{1:e}|{1:g}", "7   |+7|2.500000e+00|2.5"),
            ("{2:*^5}|{0:x}", "**a**|7"),
        ] {
            assert_eq!(filled(format).as_deref(), Ok(wanted), "{format}");
        }
        for format in ["{", "}", "{9}", "{:d} {:d}", "{:99999}", "{name}", "{2:.1f}"] {
            assert!(filled(format).is_err(), "{format}");
        }
    }
}
