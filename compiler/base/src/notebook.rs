//! The code cells of a Jupyter notebook as one text, which is parsed as one Python document.
//!
//! Cells are joined by lines that hold [`SEPARATOR`], a comment that no cell contains, so that the cells can be found
//! again after edits. IPython's syntax (`%magic`, `!command`, `help?`) is masked before parsing:
//!
//! ```text
//! %matplotlib inline          #.atplotlib inline      (`.` is a control character)
//! x = 1                       x = 1
//! #<separator>                #<separator>
//! y = x                       y = x
//! ```
//!
//! A string in three quotes that is open at the end of its cell would contain the next cells too. It is masked as a
//! string in one quote that is open at the end of its first line, which the parser reports.
//!
//! A masked text has the same length and the same lines, so positions in it are positions in the joined text.

use crate::fix::Edit;

/// The line between two cells.
pub const SEPARATOR: &str = "#\u{1c}";

/// The text that replaces the start of a line of IPython's syntax; no cell contains it.
pub const MASK: &str = "#\u{1d}";

/// Cell magics whose cell is Python.
const PYTHON_MAGICS: [&str; 9] = ["capture", "debug", "ipytest", "prun", "pypy", "python", "python3", "time", "timeit"];

/// Joins cells to one text. Each cell gets a line end, so that the text is complete even if a cell does not end in one.
pub fn join<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for (index, cell) in cells.into_iter().enumerate() {
        if index > 0 {
            text.extend([SEPARATOR, "\n"]);
        }
        text.extend([cell, "\n"]);
    }
    text
}

/// Splits a joined text into its cells; the inverse of [`join`].
pub fn split(text: &str) -> Vec<&str> {
    let mut cells = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if is_separator(line) {
            cells.push(text.get(start..at).unwrap_or_default());
            start = at + line.len();
        }
        at += line.len();
    }
    cells.push(text.get(start..).unwrap_or_default());
    cells.into_iter().map(|cell| cell.strip_suffix('\n').unwrap_or(cell)).collect()
}

/// Removes the lines between cells and the masked lines from a masked text without an open string, to print it.
pub fn without_marks(text: &str) -> String {
    let is_mark = |line: &str| line.starts_with(SEPARATOR) || line.starts_with(MASK);
    text.split_inclusive('\n').filter(|line| !is_mark(line.trim_start())).collect()
}

fn is_separator(line: &str) -> bool {
    line.trim_end_matches(['\n', '\r']) == SEPARATOR
}

/// The lines of a joined text at which its cells begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    /// The number of the first line of each cell, from 0, in order; never empty.
    starts: Vec<u32>,
}

impl Cells {
    /// Finds the cells of a joined text.
    pub fn new(text: &str) -> Cells {
        let separators = text.split_inclusive('\n').zip(1..).filter(|(line, _)| is_separator(line));
        let starts = std::iter::once(0).chain(separators.map(|(_, next)| next));
        Cells { starts: starts.collect() }
    }

    /// Returns the index of the cell that contains a line of the text, and the line in the cell; all count from 0. The
    /// separator after a cell counts as its last line.
    pub fn locate(&self, line: u32) -> (usize, u32) {
        let index = self.starts.partition_point(|start| *start <= line).saturating_sub(1);
        (index, line - self.start(index).min(line))
    }

    /// Returns the line of the text at which a cell begins; 0 if there is no such cell.
    pub fn start(&self, index: usize) -> u32 {
        self.starts.get(index).copied().unwrap_or_default()
    }

    /// Returns the line of the text after the last line of a cell: that of its separator; `None` for the last cell.
    pub fn end(&self, index: usize) -> Option<u32> {
        self.starts.get(index + 1).map(|next| next - 1)
    }
}

/// A joined text in which lines of IPython's syntax are comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masked {
    /// The text, as long as the joined text.
    pub text: String,
    /// The replaced start of each masked line, in order.
    hidden: Vec<String>,
}

