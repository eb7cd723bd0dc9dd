//! Logical lines: finding the end of a statement.
//!
//! The end is found by a forward scan from the statement's start that does not depend on the text before it. So a part
//! of a text is split in the same way as the whole text. Inside brackets a line break ends the statement if the next
//! line cannot be its continuation ([`starts_statement`]). An unclosed bracket then breaks one statement and not the
//! rest of the file:
//!
//! ```text
//! x = R.add(a, b          # unclosed: the statement ends here, because the next
//! y = R.mul(x, x)         # line is a binding in the same column
//! ```

/// The position of a logical line. Offsets are bytes of the scanned text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogicalLine {
    /// The column of the first token, as Python counts: a tab advances to the next multiple of 8.
    pub(crate) indent: u32,
    /// The first token's start.
    pub(crate) start: usize,
    /// The offset after the code. Blanks may precede it; blanks or a comment may follow.
    pub(crate) end: usize,
    /// The line start of the next statement, or the text's end.
    pub(crate) next: usize,
}

/// The position where a string literal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StringEnd {
    /// The offset after the closing quotes; if there are none, where the scan stopped.
    pub(crate) offset: usize,
    /// Whether the string has closing quotes.
    pub(crate) closed: bool,
}

/// Finds the end of the string whose first quote is at `at`. Without closing quotes, a string in single quote
/// characters ends at the end of its line, and a triple-quoted one at the text's end.
pub(crate) fn string_end(bytes: &[u8], at: usize, quote: u8) -> StringEnd {
    if is_triple(bytes, at, quote) {
        triple_end(bytes, at + 3, quote, None)
    } else {
        line_string_end(bytes, at + 1, quote)
    }
}

fn is_triple(bytes: &[u8], at: usize, quote: u8) -> bool {
    bytes.get(at..at + 3) == Some(&[quote; 3])
}

fn line_string_end(bytes: &[u8], mut at: usize, quote: u8) -> StringEnd {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += escape_width(bytes, at),
            b'\n' | b'\r' => return StringEnd { offset: at, closed: false },
            _ if byte == quote => return StringEnd { offset: at + 1, closed: true },
            _ => at += 1,
        }
    }
    StringEnd { offset: bytes.len(), closed: false }
}

/// Finds the end of a triple-quoted string. With `limit`, the string also ends before a line that starts a decorator,
/// function or class in a column of at most `limit`, so that missing quotes do not consume the rest of the file.
fn triple_end(bytes: &[u8], mut at: usize, quote: u8, limit: Option<u32>) -> StringEnd {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += escape_width(bytes, at),
            _ if byte == quote && is_triple(bytes, at, quote) => return StringEnd { offset: at + 3, closed: true },
            b'\n' | b'\r' => {
                at += newline_width(bytes, at);
                if limit.is_some_and(|limit| starts_item(bytes, at, limit)) {
                    return StringEnd { offset: at, closed: false };
                }
            }
            _ => at += 1,
        }
    }
    StringEnd { offset: bytes.len(), closed: false }
}

/// The number of bytes of a backslash and the character after it. A line break counts as one character.
fn escape_width(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at + 1) {
        None => 1,
        Some(b'\n' | b'\r') => 1 + newline_width(bytes, at + 1),
        Some(byte) if byte.is_ascii() => 2,
        // The first byte of a multi-byte character. Its other bytes are no quotes and no line breaks.
        Some(_) => 1,
    }
}

fn newline_width(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at..at + 2) == Some(b"\r\n") { 2 } else { 1 }
}

/// Whether the line at `at` starts a decorator, function or class in a column of at most `limit`.
fn starts_item(bytes: &[u8], at: usize, limit: u32) -> bool {
    let (column, at) = indentation(bytes, at);
    let rest = bytes.get(at..).unwrap_or_default();
    column <= limit && (rest.starts_with(b"@") || rest.starts_with(b"def ") || rest.starts_with(b"class "))
}

/// Returns the column and the offset of the first character that is not a blank. A byte order mark counts as a blank of
/// width 0 at any position, because a segment does not know whether it is at the file's start.
pub(crate) fn indentation(bytes: &[u8], mut at: usize) -> (u32, usize) {
    let mut column = 0u32;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' => column = column.saturating_add(1),
            b'\t' => column = (column / 8).saturating_add(1).saturating_mul(8),
            b'\x0c' => column = 0,
            0xEF if bytes.get(at..at + BOM.len()) == Some(BOM) => at += BOM.len() - 1,
            _ => break,
        }
        at += 1;
    }
    (column, at)
}

const BOM: &[u8] = "\u{feff}".as_bytes();

