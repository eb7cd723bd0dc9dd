//! Tests of the binary: exit status and output for given files.

use crate::harness::{command, folder, rxcheck, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

/// A module without a mistake.
const GOOD: &str = "\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), dtype=\"float32\")) -> R.Tensor((4,), dtype=\"float32\"):
        with R.dataflow():
            gv: R.Tensor((4,), dtype=\"float32\") = R.nn.relu(x)
            R.output(gv)
        return gv
";

/// The same module with a misspelt operator in line 6.
fn bad() -> String {
    GOOD.replace("nn.relu", "nn.rellu")
}

fn with_stdin(arguments: &[&str], text: &[u8]) -> Output {
    let folder = folder(&[]);
    let mut child = command(folder.path(), arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("rxcheck starts");
    child.stdin.take().expect("a pipe").write_all(text).expect("rxcheck reads all");
    child.wait_with_output().expect("rxcheck ends")
}

fn objects(output: &Output) -> Vec<Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).expect("a JSON object")).collect()
}

#[test]
fn a_good_file_is_passed_in_silence() {
    let folder = folder(&[("a.rx", GOOD)]);
    let output = rxcheck(&folder, &["a.rx"]);
    assert_eq!((stdout(&output), stderr(&output)), ("", "ok: 1 file, no mistakes\n"));
    assert_eq!(output.status.code(), Some(0));
    let output = rxcheck(&folder, &["--format", "concise", "a.rx"]);
    assert_eq!((stdout(&output), stderr(&output)), ("", ""));
}

#[test]
fn spans_are_logged_where_verbose_or_the_variable_asks() {
    let folder = folder(&[("a.rx", GOOD)]);
    let span = "check{item=\"main\"}";
    let verbose = rxcheck(&folder, &["--verbose", "a.rx"]);
    assert!(stderr(&verbose).contains(span) && stderr(&verbose).contains("time.busy="), "{}", stderr(&verbose));
    assert_eq!((stdout(&verbose), verbose.status.code()), ("", Some(0)));

    let with = |wanted: &str| command(folder.path(), &["a.rx"]).env("RX_LOG", wanted).output().expect("rxcheck starts");
    assert!(stderr(&with("rx_db=debug")).contains(span));
    assert!(!stderr(&with("rx_lower=debug")).contains(span));
    let refused = with("rx_db=loud");
    assert!(stderr(&refused).starts_with("rxcheck: RX_LOG requires targets and levels"), "{}", stderr(&refused));
    assert_eq!((stdout(&refused), refused.status.code()), ("", Some(2)));
}

