//! Compares the output of each `--format` with a file in `tests/formats`. `UPDATE_EXPECT=1` rewrites the files.

use expect_test::expect_file;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const NET: &str = include_str!("../formats/net.rx");

/// Creates a folder with a file with two mistakes and one without.
fn folder() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("net.rx"), NET).expect("a file");
    let good = "@R.function\ndef main(x: R.Tensor((4,), dtype=\"float32\")):\n    return x\n";
    fs::write(folder.path().join("good.rx"), good).expect("a file");
    folder
}

fn rxcheck(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxcheck"));
    command.env_remove("GITHUB_WORKSPACE").env_remove("CI_PROJECT_DIR");
    command.current_dir(folder).args(arguments).output().expect("rxcheck runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Returns the output of a format for these files and a missing one.
fn written(format: &str) -> String {
    let folder = folder();
    let output = rxcheck(folder.path(), &["--format", format, "net.rx", "good.rx", "missing.rx"]);
    assert_eq!(output.status.code(), Some(2));
    stdout(&output)
}

fn indented(json: &str) -> (Value, String) {
    let value: Value = serde_json::from_str(json).expect("JSON");
    let text = serde_json::to_string_pretty(&value).expect("JSON");
    (value, text + "\n")
}

#[test]
fn text() {
    expect_file!["../formats/text.txt"].assert_eq(&written("text"));
    assert_eq!(written("full"), written("text"), "the old name");
}

#[test]
fn concise() {
    expect_file!["../formats/concise.txt"].assert_eq(&written("concise"));
}

#[test]
fn github() {
    expect_file!["../formats/github.txt"].assert_eq(&written("github"));
}

#[test]
fn junit() {
    expect_file!["../formats/junit.xml"].assert_eq(&written("junit"));
}

#[test]
fn gitlab() {
    let (report, text) = indented(&written("gitlab"));
    expect_file!["../formats/gitlab.json"].assert_eq(&text);
    // Additional lines before an issue do not change its fingerprint.
    let folder = folder();
    fs::write(folder.path().join("net.rx"), format!("# more\n\n{NET}")).expect("a file");
    let (moved, _) = indented(&stdout(&rxcheck(folder.path(), &["--format", "gitlab", "net.rx"])));
    let marks = |report: &Value| -> Vec<Value> {
        report.as_array().expect("an array").iter().map(|issue| issue["fingerprint"].clone()).collect()
    };
    assert_eq!(marks(&report), marks(&moved));
    assert_ne!(report, moved);
}

#[test]
fn sarif() {
    let (log, _) = indented(&written("sarif"));
    // Versions and the pages of codes change independently of the format.
    let mut shown = log.clone();
    shown["runs"][0]["tool"]["driver"]["version"] = "VERSION".into();
    for rule in shown["runs"][0]["tool"]["driver"]["rules"].as_array_mut().expect("rules") {
        rule["help"]["markdown"] = "PAGE".into();
    }
    let text = serde_json::to_string_pretty(&shown).expect("JSON") + "\n";
    expect_file!["../formats/sarif.json"].assert_eq(&text);
    let run = &log["runs"][0];
    let rules: Vec<&Value> = run["tool"]["driver"]["rules"].as_array().expect("rules").iter().collect();
    assert!(rules.iter().all(|rule| rule["help"]["markdown"].as_str().is_some_and(|page| !page.is_empty())));
    for result in run["results"].as_array().expect("results") {
        assert!(rules.iter().any(|rule| rule["id"] == result["ruleId"]), "{result}");
    }
}

/// Documents are complete even if there is nothing to report.
#[test]
fn documents_of_nothing() {
    let folder = folder();
    fs::create_dir(folder.path().join("empty")).expect("a folder");
    for paths in [["good.rx"], ["empty"]] {
        let of = |format| stdout(&rxcheck(folder.path(), &["--format", format, paths[0]]));
        assert_eq!(of("gitlab"), "[]\n");
        let (log, _) = indented(&of("sarif"));
        assert_eq!((&log["version"], &log["runs"][0]["results"]), (&"2.1.0".into(), &Value::Array(Vec::new())));
        assert!(of("junit").ends_with("</testsuites>\n") && of("junit").contains("failures=\"0\" errors=\"0\""));
    }
}

#[test]
fn servers_know_paths_by_their_project() {
    let folder = folder();
    fs::create_dir(folder.path().join("nets")).expect("a folder");
    fs::rename(folder.path().join("net.rx"), folder.path().join("nets/net.rx")).expect("a file");
    let run = |format, root| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxcheck"));
        command.current_dir(folder.path().join("nets")).env(root, folder.path().canonicalize().expect("a folder"));
        stdout(&command.args(["--format", format, "net.rx"]).output().expect("rxcheck runs"))
    };
    assert!(run("github", "GITHUB_WORKSPACE").contains("file=nets/net.rx,"));
    assert!(run("gitlab", "CI_PROJECT_DIR").contains("\"path\":\"nets/net.rx\""));
    assert!(run("concise", "CI_PROJECT_DIR").starts_with("net.rx:"));
}

#[test]
fn output_goes_to_a_file_whole_or_not_at_all() {
    let folder = folder();
    let output = rxcheck(folder.path(), &["--format", "json", "-o", "found.jsonl", "net.rx"]);
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("", Some(1)));
    let text = fs::read_to_string(folder.path().join("found.jsonl")).expect("the file");
    assert_eq!(text, stdout(&rxcheck(folder.path(), &["--format", "json", "net.rx"])));
    let output = rxcheck(folder.path(), &["--format", "sarif", "-o", "none/found.sarif", "net.rx"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("rxcheck: none/found.sarif: no such file or folder\n"));
    let left: Vec<_> = fs::read_dir(folder.path()).expect("the folder").filter_map(Result::ok).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn types_have_no_form_for_servers() {
    let folder = folder();
    let output = rxcheck(folder.path(), &["--types", "--format", "sarif", "good.rx"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--types requires --format text, concise or json"));
}

#[test]
fn completions_name_every_option() {
    let folder = folder();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&rxcheck(folder.path(), &["--completions", shell]));
        assert!(
            ["output-file", "error-on-warning", "max-diagnostics"].iter().all(|word| script.contains(word)),
            "{shell}"
        );
    }
}
