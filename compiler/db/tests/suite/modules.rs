//! Tests the modules of a document.

use rx_db::{Document, FileKind, modules};

fn labels(text: &str) -> Vec<(String, u32)> {
    modules(&Document::new(text, FileKind::Rx)).into_iter().map(|row| (row.label, row.line)).collect()
}

#[test]
fn modules_of_one_name_are_numbered() {
    let class = |name: &str| format!("@I.ir_module\nclass {name}:\n    @R.function\n    def f(x):\n        return x\n");
    let text = ["A", "B", "A"].map(class).concat();
    let label = |label: &str, line| (label.to_owned(), line);
    assert_eq!(labels(&text), [label("A#1", 2), label("B", 7), label("A#2", 12)]);
}

#[test]
fn functions_outside_of_modules_come_first() {
    let text = "@I.ir_module\nclass A:\n    x = 1\n\n@R.function\ndef f(x):\n    return x\n";
    assert_eq!(labels(text), [("-".to_owned(), 6), ("A".to_owned(), 2)]);
    assert_eq!(labels("# nothing\n"), []);
}
