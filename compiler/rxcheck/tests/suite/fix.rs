//! Tests of `--fix`, `--unsafe-fixes`, `--annotate` and `--diff`.

use crate::harness::{command, folder, rxcheck, stderr, stdout};
use std::fs;
use std::io::Write;
use std::process::Stdio;
use tempfile::TempDir;

/// A text with a shape without its comma, which has a safe fix, and a misspelt operator, whose fix is a guess.
const TEXT: &str = "\
@R.function
def main(x: R.Tensor((4), \"float32\")):
    y = R.nn.rellu(x)  # a comment
    return y
";

const SAFE: &str = "(4,)";
const GUESSED: &str = "R.nn.relu(x)";

fn text_in(folder: &TempDir) -> String {
    fs::read_to_string(folder.path().join("a.rx")).expect("a file")
}

#[test]
fn safe_fixes_are_written_and_the_rest_is_reported() {
    let folder = folder(&[("a.rx", TEXT)]);
    let output = rxcheck(&folder, &["--fix", "--format", "concise", "a.rx"]);
    assert_eq!(text_in(&folder), TEXT.replace("(4)", SAFE));
    assert!(stdout(&output).starts_with("a.rx:3:9: error[RX0202]"), "{output:?}");
    let said = "fixed 1 mistake in 1 file (1 more with --unsafe-fixes)\n1 error in 1 file (1 checked)\n";
    assert_eq!((stderr(&output), output.status.code()), (said, Some(1)));
    let output = rxcheck(&folder, &["--fix", "--unsafe-fixes", "a.rx"]);
    assert_eq!(text_in(&folder), TEXT.replace("(4)", SAFE).replace("R.nn.rellu(x)", GUESSED));
    assert_eq!(stderr(&output), "fixed 1 mistake in 1 file\nok: 1 file, no mistakes\n");
    let output = rxcheck(&folder, &["--fix", "a.rx"]);
    assert_eq!((stderr(&output), output.status.code()), ("nothing fixed\nok: 1 file, no mistakes\n", Some(0)));
}

#[test]
fn a_diff_is_shown_and_nothing_is_written() {
    let folder = folder(&[("a.rx", TEXT)]);
    let output = rxcheck(&folder, &["--diff", "a.rx"]);
    let diff = "\
--- a.rx
+++ a.rx
@@ -1,4 +1,4 @@
 @R.function
-def main(x: R.Tensor((4), \"float32\")):
+def main(x: R.Tensor((4,), \"float32\")):
     y = R.nn.rellu(x)  # a comment
     return y
";
    assert_eq!((stdout(&output), output.status.code()), (diff, Some(1)));
    assert_eq!(stderr(&output), "would fix 1 mistake in 1 file (1 more with --unsafe-fixes)\n");
    assert_eq!(text_in(&folder), TEXT);
    fs::write(folder.path().join("a.rx"), TEXT.replace("(4)", SAFE)).expect("a file");
    let output = rxcheck(&folder, &["--diff", "a.rx"]);
    assert_eq!((stdout(&output), output.status.code()), ("", Some(0)), "a mistake without a safe fix is no change");
}

#[test]
fn line_ends_and_marks_stay() {
    let text = format!("\u{feff}{}", TEXT.replace('\n', "\r\n"));
    let folder = folder(&[("a.rx", &text)]);
    rxcheck(&folder, &["--fix", "a.rx"]);
    assert_eq!(text_in(&folder), text.replace("(4)", SAFE));
}

#[test]
fn standard_input_is_fixed_to_standard_output() {
    let folder = folder(&[("a.rx", "")]);
    let mut child = command(folder.path(), &["--fix", "--format", "concise", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("rxcheck starts");
    child.stdin.take().expect("a pipe").write_all(TEXT.as_bytes()).expect("rxcheck reads all");
    let output = child.wait_with_output().expect("rxcheck ends");
    assert_eq!(stdout(&output), TEXT.replace("(4)", SAFE));
    assert!(stderr(&output).starts_with("<stdin>:3:9: error[RX0202]"), "{output:?}");
}

#[test]
fn a_file_that_cannot_be_written_is_left_alone() {
    let folder = folder(&[("a.rx", TEXT)]);
    let path = folder.path().join("a.rx");
    let mut permissions = fs::metadata(&path).expect("a file").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).expect("a read-only file");
    let output = rxcheck(&folder, &["--fix", "a.rx"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("rxcheck: a.rx: the file is read-only\n"), "{output:?}");
    assert_eq!(text_in(&folder), TEXT);
    assert_eq!(fs::read_dir(folder.path()).map(Iterator::count).ok(), Some(1));
}

#[test]
fn unsafe_fixes_alone_are_a_mistake_of_usage() {
    let folder = folder(&[("a.rx", TEXT)]);
    let output = rxcheck(&folder, &["--unsafe-fixes", "a.rx"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text_in(&folder), TEXT);
}

#[test]
fn types_are_written_where_they_are_missing() {
    let text = TEXT.replace("(4)", SAFE).replace("R.nn.rellu(x)", GUESSED);
    let folder = folder(&[("a.rx", &text)]);
    let annotated = text
        .replace("\"float32\")):", "\"float32\")) -> R.Tensor((4,), dtype=\"float32\"):")
        .replace("y =", "y: R.Tensor((4,), dtype=\"float32\") =");
    let output = rxcheck(&folder, &["--annotate", "--diff", "a.rx"]);
    assert_eq!((text_in(&folder), output.status.code()), (text, Some(1)));
    assert!(stdout(&output).contains("+    y: R.Tensor((4,), dtype=\"float32\") = R.nn.relu(x)  # a comment\n"));
    assert_eq!(stderr(&output), "would annotate 2 values in 1 file\n");
    let output = rxcheck(&folder, &["--annotate", "a.rx"]);
    assert_eq!(text_in(&folder), annotated);
    assert_eq!(stderr(&output), "annotated 2 values in 1 file\nok: 1 file, no mistakes\n");
    let output = rxcheck(&folder, &["--annotate", "--diff", "a.rx"]);
    assert_eq!((stdout(&output), output.status.code()), ("", Some(0)), "annotating twice changes nothing");
}

#[test]
fn annotations_that_say_less_are_replaced_when_asked() {
    let text = "\
@R.function
def main(x: R.Tensor((4,), \"float32\")) -> R.Tensor:
    y: R.Tensor = R.nn.relu(x)
    z: R.Tensor = R.nn.relu(y)
    return z
";
    let folder = folder(&[("a.rx", text)]);
    rxcheck(&folder, &["--annotate", "a.rx"]);
    assert_eq!(text_in(&folder), text);
    let output = rxcheck(&folder, &["--annotate=all", "a.rx"]);
    let known = "R.Tensor((4,), dtype=\"float32\") =";
    assert_eq!(text_in(&folder), text.replace("R.Tensor =", known));
    assert_eq!(stderr(&output), "annotated 2 values in 1 file\nok: 1 file, no mistakes\n");
}
