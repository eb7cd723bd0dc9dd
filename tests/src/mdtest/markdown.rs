//! Headings and code blocks of a document.

use rx_db::FileKind;

/// A code block that is a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The headings it stands under, outermost first: `call_tir: rank`.
    pub heading: String,
    /// The document's line of its fence, from 1.
    pub line: usize,
    /// What kind of file it is.
    pub kind: FileKind,
    /// Its text.
    pub code: String,
}

/// The blocks of a document fenced as `rx` or `py`.
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut headings: Vec<(usize, &str)> = Vec::new();
    let mut blocks = Vec::new();
    let mut lines = markdown.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```")).collect();
            let kind = match language.trim() {
                "rx" => FileKind::Rx,
                "py" => FileKind::Python,
                _ => continue,
            };
            let heading: Vec<&str> = headings.iter().map(|(_, text)| *text).collect();
            let code = inside.iter().flat_map(|line| [line, "\n"]).collect();
            blocks.push(Block { heading: heading.join(": "), line: at + 1, kind, code });
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
    fn headings_name_the_blocks_under_them() {
        let markdown = "# A\n## B\n```rx\nx\n# no heading\n```\n## C\n```text\n# D\n```\n```py\ny\n```\n";
        let found = blocks(markdown);
        assert_eq!(found.len(), 2);
        let rx = Block { heading: "A: B".into(), line: 3, kind: FileKind::Rx, code: "x\n# no heading\n".into() };
        assert_eq!(found[0], rx);
        assert_eq!((found[1].heading.as_str(), found[1].line, found[1].kind), ("A: C", 11, FileKind::Python));
    }
}