#[test]
fn a_mistake_is_shown_in_full_and_fails() {
    let folder = folder(&[("a.rx", &bad())]);
    let output = rxcheck(&folder, &["a.rx"]);
    let report = stdout(&output);
    assert!(report.starts_with("error[RX0202 unknown-operator]: "), "{report}");
    assert!(report.contains("a.rx:6:") && report.contains("= R.nn.rellu(x)"), "{report}");
    assert!(!report.contains('\x1b'), "no colour off a terminal");
    assert_eq!(stderr(&output), "1 error in 1 file (1 checked)\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn colour_is_the_users_choice() {
    let folder = folder(&[("a.rx", &bad())]);
    assert!(stdout(&rxcheck(&folder, &["--color", "always", "a.rx"])).contains("\x1b[31m"));
    let mut refused = command(folder.path(), &["--color", "always", "a.rx"]);
    let output = refused.env("NO_COLOR", "1").output().expect("rxcheck runs");
    assert!(stdout(&output).contains('\x1b'), "an option outranks the environment");
}

#[test]
fn concise_is_one_line_each() {
    let folder = folder(&[("a.rx", &bad()), ("b.rx", &bad())]);
    let output = rxcheck(&folder, &["--format", "concise", "b.rx", "a.rx", "./b.rx"]);
    let lines: Vec<&str> = stdout(&output).lines().collect();
    assert_eq!(lines.len(), 2, "a file named twice is checked once");
    assert!(lines[0].starts_with("b.rx:6:") && lines[1].starts_with("a.rx:6:"), "{lines:?}");
    assert!(lines[0].contains(": error[RX0202] "), "{lines:?}");
}

#[test]
fn json_keeps_its_contract() {
    let folder = folder(&[("a.rx", &format!("# 漢字\n{}", bad()))]);
    let output = rxcheck(&folder, &["--format", "json", "a.rx"]);
    let objects = objects(&output);
    let object = objects.first().expect("a diagnostic");
    assert_eq!(object["file"], "a.rx");
    assert_eq!(object["code"], "RX0202");
    assert_eq!(object["name"], "unknown-operator");
    assert_eq!(object["severity"], "error");
    assert_eq!(object["line"], 7);
    for field in ["line", "column", "end_line", "end_column"] {
        assert!(object[field].as_u64().is_some_and(|n| n > 0), "{field}");
    }
    for field in ["labels", "notes", "help", "fixes"] {
        assert!(object[field].is_array(), "{field}");
    }
    assert!(object["message"].is_string() && object["label"].is_string());
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn types_are_listed_instead_of_diagnostics() {
    let folder = folder(&[("a.rx", GOOD)]);
    let output = rxcheck(&folder, &["--types", "--format", "json", "a.rx"]);
    let objects = objects(&output);
    let object = objects.iter().find(|row| row["kind"] == "param").expect("a parameter");
    assert_eq!((&object["file"], &object["function"], &object["name"]), (&"a.rx".into(), &"main".into(), &"x".into()));
    assert!(object["struct_info"].as_str().is_some_and(|text| text.starts_with("R.Tensor(")));
    assert!(object["inferred"].is_boolean() && object["line"].is_u64() && object["column"].is_u64());
    let output = rxcheck(&folder, &["--types", "a.rx"]);
    assert!(stdout(&output).contains(": param main.x: R.Tensor("), "{}", stdout(&output));
}

#[test]
fn types_of_discarded_values_are_not_listed() {
    let text = "@R.function(pure=False)
def main(_: R.Tensor((4,), dtype=\"float32\"), x: R.Tensor((4,), dtype=\"float32\")):
    R.print(x, format=\"{}\")
    _ = R.nn.relu(x)
    y = R.nn.relu(x)
    return y
";
    let folder = folder(&[("a.rx", text)]);
    let objects = objects(&rxcheck(&folder, &["--types", "--format", "json", "a.rx"]));
    let listed: Vec<(&str, &str)> =
        objects.iter().map(|row| (row["kind"].as_str().unwrap_or(""), row["name"].as_str().unwrap_or(""))).collect();
    assert_eq!(listed, [("param", "_"), ("param", "x"), ("binding", "y"), ("return", "return")]);
}

#[test]
fn standard_input_is_checked_under_a_name() {
    let output = with_stdin(&["--format", "concise", "-"], bad().as_bytes());
    assert!(stdout(&output).starts_with("<stdin>:6:"), "{}", stdout(&output));
    let output = with_stdin(&["--format", "concise", "--stdin-name", "net.rx", "-"], bad().as_bytes());
    assert!(stdout(&output).starts_with("net.rx:6:"), "{}", stdout(&output));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn folders_are_searched_for_relax_text() {
    let bad = bad();
    let latin = "# -*- coding: latin-1 -*-\nprint('x')\n";
    let folder = folder(&[
        ("nets/b.rx", &bad),
        ("nets/a.rx", &bad),
        ("nets/deep/c.py", &bad),
        ("nets/plain.py", "print('hello')\n"),
        ("nets/latin.py", latin),
        ("nets/notes.txt", &bad),
        ("nets/.hidden/d.rx", &bad),
        ("nets/target/e.rx", &bad),
    ]);
    fs::write(folder.path().join("nets/latin.py"), b"# -*- coding: latin-1 -*-\nprint('\xE9')\n").expect("a file");
    let output = rxcheck(&folder, &["--format", "concise", "nets"]);
    let files: Vec<&str> = stdout(&output).lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(files, ["nets/a.rx", "nets/b.rx", "nets/deep/c.py"]);
    assert_eq!(stderr(&output), "3 errors in 3 files (3 checked)\n");
    // A named folder is searched even if its name is one that is skipped.
    let output = rxcheck(&folder, &["--format", "concise", "nets/target"]);
    assert!(stdout(&output).starts_with("nets/target/e.rx:"));
}

#[test]
fn folder_without_relax_is_reported() {
    let folder = folder(&[("plain.py", "print('hello')\n")]);
    let output = rxcheck(&folder, &["."]);
    assert_eq!((stderr(&output), output.status.code()), ("rxcheck: no Relax text found\n", Some(0)));
    let output = rxcheck(&folder, &["plain.py"]);
    assert!(stderr(&output).starts_with("plain.py: no `@I.ir_module`"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn cyclic_links_and_pipes_do_not_block() {
    let folder = folder(&[("nets/a.rx", &bad())]);
    std::os::unix::fs::symlink(folder.path().join("nets"), folder.path().join("nets/loop")).expect("a link");
    std::os::unix::fs::symlink("a.rx", folder.path().join("nets/link.rx")).expect("a link");
    std::os::unix::fs::symlink("nowhere.rx", folder.path().join("nets/dangling.rx")).expect("a link");
    let made = Command::new("mkfifo").arg(folder.path().join("nets/pipe.rx")).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: the part with a pipe, there is no mkfifo");
    }
    let output = rxcheck(&folder, &["--format", "concise", "nets"]);
    let files: Vec<&str> = stdout(&output).lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(files, ["nets/a.rx", "nets/link.rx"]);
}

#[test]
fn unreadable_file_is_reported_and_the_rest_checked() {
    let folder = folder(&[("a.rx", &bad())]);
    let output = rxcheck(&folder, &["--format", "concise", "missing.rx", "a.rx"]);
    assert!(stderr(&output).starts_with("rxcheck: missing.rx: no such file or folder\n"), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("a.rx:6:"));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn usage_errors_exit_with_2() {
    let folder = folder(&[]);
    assert_eq!(rxcheck(&folder, &[]).status.code(), Some(2));
    assert_eq!(rxcheck(&folder, &["--format", "xml", "a.rx"]).status.code(), Some(2));
    assert_eq!(rxcheck(&folder, &["--help"]).status.code(), Some(0));
}

#[test]
fn bytes_that_are_no_utf_8_are_a_mistake_with_a_place() {
    let output = with_stdin(&["--format", "json", "-"], b"# ok\n# \xE6\xBC\xA2 \xFF\n");
    let objects = objects(&output);
    assert_eq!(objects.len(), 1);
    let object = objects.first().expect("a diagnostic");
    assert_eq!((&object["code"], &object["line"], &object["column"]), (&"RX0113".into(), &2.into(), &5.into()));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = folder(&[("a.rx", &bad())]);
    let mut names = vec!["--format".to_owned(), "concise".to_owned()];
    for n in 0..300 {
        let name = format!("copy{n}.rx");
        fs::copy(folder.path().join("a.rx"), folder.path().join(&name)).expect("a copy");
        names.push(name);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut child =
        command(folder.path(), &names).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("rxcheck starts");
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
    assert_eq!(said, "");
    assert!(matches!(child.wait().expect("rxcheck ends").code(), Some(0 | 1)));
}

#[test]
fn max_diagnostics_limits_the_output() {
    let folder = folder(&[("a.rx", &bad()), ("b.rx", &bad()), ("c.rx", &bad())]);
    let output = rxcheck(&folder, &["--max-diagnostics", "1", "."]);
    assert_eq!(stdout(&output).matches("error[").count(), 1);
    assert!(stdout(&output).ends_with("… and 2 more (--max-diagnostics 0 prints all)\n"), "{}", stdout(&output));
    assert_eq!(stderr(&output), "3 errors in 3 files (3 checked)\n");
}

#[test]
fn quiet_prints_diagnostics_only() {
    let folder = folder(&[("a.rx", &bad()), ("b.rx", GOOD)]);
    let output = rxcheck(&folder, &["-q", "a.rx", "b.rx"]);
    assert!(stdout(&output).starts_with("error[") && stderr(&output).is_empty());
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn codes_are_explained() {
    let folder = folder(&[]);
    let output = rxcheck(&folder, &["--explain", "rx0501"]);
    let page = stdout(&output);
    assert!(page.starts_with("RX0501 call-tir-arg-mismatch\n\nError. "), "{page}");
    assert!(page.contains("\nRight\n\n    @I.ir_module\n"), "{page}");
    assert!(page.contains("# rx: ignore[RX0501]") && !page.contains("```"), "{page}");
    for spelling in ["call-tir-arg-mismatch", "RX501", "0501"] {
        assert_eq!(page, stdout(&rxcheck(&folder, &["--explain", spelling])));
    }
    let output = rxcheck(&folder, &["--explain", "call-tir-arg-mismach"]);
    assert!(stderr(&output).contains("did you mean `call-tir-arg-mismatch`?"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_is_an_error() {
    let folder = folder(&[("good.rx", GOOD), ("bad.rx", &bad())]);
    for arguments in [
        &["bad.rx"][..],
        &["bad.rx", "--format", "sarif"],
        &["good.rx", "--stats"],
        &["good.rx", "--why", "good.rx:6:13"],
        &["--sequence", "good.rx", "bad.rx"],
        &["--explain", "RX0251"],
        &["--completions", "bash"],
        &["--help"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let output = command(folder.path(), arguments).stdout(full).output().expect("rxcheck starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
    }
    let output = rxcheck(&folder, &["bad.rx", "--output-file", "/dev/full"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