impl Masked {
    /// Masks a joined text.
    pub fn new(text: &str) -> Masked {
        let mut masker = Masker::default();
        let mut masked = Masked { text: String::with_capacity(text.len()), hidden: Vec::new() };
        for line in text.split_inclusive('\n') {
            // A masked text has the same length, so this is the place of the line in both texts.
            let at = masked.text.len();
            if is_separator(line) {
                masked.end_string(&masker, text);
                masker = Masker::default();
                masked.text.push_str(line);
            } else if masker.is_foreign(line, at) {
                masked.hide(line);
            } else {
                masked.text.push_str(line);
            }
        }
        masked.end_string(&masker, text);
        masked
    }

    /// Masks a string in three quotes that is open at the end of its cell, which is the end of the masked text so far.
    /// Its quotes become one quote and the mask; its lines after the first one are hidden.
    fn end_string(&mut self, masker: &Masker, text: &str) {
        let Some((quotes, start)) = masker.string else { return };
        let string = text.get(start..self.text.len()).unwrap_or_default();
        let Some((quote, hidden)) = quotes.split_at_checked(1).filter(|(_, hidden)| hidden.len() == MASK.len()) else {
            return;
        };
        let mut lines = string.split_inclusive('\n');
        let Some(rest) = lines.next().and_then(|line| line.strip_prefix(quotes)) else { return };
        self.text.truncate(start);
        self.text.extend([quote, MASK, rest]);
        self.hidden.push(hidden.to_owned());
        lines.for_each(|line| self.hide(line));
    }

    /// Puts the masked lines back into a changed version of the text. `None` if one of them was removed.
    pub fn restore(&self, changed: &str) -> Option<String> {
        let mut pieces = changed.split(MASK);
        let mut text = pieces.next()?.to_owned();
        let mut hidden = self.hidden.iter();
        for piece in pieces {
            let start = hidden.next()?;
            text.extend([start.as_str(), piece.strip_prefix(padding(start).as_str())?]);
        }
        hidden.next().is_none().then_some(text)
    }

    /// Appends a line as a comment. A line of one byte has no space for the mask; it is kept.
    fn hide(&mut self, line: &str) {
        let end = line.trim_end_matches(['\n', '\r']).len();
        let indent = (line.len() - line.trim_start().len()).min(end.saturating_sub(MASK.len()));
        let (blanks, rest) = line.split_at_checked(indent).unwrap_or(("", line));
        let code = rest.trim_end_matches(['\n', '\r']);
        let start = (MASK.len()..=code.len()).find_map(|end| code.get(..end));
        match start {
            Some(start) => {
                let after = rest.get(start.len()..).unwrap_or_default();
                self.text.extend([blanks, MASK, padding(start).as_str(), after]);
                self.hidden.push(start.to_owned());
            }
            None => self.text.push_str(line),
        }
    }
}

/// Whether edits of a masked text can be made in its cells: none changes a masked line or the line between two cells,
/// and no new text contains such a line. For example, moving a block that contains `%time f()` would write its mask.
pub fn allows(text: &str, edits: &[Edit]) -> bool {
    let mut end = 0;
    let fixed = text.split_inclusive('\n').filter_map(|line| {
        let start = end;
        end += line.len();
        if is_separator(line) {
            return Some(start..end);
        }
        let masked = line.find(MASK)?;
        Some(start + masked..start + line.trim_end_matches(['\n', '\r']).len())
    });
    let fixed: Vec<_> = fixed.collect();
    edits.iter().all(|(span, new)| {
        let span = span.range();
        let is_apart = fixed.iter().all(|part| span.end <= part.start || part.end <= span.start);
        is_apart && !new.contains(MASK) && !new.contains(SEPARATOR)
    })
}

/// Returns the blanks after the mask that make it as long as the text that it replaces.
fn padding(start: &str) -> String {
    " ".repeat(start.len().saturating_sub(MASK.len()))
}

