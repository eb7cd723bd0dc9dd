//! Runs `rxcheck` on the project's examples and expects the mistake that each was written for.

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

/// The examples with mistakes, and the mistake of each.
const MISTAKES: [(&str, &str); 4] = [
    ("conv_relu_mismatch", "42:40: error[RX0501]"),
    ("conv_transpose_layout", "14:87: error[RX0402]"),
    ("lifted_params_raw_weight", "32:66: warning[RX0951]"),
    ("take_out_of_range", "14:73: error[RX0601]"),
];

#[test]
fn examples_of_mistakes_have_one_each() {
    let output = rxcheck(&["--format", "concise", "--color", "never", "examples"]);
    let lines = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{lines}");
    let expected: Vec<String> = MISTAKES.iter().map(|(name, found)| format!("examples/{name}.rx:{found} ")).collect();
    assert_eq!(lines.lines().count(), expected.len(), "{lines}");
    for (line, expected) in lines.lines().zip(expected) {
        assert!(line.starts_with(&expected), "{line}");
    }
}

#[test]
fn other_examples_have_no_mistakes() {
    let entries = std::fs::read_dir(root().join("examples")).expect("INVARIANT: the examples are part of the project");
    let names =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().strip_suffix(".rx")?.to_owned()));
    let valid: Vec<String> = names.filter(|name| MISTAKES.iter().all(|(mistake, _)| mistake != name)).collect();
    assert!(valid.len() >= 11, "{valid:?}");
    for name in valid {
        let output = rxcheck(&["--error-on-warning", &format!("examples/{name}.rx")]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stdout(&output));
    }
}

#[test]
fn example_of_the_readme_quotes_its_own_error() {
    let example = std::fs::read_to_string(root().join("examples/conv_relu_mismatch.rx"));
    let example = example.expect("INVARIANT: the example is part of the project");
    let printed = stdout(&rxcheck(&["--color", "never", "examples/conv_relu_mismatch.rx"]));
    let title = printed.lines().next().unwrap_or_default();
    assert!(title.starts_with("error[") && example.contains(title), "{title}");
}
