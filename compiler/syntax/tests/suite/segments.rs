//! Tests of segments, and of the sharing of trees between lines.

use rx_syntax::{Segment, syntax_diagnostics};
use std::sync::Arc;

fn statements(text: &str) -> Vec<(u32, bool, String)> {
    let segment = Segment::new(text.into());
    let statements = segment.tree().statements.iter();
    statements.map(|s| (s.indent, s.inline, text[s.span.range()].to_owned())).collect()
}

#[test]
fn statements_of_lines_and_parts_of_lines() {
    let expected = [(0, false, "if a[1:2]:"), (0, true, "b = 1"), (0, true, "c"), (4, false, "x")];
    let expected = expected.map(|(indent, inline, text)| (indent, inline, text.to_owned()));
    assert_eq!(statements("# head\nif a[1:2]: b = 1; c  # why\n    x\n"), expected);
    assert_eq!(statements("\tx; \n"), [(8, false, "x".to_owned())]);
    assert_eq!(statements("\u{feff}# nothing\n\\\n"), []);
}

#[test]
fn only_simple_statements_share_a_line() {
    let mistakes = |text: &str| {
        let segment = Segment::new(text.into());
        let of = |mistake: rx_base::Diagnostic<rx_base::Span>| text[mistake.primary.range()].to_owned();
        syntax_diagnostics(&segment).into_iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(mistakes("if a: b = 1; c = 2\n"), [""; 0]);
    assert_eq!(mistakes("if a: else:\n    b = 1\n"), ["else"]);
    assert_eq!(mistakes("a = 1; with b:\n"), ["with"]);
    assert_eq!(mistakes("a = 1; @b\n"), ["@"]);
    assert_eq!(mistakes("@a; b\ndef f(): pass\n"), [";"]);
}

#[test]
fn lines_and_comments_are_counted() {
    let segment = Segment::new("a # 1\r\nb\rc\n# é".into());
    assert_eq!(segment.line_count(), 3);
    assert!(!segment.is_ascii());
    let comments: Vec<&str> = segment.comments().map(|span| &segment.text()[span.range()]).collect();
    assert_eq!(comments, ["# 1", "# é"]);
}

#[test]
fn lines_of_one_shape_share_a_tree() {
    let segment = Segment::new("a = f(b, 1)\nx = g(y, 2)\nx = g(2, y)\n".into());
    let [first, second, third] = &*segment.tree().statements else { panic!("three statements") };
    assert!(Arc::ptr_eq(&first.tree, &second.tree));
    assert_ne!(first.tree, third.tree);
}

#[test]
fn evicted_shapes_give_equal_trees() {
    let operators = |n: usize| (0..13).map(|bit| if n >> bit & 1 == 0 { " + a" } else { " - a" }).collect::<String>();
    let text: String = (0..5000).chain(0..1).map(|n| format!("x{}\n", operators(n))).collect();
    let segment = Segment::new(text.into());
    let statements = &segment.tree().statements;
    assert_eq!(statements[0].tree, statements[5000].tree);
    assert!(statements.iter().all(|statement| statement.tree.error.is_none()));
}