/// Finds the lines of IPython's syntax. They are recognized only where a statement can begin: not inside brackets,
/// strings and continued lines.
#[derive(Default)]
struct Masker {
    /// Whether the cell has code before this line.
    began: bool,
    /// Whether the cell is in another language (`%%bash`).
    other_language: bool,
    /// Whether the line before is one of IPython's and continues on this line.
    continued_magic: bool,
    /// Whether the line before ends in a backslash.
    continued: bool,
    /// The number of open brackets.
    depth: usize,
    /// The quotes that end the open string, and the place of the string in the text.
    string: Option<(&'static str, usize)>,
}

impl Masker {
    /// Whether a line of a cell, at byte `at` of the text, is not Python. Lines are passed in order.
    fn is_foreign(&mut self, line: &str, at: usize) -> bool {
        let code = line.trim();
        if self.other_language || self.continued_magic {
            self.continued_magic &= code.ends_with('\\');
            return !code.is_empty();
        }
        let first = !self.began;
        self.began |= !code.is_empty();
        if self.depth > 0 || self.continued || self.string.is_some() || !is_ipython(code) {
            self.scan(line.trim_end_matches(['\n', '\r']), at);
            return false;
        }
        let cell_magic = code.strip_prefix("%%").filter(|_| first).map(|rest| rest.split_whitespace().next());
        self.other_language = cell_magic.is_some_and(|name| name.is_none_or(|name| !PYTHON_MAGICS.contains(&name)));
        self.continued_magic = code.ends_with('\\');
        true
    }

    /// Follows brackets and strings through a line of Python at byte `at` of the text.
    fn scan(&mut self, line: &str, at: usize) {
        let mut rest = line;
        self.continued = false;
        while let Some(c) = rest.chars().next() {
            let mut taken = c.len_utf8();
            match (self.string, c) {
                (_, '\\') => {
                    taken += rest.get(1..).and_then(|after| after.chars().next()).map_or(0, char::len_utf8);
                    self.continued = taken == rest.len() && taken == 1;
                }
                (Some((quotes, _)), _) if rest.starts_with(quotes) => {
                    taken = quotes.len();
                    self.string = None;
                }
                (Some(_), _) => {}
                (None, '#') => break,
                (None, '"' | '\'') => {
                    let quotes = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quotes| rest.starts_with(*quotes));
                    self.string = quotes.map(|quotes| (quotes, at + line.len() - rest.len()));
                    taken = quotes.map_or(taken, str::len);
                }
                (None, '(' | '[' | '{') => self.depth += 1,
                (None, ')' | ']' | '}') => self.depth = self.depth.saturating_sub(1),
                (None, _) => {}
            }
            rest = rest.get(taken..).unwrap_or_default();
        }
        // A string in single quotes ends with its line, unless a backslash continues it.
        if !self.continued && self.string.is_some_and(|(quotes, _)| quotes.len() == 1) {
            self.string = None;
        }
    }
}

/// Whether a statement is in IPython's syntax: `%magic`, `!command`, `?name`, `name?`, `x = !command`, `x = %magic`,
/// or a call without parentheses (`/f x`, `,f x`, `;f x`).
fn is_ipython(code: &str) -> bool {
    // No quotes and parentheses: `"""Why?` and `print("""Why?` begin a string.
    let in_name = |c: char| c.is_alphanumeric() || "_.*%[]".contains(c);
    let in_targets = |c: char| c.is_alphanumeric() || "_., ".contains(c);
    let asks = code.ends_with('?') && code.trim_end_matches('?').chars().all(in_name);
    let assigns = code
        .split_once('=')
        .is_some_and(|(targets, value)| targets.chars().all(in_targets) && value.trim_start().starts_with(['!', '%']));
    code.starts_with(['%', '!', '?', '/', ',', ';']) || asks || assigns
}

#[cfg(test)]
mod tests {
    use super::{Cells, MASK, Masked, SEPARATOR, allows, join, split, without_marks};
    use crate::Span;

    /// Returns the lines of a cell that are masked.
    fn masked(cell: &str) -> Vec<String> {
        let joined = join([cell, "x = 1"]);
        let masked = Masked::new(&joined);
        assert_eq!(masked.text.len(), joined.len());
        assert_eq!(masked.restore(&masked.text).as_deref(), Some(&*joined));
        let lines = joined.lines().zip(masked.text.lines()).filter(|(_, line)| line.trim_start().starts_with(MASK));
        lines.map(|(line, _)| line.to_owned()).collect()
    }

    #[test]
    fn split_returns_the_joined_cells() {
        for cells in [&["x = 1\n", "", "y"][..], &[""][..], &["", ""][..], &["a\r\nb\r\n", "\n\n"][..]] {
            assert_eq!(split(&join(cells.iter().copied())), cells);
        }
    }

