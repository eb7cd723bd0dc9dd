//! Tests of the comments that configure rx.

use rx_syntax::Segment;
use rx_syntax::directive::{Directive, DirectiveKind, Named, Target};

/// Formats each directive: its kind, and the text that it applies to.
fn directives(text: &str) -> Vec<(String, String)> {
    let segment = Segment::new(text.into());
    let show = |named: &Named| match named {
        Named::All => "*".to_owned(),
        Named::Codes(codes) => codes.iter().map(|code| &text[code.range()]).collect::<Vec<_>>().join("+"),
    };
    let directive = |it: &Directive| {
        let kind = match &it.kind {
            DirectiveKind::Ignore(named) => show(named),
            DirectiveKind::IgnoreFile(named) => format!("file {}", show(named)),
            DirectiveKind::Malformed(why) => (*why).to_owned(),
        };
        let target = match it.target {
            Target::Here { line, statements } => text[statements.unwrap_or(line).range()].to_owned(),
            Target::Next => "next".to_owned(),
        };
        (kind, target)
    };
    segment.directives().iter().map(directive).collect()
}

fn one(text: &str) -> (String, String) {
    let found = directives(text);
    assert_eq!(found.len(), 1, "{text}");
    found.into_iter().next().unwrap_or_default()
}

fn pair(kind: &str, target: &str) -> (String, String) {
    (kind.to_owned(), target.to_owned())
}

#[test]
fn codes_in_brackets() {
    assert_eq!(one("x  # rx: ignore[RX0651]\n"), pair("RX0651", "x"));
    assert_eq!(one("x  #rx:ignore[ RX0651 ,slice-end-clamped ] because\n"), pair("RX0651+slice-end-clamped", "x"));
    assert_eq!(one("x  # why # rx: ignore-file [RX0651]\n"), pair("file RX0651", "x"));
    assert_eq!(one("x  # rx: ignore\n"), pair("*", "x"));
    assert_eq!(one("x  # rx: ignore for now\n"), pair("*", "x"));
}

#[test]
fn malformed_directives_are_reported() {
    assert_eq!(directives("x  # rx: the receiver\ny = '# rx: ignore'\n# rx ignore\n"), []);
    assert_eq!(one("x  # rx: ignore[RX0651\n").0, "the bracket is not closed");
    assert_eq!(one("x  # rx: ignore[]\n").0, "there is no code where one belongs");
    assert_eq!(one("x  # rx: ignore[RX0651,]\n").0, "there is no code where one belongs");
    assert!(one("x  # rx: ignore RX0651\n").0.starts_with("the codes must be in brackets"));
    assert!(one("x  # rx: ignore:RX0651\n").0.starts_with("the word must be followed by codes"));
    assert!(one("x  # rx: ignroe[RX0651]\n").0.starts_with("rx knows"));
}

#[test]
fn the_line_and_its_statements() {
    assert_eq!(one("a = 1\nb = f(  # rx: ignore\n  2)\nc = 3\n"), pair("*", "b = f(  # rx: ignore\n  2)"));
    assert_eq!(one("a = 1\nb = f(\n  2)  # rx: ignore\nc = 3\n"), pair("*", "b = f(\n  2)"));
    assert_eq!(one("b = f(\n  1,  # rx: ignore\n  2)\n"), pair("*", "  1,  # rx: ignore"));
    assert_eq!(one("b = f(\n  # rx: ignore\n  1,\n  2)\n"), pair("*", "  1,"));
    assert_eq!(one("a = 1\n# rx: ignore\n\n# more\nb = f(\n  2)\n"), pair("*", "b = f(\n  2)"));
    assert_eq!(one("a = 1; b = 2  # rx: ignore\n"), pair("*", "a = 1; b = 2"));
    assert_eq!(one("a = 1\n# rx: ignore\n"), pair("*", "next"));
}

#[test]
fn removal_of_a_directive_includes_its_blanks_and_line() {
    let removed = |text: &str| {
        let segment = Segment::new(text.into());
        let removal = segment.directives()[0].removal;
        let mut left = text.to_owned();
        left.replace_range(removal.range(), "");
        left
    };
    assert_eq!(removed("a  # rx: ignore why\r\nb\n"), "a\r\nb\n");
    assert_eq!(removed("a  # why # rx: ignore\n"), "a  # why\n");
    assert_eq!(removed("a\r\n  # rx: ignore\r\nb\n"), "a\r\nb\n");
    assert_eq!(removed("a\n  # rx: ignore"), "a\n");
}
