//! Golden tests of full reports, without colours.

use super::full;
use crate::Source;
use rx_base::{Code, Diagnostic, Fix, Severity, Span};

/// Returns the span of the first `needle` in `text`.
fn find(text: &str, needle: &str) -> Span {
    let start = text.find(needle).unwrap_or_else(|| panic!("no {needle:?} in the text"));
    Span::new(start as u32, (start + needle.len()) as u32)
}

fn diagnostic(text: &str, needle: &str) -> Diagnostic<Span> {
    Diagnostic::new(Code::CallTirArgMismatch, find(text, needle), "it does not fit")
}

#[track_caller]
fn check(text: &str, diagnostic: &Diagnostic<Span>, expected: &str) {
    let report = full(&Source::new("net.rx", text), diagnostic, false);
    assert_eq!(report, expected.strip_prefix('\n').unwrap_or(expected), "got:\n{report}");
}

#[test]
fn labels_notes_and_help() {
    let text = "class Module:\n    def main(x):\n        lv = R.call_tir(cls.relu, (y,), out_ty=T)\n";
    let diagnostic = diagnostic(text, "y")
        .with_primary_label("this is `R.Tensor((1, 32), \"float32\")`")
        .with_label(find(text, "x"), "its shape comes from here")
        .with_note("dim 1 is 32 here\nand 64 there")
        .with_help("pass a tensor of shape (1, 64)");
    let expected = r#"
error[RX0501 call-tir-arg-mismatch]: it does not fit
   ╭─[ net.rx:3:36 ]
   │
 2 │     def main(x):
   │              ┬
   │              ╰── its shape comes from here
 3 │         lv = R.call_tir(cls.relu, (y,), out_ty=T)
   │                                    ┬
   │                                    ╰── this is `R.Tensor((1, 32), "float32")`
   │
   │ note: dim 1 is 32 here
   │       and 64 there
   │ help: pass a tensor of shape (1, 64)
───╯
"#;
    check(text, &diagnostic, expected);
}

#[test]
fn lines_far_apart_keep_their_numbers() {
    let text = format!("first\n{}last\n", "\n".repeat(99_998));
    let diagnostic = diagnostic(&text, "last").with_label(find(&text, "first"), "since here");
    let expected = "
error[RX0501 call-tir-arg-mismatch]: it does not fit
        ╭─[ net.rx:100000:1 ]
        │
      1 │ first
        │ ┬────
        │ ╰────── since here
        │
 100000 │ last
        │ ┬───
        │ ╰───── here
────────╯
";
    check(&text, &diagnostic, expected);
}

#[test]
fn a_place_of_many_lines_shows_its_first_and_its_last() {
    let text = "one\ntwo\nthree\nfour\nfive\n";
    let diagnostic = diagnostic(text, "two\nthree\nfour\n").with_primary_label("all of this");
    let expected = "
error[RX0501 call-tir-arg-mismatch]: it does not fit
   ╭─[ net.rx:2:1 ]
   │
 2 │ ╭─▶ two
   ┆ ┆
 4 │ ├─▶ four
   │ │
   │ ╰────────── all of this
───╯
";
    check(text, &diagnostic, expected);
}