    #[test]
    fn lines_are_located_in_their_cells() {
        let cells = Cells::new(&join(["a\nb", "", "c\n"]));
        let located: Vec<_> = (0..8).map(|line| cells.locate(line)).collect();
        assert_eq!(located, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]);
        assert_eq!((cells.start(2), cells.end(0), cells.end(2)), (5, Some(2), None));
    }

    #[test]
    fn text_without_marks_is_the_python_of_the_cells() {
        let text = join(["%matplotlib inline\na = 1", "  !ls -l\nb = 2"]);
        assert_eq!(without_marks(&Masked::new(&text).text), "a = 1\nb = 2\n");
    }

    #[test]
    fn ipython_syntax_is_masked() {
        let cell = "%matplotlib inline\n  !ls (\nx?\nnp.add??\n?x\nfiles = !ls\na, b = %timeit f()\n!é\n";
        assert_eq!(masked(cell).len(), 8, "{:?}", masked(cell));
        assert_eq!(masked("!pip install \\\n  x \\\n  y\nz = 1"), ["!pip install \\", "  x \\", "  y"]);
    }

    #[test]
    fn python_is_not_masked() {
        let cell = "x = (a\n  % b)\ny = '''\n%x\n'''\nz = a \\\n  % b\nf(x) # why?\nw = 'a= %d' % 3\nv == 3\n\
                    s = 'it\\'s ('\n\
                    t = \"\"\"\n!x\n\"\"\"\n\"\"\"Why?\n!x\n\"\"\"\nprint('''Why?\n%x\n''')\n";
        assert_eq!(masked(cell), [""; 0]);
    }

    #[test]
    fn cells_of_other_languages_are_masked() {
        assert_eq!(masked("\n%%bash\nls (\n\necho"), ["%%bash", "ls (", "echo"]);
        assert_eq!(masked("%%time\nx = 1"), ["%%time"]);
        let joined = join(["%%html\n<b>'''", "y = 1"]);
        assert!(Masked::new(&joined).text.ends_with(&format!("{SEPARATOR}\ny = 1\n")));
    }

    #[test]
    fn string_without_end_ends_with_its_first_line() {
        let joined = join(["!ls\nx = '''it\n!y\n\n  z (", "y = 1"]);
        let masked = Masked::new(&joined);
        let hidden = [MASK, "s\nx = '", MASK, "it\n", MASK, "\n\n  ", MASK, "(\n"].concat();
        let expected = join([hidden.trim_end_matches('\n'), "y = 1"]);
        assert_eq!(masked.text, expected);
        assert_eq!(masked.restore(&masked.text), Some(joined));
    }

    #[test]
    fn edits_of_masked_lines_and_across_cells_are_not_allowed() {
        let text = Masked::new(&join(["if x:\n  %time f()\n  y", "z"])).text;
        let offset = |part: &str| text.find(part).unwrap() as u32;
        let allowed = |start, end, new: &str| {
            allows(&text, &[(Span::new(0, 2), "for".into()), (Span::new(start, end), new.into())])
        };
        let (mask, separator) = (offset(MASK), offset(SEPARATOR));
        // The indent of a masked line, and the text after its end.
        assert!(allowed(mask - 2, mask, "    ") && allowed(offset("\n  y"), separator - 1, ""));
        assert!(allowed(offset("z"), offset("z") + 1, "w"));
        assert!(!allowed(0, mask + 2, "") && !allowed(mask + 1, mask + 1, " ") && !allowed(mask + 3, mask + 4, ""));
        assert!(!allowed(separator - 2, offset("z"), "\n") && !allowed(separator + 1, separator + 1, " "));
        assert!(!allowed(0, 0, &format!("{MASK}ime f()\n")) && !allowed(0, 0, &format!("{SEPARATOR}\n")));
        assert!(allows(&text, &[]));
    }

    #[test]
    fn restore_keeps_changes_and_requires_every_masked_line() {
        let masked = Masked::new(&join(["%time f()\nx=1", "!ls"]));
        let changed = masked.text.replace("x=1", "x = 1");
        assert_eq!(masked.restore(&changed), Some(join(["%time f()\nx = 1", "!ls"])));
        assert_eq!(masked.restore("x = 1\n"), None);
    }
}
