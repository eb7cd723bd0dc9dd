//! Parser of a document's headings and code blocks.

use rx_base::TvmVersion;
use rx_db::FileKind;

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// A source file of this kind.
    File(FileKind),
    /// The settings, `rx.toml`, of the files below.
    Settings,
}

/// A code block that is a separate file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The headings above it, outermost first: `call_tir: rank`.
    pub heading: String,
    /// The line of its fence in the document, from 1.
    pub line: usize,
    /// The kind of the block.
    pub language: Language,
    /// The release of TVM that it is meant for.
    pub tvm: Option<TvmVersion>,
    /// The text.
    pub code: String,
    /// The expected texts after rewriting, if the document shows them.
    pub after: Vec<After>,
}

/// The expected text after a rewriting, without expectation comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// The rewriting.
    pub rewrite: Rewrite,
    /// The line of its fence in the document, from 1.
    pub line: usize,
    /// The expected text.
    pub code: String,
}

/// A rewriting of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// `--fix`, with or without unsafe fixes.
    Fix {
        /// Whether `--unsafe-fixes` is given.
        with_unsafe: bool,
    },
    /// `--annotate`.
    Annotate,
}

impl Rewrite {
    /// Parses the words of a fence after its language: `fixed`, `fixed --unsafe-fixes`, `annotated`.
    fn parse(words: &str) -> Option<Rewrite> {
        match words.split_once(' ')?.1.trim() {
            "fixed" => Some(Rewrite::Fix { with_unsafe: false }),
            "fixed --unsafe-fixes" => Some(Rewrite::Fix { with_unsafe: true }),
            "annotated" => Some(Rewrite::Annotate),
            _ => None,
        }
    }
}

/// Returns the blocks of a document that are fenced as `rx`, `py`, `rx tvm=0.27` or `toml rx.toml`. A block fenced as
/// `rx fixed` is the expected rewriting of the previous block.
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut headings: Vec<(usize, &str)> = Vec::new();
    let mut blocks = Vec::new();
    let mut lines = markdown.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```")).collect();
            let code: String = inside.iter().flat_map(|line| [line, "\n"]).collect();
            if let (Some(rewrite), Some(block)) = (Rewrite::parse(language.trim()), blocks.last_mut()) {
                let block: &mut Block = block;
                block.after.push(After { rewrite, line: at + 1, code });
                continue;
            }
            let (language, tvm) = match language.split_once(" tvm=") {
                Some((language, version)) => (language, version.trim().parse().ok()),
                None => (language, None),
            };
            let language = match language.trim() {
                "rx" => Language::File(FileKind::Rx),
                "py" => Language::File(FileKind::Python),
                "toml rx.toml" => Language::Settings,
                _ => continue,
            };
            let heading: Vec<&str> = headings.iter().map(|(_, text)| *text).collect();
            blocks.push(Block { heading: heading.join(": "), line: at + 1, language, tvm, code, after: Vec::new() });
        } else if line.starts_with('#') {
            let depth = line.chars().take_while(|c| *c == '#').count();
            headings.retain(|(outer, _)| *outer < depth);
            headings.push((depth, line.trim_start_matches('#').trim()));
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_may_be_followed_by_its_expected_output() {
        let found = blocks("```rx\nx\n```\nthen\n```rx fixed --unsafe-fixes\ny\n```\n```rx\nz\n```\n");
        let after = After { rewrite: Rewrite::Fix { with_unsafe: true }, line: 5, code: "y\n".into() };
        assert_eq!((found.len(), &found[0].after), (2, &vec![after]));
    }

    #[test]
    fn headings_name_the_blocks_under_them() {
        let markdown = "# A\n## B\n```rx\nx\n# no heading\n```\n## C\n```text\n# D\n```\n```py\ny\n```\n";
        let found = blocks(markdown);
        assert_eq!(found.len(), 2);
        let code = "x\n# no heading\n".into();
        let (heading, after) = ("A: B".into(), Vec::new());
        let language = Language::File(FileKind::Rx);
        let rx = Block { heading, line: 3, language, tvm: None, code, after };
        assert_eq!(found[0], rx);
        let python = Language::File(FileKind::Python);
        assert_eq!((found[1].heading.as_str(), found[1].line, found[1].language), ("A: C", 11, python));
    }
}
