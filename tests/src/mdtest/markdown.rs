//! Headings and code blocks of a document.

use rx_base::TvmVersion;
use rx_db::FileKind;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// A file of this kind.
    File(FileKind),
    /// The settings, `rx.toml`, of the files below it.
    Settings,
}

/// A code block that is a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The headings it stands under, outermost first: `call_tir: rank`.
    pub heading: String,
    /// The document's line of its fence, from 1.
    pub line: usize,
    /// What it is.
    pub language: Language,
    /// The release of TVM it is meant for.
    pub tvm: Option<TvmVersion>,
    /// Its text.
    pub code: String,
    /// What becomes of the text, where the document shows it.
    pub after: Vec<After>,
}

/// A text after something was done to it, its expectations left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// What was done.
    pub what: Rewrite,
    /// The document's line of its fence, from 1.
    pub line: usize,
    /// The text then.
    pub code: String,
}

/// What can be done to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// `--fix`, with unsafe fixes or without.
    Fix {
        /// `--unsafe-fixes`.
        with_unsafe: bool,
    },
    /// `--annotate`.
    Annotate,
}

impl Rewrite {
    /// The fence's words after its language: `fixed`, `fixed --unsafe-fixes`, `annotated`.
    fn parse(words: &str) -> Option<Rewrite> {
        match words.split_once(' ')?.1.trim() {
            "fixed" => Some(Rewrite::Fix { with_unsafe: false }),
            "fixed --unsafe-fixes" => Some(Rewrite::Fix { with_unsafe: true }),
            "annotated" => Some(Rewrite::Annotate),
            _ => None,
        }
    }
}

/// The blocks of a document fenced as `rx` or `py`, as `rx tvm=0.27`, or as `toml rx.toml`; one fenced as `rx fixed` says what
/// becomes of the block before it.
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut headings: Vec<(usize, &str)> = Vec::new();
    let mut blocks = Vec::new();
    let mut lines = markdown.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```")).collect();
            let code: String = inside.iter().flat_map(|line| [line, "\n"]).collect();
            if let (Some(what), Some(block)) = (Rewrite::parse(language.trim()), blocks.last_mut()) {
                let block: &mut Block = block;
                block.after.push(After { what, line: at + 1, code });
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
    fn a_block_may_be_followed_by_what_becomes_of_it() {
        let found = blocks("```rx\nx\n```\nthen\n```rx fixed --unsafe-fixes\ny\n```\n```rx\nz\n```\n");
        let after = After { what: Rewrite::Fix { with_unsafe: true }, line: 5, code: "y\n".into() };
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
