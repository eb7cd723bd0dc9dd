//! Unique Python identifiers for the variables and buffers that are visible together.

use rustc_hash::FxHashSet;

/// Names with another meaning in Python or in TVM's parser.
const RESERVED: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield", "T", "R", "I", "tir", "tirx", "relax",
    "ir", "range", "min", "max", "cls",
];

/// The names in use, innermost scope last.
#[derive(Default)]
pub(super) struct Names {
    taken: FxHashSet<String>,
    order: Vec<String>,
}

impl Names {
    /// Returns the current position, for [`Names::release`].
    pub(super) fn mark(&self) -> usize {
        self.order.len()
    }

    /// Releases the names that were defined since `mark`.
    pub(super) fn release(&mut self, mark: usize) {
        for name in self.order.drain(mark.min(self.order.len())..) {
            self.taken.remove(&name);
        }
    }

    /// Defines a name like `wanted`, or like `otherwise` if that is empty, that is not reserved and that no visible
    /// variable or buffer has: `i`, then `i_1`.
    pub(super) fn define(&mut self, wanted: &str, otherwise: &str) -> String {
        let base = identifier(wanted, otherwise);
        let mut name = base.clone();
        let mut count = 0usize;
        while RESERVED.contains(&name.as_str()) || self.taken.contains(&name) {
            count += 1;
            name = format!("{base}_{count}");
        }
        self.taken.insert(name.clone());
        self.order.push(name.clone());
        name
    }
}

/// Replaces all characters of `wanted` but ASCII letters and digits by `_`, and puts a `_` before a leading digit.
/// Returns `otherwise` if `wanted` is empty.
pub(super) fn identifier(wanted: &str, otherwise: &str) -> String {
    let mut name: String =
        wanted.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if name.is_empty() {
        name = otherwise.to_owned();
    }
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_are_unique_while_they_are_visible() {
        let mut names = Names::default();
        assert_eq!(names.define("nn.conv2d", "v"), "nn_conv2d");
        let mark = names.mark();
        assert_eq!([names.define("i", "v"), names.define("i", "v"), names.define("T", "v")], ["i", "i_1", "T_1"]);
        assert_eq!([names.define("", "v"), names.define("2n", "v")], ["v", "_2n"]);
        names.release(mark);
        assert_eq!(names.define("i", "v"), "i");
    }
}