/// Returns the line start of the first statement at or after the line start `at`, skipping blank lines and comments.
pub(crate) fn skip_trivia(bytes: &[u8], at: usize) -> usize {
    let mut line = at;
    loop {
        let (_, mut at) = indentation(bytes, line);
        if bytes.get(at) == Some(&b'#') {
            at = line_end(bytes, at);
        }
        match bytes.get(at) {
            None => return bytes.len(),
            Some(b'\n' | b'\r') => line = at + newline_width(bytes, at),
            Some(_) => return line,
        }
    }
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len())
}

/// Returns the number of line breaks, where `\r\n` is one, and whether all bytes are ASCII.
pub(crate) fn count_newlines(text: &str) -> (u32, bool) {
    let bytes = text.as_bytes();
    let line_feeds = memchr::memchr_iter(b'\n', bytes).count();
    let returns = memchr::memchr_iter(b'\r', bytes).count();
    let pairs = if returns == 0 { 0 } else { bytes.windows(2).filter(|pair| pair == b"\r\n").count() };
    ((line_feeds + returns - pairs) as u32, text.is_ascii())
}

/// Returns the offset after each line break.
pub(crate) fn line_starts(text: &str) -> Box<[u32]> {
    let bytes = text.as_bytes();
    let breaks = bytes.iter().enumerate().filter(|(at, byte)| match byte {
        b'\n' => true,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    });
    breaks.map(|(at, _)| at as u32 + 1).collect()
}

/// The bytes that the scan has to examine. All others are skipped.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let special = b"\n\r\"'#\\()[]{}";
    let mut i = 0;
    while i < special.len() {
        table[special[i] as usize] = true;
        i += 1;
    }
    table
};

/// Finds the end of the logical line whose physical line starts at `line_start`, which must be the start of a
/// statement. With `bounded`, an unclosed triple-quoted string ends before the next item. Python text outside TVMScript
/// may contain items in strings, and is scanned without `bounded`.
pub(crate) fn logical_line(bytes: &[u8], line_start: usize, bounded: bool) -> LogicalLine {
    let (indent, start) = indentation(bytes, line_start);
    let mut depth = 0u32;
    let mut at = start;
    // The start of the comment on the current physical line.
    let mut comment = None;
    let ends = |end: usize, next: usize| LogicalLine { indent, start, end, next };
    while let Some(&byte) = bytes.get(at) {
        if !SPECIAL[byte as usize] {
            at += 1;
            continue;
        }
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'#' => {
                comment = Some(at);
                at = line_end(bytes, at) - 1;
            }
            b'\\' => at += escaped_newline_width(bytes, at),
            b'"' | b'\'' if is_triple(bytes, at, byte) => {
                let end = triple_end(bytes, at + 3, byte, bounded.then_some(indent));
                if !end.closed {
                    return ends(end.offset, end.offset);
                }
                at = end.offset - 1;
            }
            b'"' | b'\'' => at = line_string_end(bytes, at + 1, byte).offset - 1,
            _ => {
                let after = at + newline_width(bytes, at);
                let next = skip_trivia(bytes, after);
                let end = comment.unwrap_or(at);
                if depth == 0
                    || starts_statement(bytes, next, indent, &bytes[start..end])
                    || ends_header(&bytes[start..end])
                    || (first_word(&bytes[start..end]).0 != b"def" && starts_annotated_binding(bytes, next))
                {
                    return ends(end, next);
                }
                comment = None;
                at = next - 1;
            }
        }
        at += 1;
    }
    ends(comment.unwrap_or(bytes.len()), bytes.len())
}

/// The number of bytes of the line break after a backslash; 0 if none follows.
fn escaped_newline_width(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at + 1) {
        Some(b'\n' | b'\r') => newline_width(bytes, at + 1),
        _ => 0,
    }
}

/// Calls that occur only as statements, never as arguments: for example `R.output(x)`.
const STATEMENT_CALLS: [&[u8]; 5] = [b".output(", b".func_attr(", b".evaluate(", b".reads(", b".writes("];