#[test]
fn a_long_line_is_shown_as_windows() {
    let text = format!("def main({}, bad: R.Tensor, {}) -> R.Any:\n", "a, ".repeat(40_000), "b, ".repeat(40_000));
    let diagnostic = diagnostic(&text, "bad").with_label(find(&text, "def"), "in this function");
    let expected = "
error[RX0501 call-tir-arg-mismatch]: it does not fit
   ╭─[ net.rx:1:120012 ]
   │
 1 │ def main(a, a, a, a, a, a, a, a…, a, a, a, a, a, a, a, a, , bad: R.Tensor, b, b, b, b, b, b…
   │ ┬──                                                         ┬──
   │ ╰──────────────────────────────────────────────────────────────── in this function
   │                                                             │
   │                                                             ╰──── here
───╯
";
    check(&text, &diagnostic, expected);
}

#[test]
fn tabs_wide_characters_and_emoji_stay_aligned() {
    let text = "\t漢字 = f(🙂,\tx)\r\n\ty\r\n";
    let diagnostic = diagnostic(text, "x").with_label(find(text, "漢字"), "this name").with_label(find(text, "y"), "y");
    let expected = "
error[RX0501 call-tir-arg-mismatch]: it does not fit
   ╭─[ net.rx:1:12 ]
   │
 1 │     漢字 = f(🙂,    x)
   │     ┬───            ┬
   │     ╰────────────────── this name
   │                     │
   │                     ╰── here
 2 │     y
   │     ┬
   │     ╰── y
───╯
";
    check(text, &diagnostic, expected);
}

#[test]
fn the_end_of_a_line_and_of_the_file() {
    let end_of_line = Diagnostic::new(Code::SyntaxError, Span::empty(5), "expected `)`");
    let expected = "
error[RX0101 syntax-error]: expected `)`
   ╭─[ net.rx:1:6 ]
   │
 1 │ x = (
   │      ┬
   │      ╰── here
───╯
";
    check("x = (\r\ny\r\n", &end_of_line, expected);
    let behind_the_end = Diagnostic::new(Code::SyntaxError, Span::new(70, 80), "expected `)`");
    let expected = "
error[RX0101 syntax-error]: expected `)`
   ╭─[ net.rx:2:1 ]
   │
 2 │
   │ ┬
   │ ╰── here
───╯
";
    check("x = (\n", &behind_the_end, expected);
    check("", &behind_the_end, &expected.replace("2:1", "1:1").replace(" 2 │", " 1 │"));
}

#[test]
fn a_fix_is_named_where_no_help_is_given() {
    let text = "x = 1\n";
    let mut diagnostic = diagnostic(text, "1").with_fix(Fix { title: "use 2".into(), edits: vec![], safe: true });
    diagnostic.severity = Severity::Warning;
    let expected = "
warning[RX0501 call-tir-arg-mismatch]: it does not fit
   ╭─[ net.rx:1:5 ]
   │
 1 │ x = 1
   │     ┬
   │     ╰── here
   │
   │ help: use 2
───╯
";
    check(text, &diagnostic, expected);
}

#[test]
fn many_labels_are_cut_and_counted() {
    let text = "abcdefghijklmnopqrstuvwxyz\n";
    let labels = (1..20).fold(diagnostic(text, "a"), |d, at| d.with_label(Span::new(at, at + 1), format!("{at}")));
    let report = full(&Source::new("net.rx", text), &labels, false);
    assert!(report.contains("note: 7 more places are not shown"), "{report}");
    assert_eq!(report.matches('╰').count(), 13);
}

#[test]
fn colours_change_nothing_but_colour() {
    let text = "class Module:\n    def main(x):\n        return y\n";
    let diagnostic = diagnostic(text, "y").with_label(find(text, "x"), "x").with_note("n").with_help("h");
    let source = Source::new("net.rx", text);
    let mut colored = full(&source, &diagnostic, true);
    assert!(colored.contains("\x1b[31m"));
    while let Some((head, tail)) = colored.split_once('\x1b') {
        let tail = tail.split_once('m').map_or("", |(_, tail)| tail);
        colored = format!("{head}{tail}");
    }
    assert_eq!(colored, full(&source, &diagnostic, false));
}

/// Draws labels at any two places of several texts; the lines must be right and nothing must panic.
#[test]
fn every_pair_of_places_renders() {
    let long = format!("\u{FEFF}{}\t漢\r\n🙂\n\n{}é", "é".repeat(200), "x, ".repeat(100));
    for text in ["", "\n", "\r\n\r\n", "\u{FEFF}", "\u{FEFF}a\n\x0B\x0C\u{2028}b\r", "a\u{301}\u{200D}\n🙂", &long] {
        let step = (text.len() / 40).max(1);
        let places: Vec<u32> = (0..text.len() + 3).step_by(step).map(|at| at as u32).collect();
        for &start in &places {
            for &end in &places {
                let diagnostic = Diagnostic::new(Code::SyntaxError, Span::new(start, end), "m")
                    .with_label(Span::new(end, start), "backwards")
                    .with_label(Span::new(start, start), "empty");
                let report = full(&Source::new("t.rx", text), &diagnostic, false);
                assert_eq!(report.matches("empty").count(), 1, "{text:?} {start} {end}\n{report}");
            }
        }
    }
}
