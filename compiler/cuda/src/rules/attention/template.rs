//! Lines of CUDA C with words to be filled in.

use crate::printer::Kernel;
use rustc_hash::FxHashMap;

/// What stands for the words of a kernel's lines: `$word` is a text that was set, else a name of the text's own, so that it
/// never is that of a buffer or loop.
#[derive(Debug, Default)]
pub(super) struct Template {
    words: FxHashMap<&'static str, String>,
}

impl Template {
    /// From here on the word is this text.
    pub(super) fn set(&mut self, word: &'static str, text: impl ToString) {
        self.words.insert(word, text.to_string());
    }

    /// What stands for a word.
    pub(super) fn word(&mut self, kernel: &mut Kernel<'_>, word: &'static str) -> String {
        self.words.entry(word).or_insert_with(|| kernel.fresh_name(word)).clone()
    }

    /// Prints lines, indented as they are beyond the first one's.
    pub(super) fn print(&mut self, kernel: &mut Kernel<'_>, text: &'static str) {
        let lines = text.trim_matches('\n').trim_end();
        let margin = lines.len() - lines.trim_start().len();
        for line in lines.lines() {
            let line = self.filled(kernel, line.get(margin..).unwrap_or_default());
            kernel.line(&line);
        }
    }

    fn filled(&mut self, kernel: &mut Kernel<'_>, line: &'static str) -> String {
        let mut parts = line.split('$');
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(part.len());
            let (word, rest) = part.split_at(end);
            filled.push_str(&self.word(kernel, word));
            filled.push_str(rest);
        }
        filled
    }
}