/// Whether the physical line at `line_start`, inside the open brackets of a statement indented by `indent`, starts a
/// new statement. `before` is the statement so far. In Python, text inside brackets may continue in any column. So
/// after a comma, an opening bracket or an operator, only a line that cannot be an argument starts a statement;
/// otherwise a line further to the left than the statement does so too.
fn starts_statement(bytes: &[u8], line_start: usize, indent: u32, before: &[u8]) -> bool {
    let (column, start) = indentation(bytes, line_start);
    // INVARIANT: a line's end is not before its start, nor is `word` empty where it is indexed below.
    let line = &bytes[start..line_end(bytes, start)];
    let (word, rest) = first_word(line);
    match word {
        b"def" | b"class" | b"with" | b"return" | b"pass" | b"assert" | b"import" | b"while" | b"try" | b"raise"
        | b"del" | b"elif" | b"break" | b"continue" | b"global" | b"nonlocal" => true,
        _ if column > indent => false,
        b"" => line.first() == Some(&b'@'),
        b"from" => true,
        b"if" | b"for" | b"else" | b"async" => last_code_byte(rest) == Some(b':'),
        b"and" | b"or" | b"in" | b"is" | b"not" | b"lambda" | b"await" | b"yield" | b"None" | b"True" | b"False" => {
            false
        }
        _ if word[0].is_ascii_digit() => false,
        _ if STATEMENT_CALLS.iter().any(|call| rest.starts_with(call)) => true,
        _ if wants_operand(before) => LineShape::of(rest).binds_after_comma(),
        _ => column < indent || LineShape::of(rest).binds(),
    }
}

/// Whether the bracketed text so far cannot end here, because it ends with a comma, an opening bracket or an operator.
fn wants_operand(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    match before.last() {
        None => false,
        Some(&last) if is_word_byte(last) => {
            let word = before.rsplit(|byte| !is_word_byte(*byte)).next().unwrap_or_default();
            matches!(word, b"and" | b"or" | b"not" | b"in" | b"is" | b"if" | b"else" | b"for" | b"lambda" | b"await")
        }
        Some(last) => !matches!(last, b')' | b']' | b'}' | b'"' | b'\''),
    }
}

/// Whether the physical line at `line_start` has the form `name: type = …`, in any column. Inside brackets only
/// parameters of a `def` have this form.
fn starts_annotated_binding(bytes: &[u8], line_start: usize) -> bool {
    let (_, start) = indentation(bytes, line_start);
    let line = bytes.get(start..line_end(bytes, start)).unwrap_or_default();
    let (word, rest) = first_word(line);
    let Some(annotation) = rest.strip_prefix(b":") else { return false };
    !word.is_empty() && word != b"lambda" && annotation.first() != Some(&b'=') && LineShape::of(annotation).binds()
}

/// Whether a block header with open brackets ends with this line, because its last character is a colon. A string
/// before the colon may be the key of a dict, and does not count.
fn ends_header(statement: &[u8]) -> bool {
    let Some(before) = statement.trim_ascii_end().strip_suffix(b":") else { return false };
    let header = matches!(first_word(statement).0, b"def" | b"class" | b"with" | b"for" | b"while" | b"if" | b"elif");
    header && !before.ends_with(b"\"") && !before.ends_with(b"'")
}

fn first_word(line: &[u8]) -> (&[u8], &[u8]) {
    line.split_at(line.iter().position(|&byte| !is_word_byte(byte)).unwrap_or(line.len()))
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// The form of a line after its first word.
#[derive(Clone, Copy, Debug, Default)]
struct LineShape {
    /// It has the form `name: …`.
    declares: bool,
    /// It has the form `name = …` or `name[i], other = …`. `name=value` without blanks is an argument.
    assigns: bool,
    /// It closes a bracket that it does not open.
    closes: bool,
    /// It ends with a comma outside brackets of this line.
    has_last_comma: bool,
}

impl LineShape {
    fn of(rest: &[u8]) -> LineShape {
        let after = rest.trim_ascii_start();
        let declares = after.first() == Some(&b':') && after.get(1) != Some(&b'=');
        let mut shape = LineShape { declares, ..LineShape::default() };
        let mut depth = 0u32;
        // Only the first `=` outside brackets can be an assignment.
        let mut is_decided = false;
        let mut at = 0;
        while let Some(&byte) = rest.get(at) {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' if depth == 0 => (shape.closes, is_decided) = (true, true),
                b')' | b']' | b'}' => depth -= 1,
                b'#' => break,
                b'"' | b'\'' => at = line_string_end(rest, at + 1, byte).offset - 1,
                b'=' if depth == 0 => {
                    shape.assigns |=
                        !is_decided && rest.get(at + 1) != Some(&b'=') && at > 0 && rest.get(at - 1) == Some(&b' ');
                    is_decided = true;
                }
                b'!' | b'<' | b'>' | b':' if rest.get(at + 1) == Some(&b'=') => at += 1,
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                shape.has_last_comma = byte == b',' && depth == 0;
            }
            at += 1;
        }
        shape
    }

    /// Whether the line is a statement, if the line before it is complete.
    fn binds(self) -> bool {
        self.declares || self.assigns
    }

    /// Whether the line is a statement after a line that ends with a comma or an operator. Parameters and arguments
    /// never have this form.
    fn binds_after_comma(self) -> bool {
        self.assigns && !self.closes && !self.has_last_comma
    }
}

