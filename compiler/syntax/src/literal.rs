//! Evaluation of Python literals: strings, integers and floats.

use std::borrow::Cow;

/// The value of one string literal, given with prefix and quotes. `None` for bytes, f-strings, unclosed strings and
/// invalid escapes, and for characters by name (`\N{…}`), which are not supported.
pub(crate) fn string(literal: &str) -> Option<Cow<'_, str>> {
    let quote = literal.find(['"', '\''])?;
    let (prefix, quoted) = literal.split_at(quote);
    if prefix.contains(['b', 'B', 'f', 'F']) {
        return None;
    }
    let mark = quoted.get(..1)?;
    let inner = ["\"\"\"", "'''"]
        .into_iter()
        .filter(|triple| triple.starts_with(mark))
        .find_map(|triple| quoted.strip_prefix(triple)?.strip_suffix(triple))
        .or_else(|| quoted.strip_prefix(mark)?.strip_suffix(mark))?;
    if prefix.contains(['r', 'R']) || !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    unescape(inner).map(Cow::Owned)
}

fn unescape(inner: &str) -> Option<String> {
    let mut value = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        // INVARIANT: offsets are at ASCII characters that were found in `rest`, or one after them.
        value.push_str(&rest[..at]);
        let mut chars = rest[at + 1..].chars();
        let escaped = chars.next()?;
        rest = chars.as_str();
        let simple = match escaped {
            '\r' => {
                rest = rest.strip_prefix('\n').unwrap_or(rest);
                continue;
            }
            '\n' => continue,
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'v' => '\x0b',
            '\\' | '\'' | '"' => escaped,
            'x' => code_point(&mut rest, 2, 16)?,
            'u' => code_point(&mut rest, 4, 16)?,
            'U' => code_point(&mut rest, 8, 16)?,
            'N' => return None,
            '0'..='7' => {
                rest = &inner[inner.len() - rest.len() - 1..];
                let digits = rest.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                code_point(&mut rest, digits, 8)?
            }
            // Python keeps the backslash of an unknown escape.
            other => {
                value.push('\\');
                other
            }
        };
        value.push(simple);
    }
    value.push_str(rest);
    Some(value)
}

/// Parses `digits` digits from the start of `rest` as a code point, and removes them.
fn code_point(rest: &mut &str, digits: usize, radix: u32) -> Option<char> {
    let (number, after) = rest.split_at_checked(digits)?;
    if !number.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    *rest = after;
    char::from_u32(u32::from_str_radix(number, radix).ok()?)
}

/// The value of an integer literal.
pub(crate) fn integer(literal: &str) -> Option<i128> {
    let digits: Cow<'_, str> =
        if literal.contains('_') { Cow::Owned(literal.replace('_', "")) } else { Cow::Borrowed(literal) };
    let radix = |prefix: &str| digits.get(..2).is_some_and(|head| head.eq_ignore_ascii_case(prefix));
    let (text, radix) = match () {
        () if radix("0x") => (digits.get(2..)?, 16),
        () if radix("0o") => (digits.get(2..)?, 8),
        () if radix("0b") => (digits.get(2..)?, 2),
        () => (&*digits, 10),
    };
    i128::from_str_radix(text, radix).ok()
}

/// The value of a float literal.
pub(crate) fn float(literal: &str) -> Option<f64> {
    if literal.contains('_') { literal.replace('_', "").parse().ok() } else { literal.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::{float, integer, string};

    #[test]
    fn strings_read_as_python_reads_them() {
        assert_eq!(string(r#""NCHW""#).as_deref(), Some("NCHW"));
        assert_eq!(string(r#"'a\n\x41\u00e9\101\'\q'"#).as_deref(), Some("a\nAéA'\\q"));
        assert_eq!(string(r#"r"a\n""#).as_deref(), Some(r"a\n"));
        assert_eq!(string("\"\"\"a\"b\"\"\"").as_deref(), Some("a\"b"));
        assert_eq!(string("''").as_deref(), Some(""));
        for none in ["b'x'", "f'{x}'", "'open", "'\\x4'", "'\\ud800'", "'"] {
            assert_eq!(string(none), None, "{none}");
        }
    }

    #[test]
    fn numbers_read_as_python_reads_them() {
        assert_eq!(integer("1_000"), Some(1000));
        assert_eq!(integer("0xFF"), Some(255));
        assert_eq!(integer("9".repeat(60).as_str()), None);
        assert_eq!(float("1e-3"), Some(0.001));
        assert_eq!(float("1."), Some(1.0));
        assert_eq!(float("2j"), None);
    }
}
