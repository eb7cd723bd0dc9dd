//! Conversion of untrusted text (from files and messages) to text that is safe to print.

use crate::source::Source;
use rx_base::{Diagnostic, Span};

/// Returns the visible character for `c`. Control characters (including those of escape sequences), line separators and
/// marks that reorder text are replaced, so that the terminal shows the actual text.
pub fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        // The Control Pictures block has a symbol for each ASCII control character, in the same order.
        '\0'..='\x1F' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{FFFD}'),
        '\x7F' => '\u{2421}',
        '\u{80}'..='\u{9F}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{200E}'
        | '\u{200F}'
        | '\u{061C}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2066}'..='\u{2069}'
        | '\u{FEFF}' => '\u{FFFD}',
        _ => c,
    }
}

/// Formats `text` as one printable line of at most `limit` characters. A longer text ends in `…`; line ends become
/// blanks.
pub fn line_of(text: &str, limit: usize) -> String {
    let mut line = String::with_capacity(text.len().min(4 * limit));
    for (count, c) in text.chars().enumerate() {
        if count == limit {
            line.push('…');
            break;
        }
        line.push(if matches!(c, '\n' | '\r') { ' ' } else { printable(c) });
    }
    line
}

/// Formats a diagnostic without places: message, notes and help, each on its own line.
pub(crate) fn paragraph<P>(diagnostic: &Diagnostic<P>) -> String {
    let mut text = diagnostic.message.clone();
    let notes = diagnostic.notes.iter().map(|note| ("note", note));
    for (kind, line) in notes.chain(diagnostic.help.iter().map(|help| ("help", help))) {
        text.push_str(&format!("\n{kind}: {line}"));
    }
    text
}

/// Formats a diagnostic like [`paragraph`], for formats whose places are lines of a file. In a notebook, the place
/// comes first: for example, `cell 3, line 7: …`.
pub(crate) fn placed_paragraph(source: &Source<'_>, diagnostic: &Diagnostic<Span>) -> String {
    let text = paragraph(diagnostic);
    if !source.is_notebook() {
        return text;
    }
    format!("{}: {text}", source.position(diagnostic.primary.start as usize).line_words())
}

/// Whether to use colours if no option says so: on a terminal, unless `NO_COLOR` is set or the terminal is dumb.
pub fn colors_by_default(is_terminal: bool) -> bool {
    // https://no-color.org: any non-empty value counts.
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !refused && !dumb && is_terminal
}

#[cfg(test)]
mod tests {
    use super::line_of;

    #[test]
    fn escape_sequences_and_reordering_marks_do_not_reach_the_terminal() {
        assert_eq!(line_of("a\x1b[31mb\u{202E}c\td\ne", 99), "a␛[31mb\u{FFFD}c d e");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(line_of("漢字漢字", 3), "漢字漢…");
        assert_eq!(line_of("漢字漢", 3), "漢字漢");
    }
}