/// The last byte of a line that is neither a blank nor in a comment.
fn last_code_byte(line: &[u8]) -> Option<u8> {
    let mut at = 0;
    let mut last = None;
    while let Some(&byte) = line.get(at) {
        match byte {
            b'#' => break,
            b'"' | b'\'' => at = line_string_end(line, at + 1, byte).offset - 1,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = Some(byte);
        }
        at += 1;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::{logical_line, skip_trivia};

    fn lines(text: &str) -> Vec<&str> {
        let mut at = skip_trivia(text.as_bytes(), 0);
        let mut lines = Vec::new();
        while at < text.len() {
            let line = logical_line(text.as_bytes(), at, true);
            assert!(line.next > at, "the scan goes forward");
            lines.push(&text[line.start..line.end]);
            at = line.next;
        }
        lines
    }

    #[test]
    fn brackets_strings_and_backslashes_join_lines() {
        assert_eq!(lines("a = (1,\n  2)\nb\\\n = 3\n"), ["a = (1,\n  2)", "b\\\n = 3"]);
        assert_eq!(lines("x = '(' # (\ny = \"\"\"\n(\n\"\"\"\n"), ["x = '(' ", "y = \"\"\"\n(\n\"\"\""]);
        assert_eq!(lines("\u{feff}a\r\n\r\n# c\r\nb\rc"), ["a", "b", "c"]);
        assert_eq!(lines("a\n \u{feff} b"), ["a", "b"]);
    }

    #[test]
    fn an_unclosed_bracket_ends_with_its_statement() {
        assert_eq!(lines("  x = f(a,\n  y: T = g(b)\n"), ["x = f(a,", "y: T = g(b)"]);
        assert_eq!(lines("  x = f(a,\n  R.output(x)\n"), ["x = f(a,", "R.output(x)"]);
        assert_eq!(lines("    x = f(\nreturn x"), ["x = f(", "return x"]);
        assert_eq!(
            lines("def f(x: T((1, 2),\n    y: T) -> T:\n    z = x"),
            ["def f(x: T((1, 2),\n    y: T) -> T:", "z = x"]
        );
        assert_eq!(lines("def f(x\n    return x"), ["def f(x", "return x"]);
        assert_eq!(lines("x = f(\na=1,\n)"), ["x = f(\na=1,\n)"]);
        assert_eq!(lines("x = (\n  y = 1\n)"), ["x = (\n  y = 1\n)"]);
        assert_eq!(lines("A[0] = (1\nA[1] = 2"), ["A[0] = (1", "A[1] = 2"]);
    }

    #[test]
    fn brackets_at_any_column_are_one_line() {
        for whole in [
            "    def f(x: T,\n    y: T,\n    ) -> T:",
            "    def f(x: T,\ny: T[\n2],\nz: T\n) -> T:",
            "    y = R.add(x,\n  R.tanh(x))",
            "    y = R.add(\nx,  # one\n\n# two\n  x,\n)",
            "    y = f(\naxis = 1,\nkeepdims = True)",
            "    @T.prim_func(\nprivate=True\n)",
            "class A(\nB,\n):",
            "    y = [a\n+ b,\nc]",
            "    y = {a: 1,\nb: 2,\nc: 3}",
            "    y = (a +\nb)",
            "    y = (a and\nb)",
            "    y = f(\"a\"\n\"b\",\n1)",
        ] {
            assert_eq!(lines(whole), [whole.trim_start()]);
        }
    }

    #[test]
    fn an_unclosed_bracket_ends_further_left() {
        assert_eq!(lines("    x = f(a\nM.show()"), ["x = f(a", "M.show()"]);
        assert_eq!(lines("    x = f(a,\n  y = g(b,\n  c)"), ["x = f(a,", "y = g(b,\n  c)"]);
        assert_eq!(lines("    x = f(\n    T.evaluate(x)"), ["x = f(", "T.evaluate(x)"]);
        assert_eq!(lines("    x = f(a,\n  @R.function\n  def g():"), ["x = f(a,", "@R.function", "def g():"]);
    }

    #[test]
    fn an_unclosed_docstring_ends_before_the_next_item() {
        assert_eq!(lines("  x = \"\"\"doc\n  y\n  @R.function\n  z"), ["x = \"\"\"doc\n  y\n", "@R.function", "z"]);
        assert_eq!(lines("x = 'open\ny"), ["x = 'open", "y"]);
    }
}
