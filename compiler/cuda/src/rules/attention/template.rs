//! Templates of CUDA C: text in which [`Template`] replaces placeholders. The code that prints the attention kernels
//! uses them.

use crate::printer::Kernel;
use rustc_hash::FxHashMap;
use rx_tir::Expr;

/// A printer that replaces `$word` by the text that was set for the word. A word without a text becomes a fresh
/// variable name, which differs from the names of buffers and loops. For example, `$row0 * $ROWS` prints `row0 * 128`
/// if `ROWS` is set to 128.
pub(super) struct Template<'k, 'm> {
    pub(super) kernel: &'k mut Kernel<'m>,
    words: FxHashMap<&'static str, String>,
}

impl<'k, 'm> Template<'k, 'm> {
    pub(super) fn new(kernel: &'k mut Kernel<'m>) -> Template<'k, 'm> {
        Template { kernel, words: FxHashMap::default() }
    }

    /// Sets the text of a word for the following lines.
    pub(super) fn set(&mut self, word: &'static str, text: impl ToString) {
        self.words.insert(word, text.to_string());
    }

    /// Sets the text of a word to an expression in CUDA C.
    pub(super) fn set_expr(&mut self, word: &'static str, expr: &Expr) -> Result<(), String> {
        let text = self.kernel.operand(expr, 0)?;
        self.set(word, text);
        Ok(())
    }

    /// Returns the text of a word; a word without one gets a fresh name.
    pub(super) fn word(&mut self, word: &'static str) -> String {
        self.words.entry(word).or_insert_with(|| self.kernel.fresh_name(word)).clone()
    }

    /// Prints lines, with their indentation relative to the first one.
    pub(super) fn print(&mut self, text: &'static str) {
        let lines = text.trim_matches('\n').trim_end();
        let margin = lines.len() - lines.trim_start().len();
        for line in lines.lines() {
            let line = self.filled(line.get(margin..).unwrap_or_default());
            self.kernel.line(&line);
        }
    }

    /// Prints lines that open a block. The following lines are indented until [`Kernel::close`] or
    /// [`Kernel::outdent`].
    pub(super) fn open(&mut self, text: &'static str) {
        self.print(text);
        self.kernel.indent();
    }

    fn filled(&mut self, line: &'static str) -> String {
        let mut parts = line.split('$');
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(part.len());
            let (word, rest) = part.split_at(end);
            filled.push_str(&self.word(word));
            filled.push_str(rest);
        }
        filled
    }
}
