//! Lines of CUDA C with words to be filled in.

use crate::printer::Kernel;
use rustc_hash::FxHashMap;
use rx_tir::Expr;

/// What stands for the words of a kernel's lines: `$word` is a text that was set, else a name of the text's own, so that it
/// never is that of a buffer or loop.
pub(super) struct Template<'k, 'm> {
    pub(super) kernel: &'k mut Kernel<'m>,
    words: FxHashMap<&'static str, String>,
}

impl<'k, 'm> Template<'k, 'm> {
    pub(super) fn new(kernel: &'k mut Kernel<'m>) -> Template<'k, 'm> {
        Template { kernel, words: FxHashMap::default() }
    }

    /// From here on the word is this text.
    pub(super) fn set(&mut self, word: &'static str, text: impl ToString) {
        self.words.insert(word, text.to_string());
    }

    /// From here on the word is this expression.
    pub(super) fn set_expr(&mut self, word: &'static str, expr: &Expr) -> Result<(), String> {
        let text = self.kernel.operand(expr, 0)?;
        self.set(word, text);
        Ok(())
    }

    /// What stands for a word.
    pub(super) fn word(&mut self, word: &'static str) -> String {
        self.words.entry(word).or_insert_with(|| self.kernel.fresh_name(word)).clone()
    }

    /// Prints lines, indented as they are beyond the first one's.
    pub(super) fn print(&mut self, text: &'static str) {
        let lines = text.trim_matches('\n').trim_end();
        let margin = lines.len() - lines.trim_start().len();
        for line in lines.lines() {
            let line = self.filled(line.get(margin..).unwrap_or_default());
            self.kernel.line(&line);
        }
    }

    /// Prints lines of which the last opens a brace; lines from here on are indented until [`Kernel::close`].
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
