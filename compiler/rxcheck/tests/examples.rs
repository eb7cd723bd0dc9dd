//! The README's first command on the project's own examples: what it shows, and that the README shows the same.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rxcheck(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rxcheck"))
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("INVARIANT: cargo builds the binary before its tests")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The README's report: the code block that begins with `error[`.
fn report_in_readme() -> String {
    let readme =
        std::fs::read_to_string(root().join("README.md")).expect("INVARIANT: the README is part of the project");
    let block = readme.split("```").find(|block| block.trim_start().starts_with("error["));
    block.expect("INVARIANT: the README shows a report of rx").trim().to_owned()
}

#[test]
fn one_example_is_wrong_and_only_once() {
    let output = rxcheck(&["--format", "concise", "--color", "never", "examples"]);
    let lines = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{lines}");
    assert_eq!(lines.lines().count(), 1, "{lines}");
    assert!(lines.contains("conv_relu_mismatch.rx:42:40: error[RX0501]"), "{lines}");
}

#[test]
fn the_others_are_right() {
    for name in ["resnet18", "convnet", "transformer_block", "prim_func", "handwritten", "classic_spelling"] {
        let output = rxcheck(&["--error-on-warning", &format!("examples/{name}.rx")]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stdout(&output));
    }
}

#[test]
fn the_readme_shows_what_is_printed() {
    let printed = stdout(&rxcheck(&["--color", "never", "examples"]));
    assert!(printed.contains(&report_in_readme()), "{printed}");
}

#[test]
fn the_example_quotes_its_own_error() {
    let example = std::fs::read_to_string(root().join("examples/conv_relu_mismatch.rx"));
    let example = example.expect("INVARIANT: the example is part of the project");
    let report = report_in_readme();
    let title = report.lines().next().unwrap_or_default();
    assert!(example.contains(title), "{title}");
}
