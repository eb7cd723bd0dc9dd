//! Prim_funcs that are printed as in the source, with symbols renamed that the file declares as well.
//!
//! TVM's parser rejects `n = T.int64()` in a prim_func whose header uses `n`, if the file has `n = TypeVar("n")`. In
//! such a prim_func `n` becomes `n_1`:
//!
//! ```text
//! def copy(A: T.Buffer(("n",), "float32")):   →   def copy(A: T.Buffer(("n_1",), "float32")):
//!     n = T.int64()                                   n_1 = T.int64()
//! ```

use super::rename;
use rx_base::Name;
use std::borrow::Cow;

/// Returns the text of a prim_func with every symbol renamed that clashes with one of `declared`.
pub(super) fn with_distinct_symbols<'t>(text: &'t str, declared: &[Name]) -> Cow<'t, str> {
    let mut text = Cow::Borrowed(text);
    for symbol in declared {
        if let Some(renamed) = renamed(&text, symbol) {
            text = Cow::Owned(renamed);
        }
    }
    text
}

/// Renames `symbol` if the header of the prim_func uses it and the body declares it; `None` otherwise.
fn renamed(text: &str, symbol: &str) -> Option<String> {
    let is_declaration = |line: &str| {
        let value = line.trim().strip_prefix(symbol).map(str::trim_start).and_then(|rest| rest.strip_prefix('='));
        value.is_some_and(|value| value.trim_start().starts_with("T.int"))
    };
    text.lines().any(is_declaration).then_some(())?;
    let (header, body) = text.split_at(header_end(text)?);
    words(header).any(|word| word == symbol).then_some(())?;
    let own = (1..).map(|number| format!("{symbol}_{number}")).find(|own| !words(text).any(|word| word == own))?;
    // The header is changed inside string literals as well, because dims are quoted there.
    let header = with_word(header, symbol, &own);
    Some(header + &rename(body, |name, _| (name == symbol).then(|| own.clone())))
}

/// Returns the byte offset after the colon that ends the header of a function.
fn header_end(text: &str) -> Option<usize> {
    let start = text.find("def ")?;
    let mut depth = 0i64;
    let colon = text.get(start..)?.char_indices().find(|(_, c)| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        *c == ':' && depth == 0
    });
    colon.map(|(at, _)| start + at + 1)
}

fn is_part(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_part(c)).filter(|word| !word.is_empty())
}

/// Replaces whole occurrences of `word` with `other`, except those after a dot, which are attributes.
fn with_word(text: &str, word: &str, other: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, found) = rest.split_at(at);
        let after = found.get(word.len()..).unwrap_or_default();
        out.push_str(before);
        let is_whole = !out.ends_with(|c| is_part(c) || c == '.') && !after.starts_with(is_part);
        out.push_str(if is_whole { other } else { word });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::with_distinct_symbols;
    use rx_base::name::name;

    const COPY: &str = "@T.prim_func(private=True, s_tir=True)
def copy(A: T.Buffer((\"n\",), \"float32\"), B: T.Buffer((\"n * 2\",), \"float32\")):
    n = T.int64()
    for i in range(n):
        with T.sblock(\"n\"):
            vi = T.axis.spatial(n, i)
            T.reads(A[vi])  # n \"of A
            T.sblock_attr({'n': 1})
            B[vi] = A[vi] + x.n
";

    #[test]
    fn symbol_that_the_file_declares_is_renamed() {
        let text = with_distinct_symbols(COPY, &[name("n")]);
        assert!(text.contains("A: T.Buffer((\"n_1\",)") && text.contains("(\"n_1 * 2\",)"), "{text}");
        assert!(text.contains("    n_1 = T.int64()\n    for i in range(n_1):"), "{text}");
        assert!(text.contains("T.sblock(\"n\")") && text.contains("x.n\n"), "{text}");
        assert!(text.contains("# n \"of A\n") && text.contains("{'n': 1}"), "{text}");
    }

    #[test]
    fn symbol_that_the_header_does_not_name_stays() {
        assert_eq!(with_distinct_symbols(COPY, &[name("m")]), COPY);
        let handle = COPY.replace("\"n\"", "4").replace("\"n * 2\"", "8");
        assert_eq!(with_distinct_symbols(&handle, &[name("n")]), handle);
    }
}
