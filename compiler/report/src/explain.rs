//! `--explain`: renders the page of a diagnostic code for a terminal.

use rx_base::Code;

/// The pages of `docs/codes`, by code number.
const PAGES: &[(u16, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The width to which text is wrapped, in columns.
const WIDTH: usize = 100;

const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Returns the Markdown page of a code, for example `docs/codes/rx0402.md`. A test checks that every code has a page.
pub fn page(code: Code) -> Option<&'static str> {
    PAGES.iter().find(|(number, _)| *number == code.number()).map(|(_, text)| *text)
}

/// Renders the page of a code for a terminal: headings, wrapped text, indented examples.
pub fn explain(code: Code, color: bool) -> String {
    match page(code) {
        Some(page) => render(page, color),
        None => format!("{code} {} ({})\n\n{}\n", code.slug(), code.severity(), code.summary()),
    }
}

/// Renders the Markdown subset of these pages: headings, paragraphs, fenced blocks, lists of single lines.
fn render(markdown: &str, color: bool) -> String {
    let (bold, plain) = if color { (BOLD, PLAIN) } else { ("", "") };
    let mut out = String::with_capacity(markdown.len());
    let mut paragraph = String::new();
    let mut fenced = false;
    for line in markdown.lines() {
        if line.starts_with("```") {
            flush(&mut paragraph, &mut out);
            fenced = !fenced;
        } else if fenced {
            let indent = if line.is_empty() { "" } else { "    " };
            out.extend([indent, line, "\n"]);
        } else if line.starts_with("<!--") {
            // A comment for the authors of the page.
        } else if line.starts_with('#') {
            flush(&mut paragraph, &mut out);
            out.extend([bold, line.trim_start_matches('#').trim(), plain, "\n"]);
        } else if line.is_empty() {
            flush(&mut paragraph, &mut out);
            if !out.ends_with("\n\n") {
                out.push('\n');
            }
        } else {
            if line.starts_with("- ") {
                flush(&mut paragraph, &mut out);
            }
            paragraph.extend([line, " "]);
        }
    }
    flush(&mut paragraph, &mut out);
    out
}

/// Ends a paragraph: wraps its words, without emphasis marks and link targets.
fn flush(paragraph: &mut String, out: &mut String) {
    let text = without_links(&std::mem::take(paragraph)).replace("**", "");
    let hanging = if text.starts_with("- ") { "  " } else { "" };
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            out.extend(["\n", hanging]);
            column = hanging.len();
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    if column > 0 {
        out.push('\n');
    }
}

/// Replaces links by their text: `[Operators](../operators.md)` becomes `Operators`; other brackets are kept.
fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        out.push_str(before);
        let parts = link.split_once("](").and_then(|(label, after)| Some((label, after.split_once(')')?)));
        match parts {
            Some((label, (target, after))) if target.ends_with(".md") || target.starts_with("http") => {
                out.push_str(label);
                rest = after;
            }
            _ => {
                out.push('[');
                rest = link;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_laid_out_for_a_terminal() {
        let page = "# RX0102 x\n\n<!-- remark -->\n\n**Error.** See [Operators](../operators.md), `a[0](b)`.\n\n## Wrong\n\n```rx\nx = (\n\n```\n- one\n- two\n";
        let wanted = "RX0102 x\n\nError. See Operators, `a[0](b)`.\n\nWrong\n\n    x = (\n\n- one\n- two\n";
        assert_eq!(render(page, false), wanted);
        assert!(render(page, true).starts_with("\x1b[1mRX0102 x\x1b[0m\n"));
    }

    #[test]
    fn prose_is_broken_into_lines() {
        let shown = render(&"word ".repeat(100), false);
        assert!(shown.lines().count() > 4 && shown.lines().all(|line| line.len() <= WIDTH), "{shown}");
    }

    #[test]
    fn every_code_has_a_page() {
        for code in Code::ALL {
            let page = page(*code).unwrap_or_default();
            assert!(
                page.starts_with(&format!("# {code} {}\n", code.slug())),
                "{code} needs docs/codes/{}.md",
                code.to_string().to_lowercase()
            );
        }
    }
}
