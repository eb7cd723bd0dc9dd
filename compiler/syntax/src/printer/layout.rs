//! The layout of printed lines: indentation and blank lines.

use super::lines::Part;
use crate::ast::StatementKind;

/// The text printed so far, and the state that determines the layout of the next line.
pub(crate) struct Layout {
    out: String,
    newline: &'static str,
    /// Whether the code is inside Python text that must not change.
    python: bool,
    /// The indentation of every line of this run of code.
    base: String,
    /// Whether the next line continues the current line of the output.
    first: bool,
    /// The depths of the functions that are still open.
    functions: Vec<usize>,
    /// The depth of the block header that was just printed, and whether a statement of its block was omitted.
    header: Option<(usize, bool)>,
    /// Whether no blank line may follow, because the last line is a decorator or a header.
    tight: bool,
    /// Whether the next line must follow a blank line.
    due: bool,
}

const BOM: char = '\u{feff}';

impl Layout {
    /// Creates a layout for `parts`, with the line breaks that they use.
    pub(crate) fn new(parts: &[Part<'_>]) -> Layout {
        let segments = parts.iter().flat_map(|part| match part {
            Part::Verbatim(segments) => segments.clone(),
            Part::Code(code) => code.lines.iter().map(|line| line.segment).take(1).collect(),
        });
        let mut texts = segments.map(|segment| segment.text());
        let line_end = texts.clone().find_map(|text| text.find('\n').map(|at| text.get(..at).unwrap_or("")));
        let python = !matches!(parts, [Part::Code(code)] if code.before.is_empty() && code.after.is_empty());
        let mut out = String::new();
        if !python && texts.next().is_some_and(|text| text.starts_with(BOM)) {
            out.push(BOM);
        }
        Layout {
            out,
            newline: if line_end.is_some_and(|line| line.ends_with('\r')) { "\r\n" } else { "\n" },
            python,
            base: String::new(),
            first: true,
            functions: Vec::new(),
            header: None,
            tight: false,
            due: false,
        }
    }

    /// Appends text verbatim.
    pub(crate) fn verbatim(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Starts a run of code after the text `before`, whose last line is the first statement's indentation.
    pub(crate) fn begin(&mut self, before: &str) {
        self.out.push_str(before);
        self.base = before.rsplit(['\n', '\r']).next().unwrap_or("").trim_start_matches(BOM).to_owned();
        self.first = true;
        self.functions.clear();
        self.header = None;
        self.tight = false;
        self.due = false;
    }

    /// Prints a line at `depth`, after a blank line if `blank`. A blank line also follows every function.
    pub(crate) fn line(&mut self, depth: usize, blank: bool, text: &str) {
        self.close_header(depth);
        while self.functions.last().is_some_and(|function| *function >= depth) {
            self.functions.pop();
            self.due = true;
        }
        let blank = self.due || (blank && !self.tight);
        self.due = false;
        self.tight = false;
        self.write(depth, blank, text);
    }

    fn write(&mut self, depth: usize, blank: bool, text: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.push_str(self.newline);
            if blank {
                self.out.push_str(self.newline);
            }
            self.out.push_str(&self.base);
        }
        for _ in 0..depth {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
    }

    /// Prints `pass` if all statements of the last header's block were omitted.
    fn close_header(&mut self, depth: usize) {
        if let Some((header, true)) = self.header.take()
            && depth <= header
        {
            self.write(header + 1, false, "pass");
        }
    }

    /// Records that a line was omitted; `blank` is whether it followed a blank line.
    pub(crate) fn skipped(&mut self, blank: bool) {
        self.due |= blank && !self.tight;
        if let Some((_, left_out)) = &mut self.header {
            *left_out = true;
        }
    }

    /// Requires a blank line before the next line.
    pub(crate) fn want_blank(&mut self) {
        self.due = true;
    }

    /// Records that the line just printed is a statement of this kind.
    pub(crate) fn printed(&mut self, depth: usize, kind: &StatementKind) {
        if kind.opens_block() {
            self.header = Some((depth, false));
        }
        match kind {
            StatementKind::Def { .. } => {
                self.functions.push(depth);
                self.tight = true;
            }
            StatementKind::Class { .. } => {}
            _ => self.tight = kind.opens_block() || matches!(kind, StatementKind::Decorator(_)),
        }
    }

    /// Ends a run of code, which `after` follows.
    pub(crate) fn end(&mut self, after: &str) {
        self.close_header(0);
        self.out.push_str(after);
        if !self.python && !self.out.is_empty() && !self.out.ends_with(BOM) {
            self.out.push_str(self.newline);
        }
    }

    /// Returns the text.
    pub(crate) fn finish(self) -> String {
        self.out
    }
}
