//! Tests of `rx.toml` and of the options that override it.

use crate::harness::{command, folder, stderr, stdout};
use std::fs;
use std::process::Output;
use tempfile::TempDir;

/// A program with an unknown operator in line 3.
const NET: &str = "@R.function\ndef main(x: R.Tensor((4,), dtype=\"float32\")):\n    y = R.nn.rellu(x)\n    return y\n";
/// A Python program that captures a Python name in line 4.
const CAPTURED: &str = "size = read_size()\n@R.function\ndef main(x: R.Tensor((4,), dtype=\"float32\")):\n    y = R.reshape(x, (size,))\n    return y\n";

fn rxcheck(folder: &TempDir, arguments: &[&str]) -> Output {
    match arguments.contains(&"--format") {
        true => crate::harness::rxcheck(folder, arguments),
        false => crate::harness::rxcheck(folder, &[&["--format", "concise"], arguments].concat()),
    }
}

/// Returns the lines on standard output without their messages, and the exit status.
fn found(output: &Output) -> (Vec<String>, Option<i32>) {
    let line = |line: &str| line.split(']').next().unwrap_or_default().to_owned();
    (stdout(output).lines().map(line).collect(), output.status.code())
}

#[test]
fn severities_are_chosen_by_number_name_and_group() {
    let error = (vec!["a.rx:3:9: error[RX0202".to_owned()], Some(1));
    let cases = [
        ("", error.clone()),
        ("RX0202 = 'warning'", (vec!["a.rx:3:9: warning[RX0202".to_owned()], Some(0))),
        ("unknown-operator = 'off'", (Vec::new(), Some(0))),
        ("RX02 = 'off'", (Vec::new(), Some(0))),
        ("RX02 = 'off'\nRX0202 = 'error'", error.clone()),
        ("all = 'off'", (Vec::new(), Some(0))),
        ("RX03 = 'off'", error),
    ];
    for (severity, wanted) in cases {
        let folder = folder(&[("a.rx", NET), ("rx.toml", &format!("[severity]\n{severity}\n"))]);
        assert_eq!(found(&rxcheck(&folder, &["a.rx"])), wanted, "{severity}");
    }
}

#[test]
fn overrides_apply_to_matching_files() {
    let settings = "[[overrides]]\nfiles = ['generated', 'old*.rx']\nseverity = { all = 'off' }\n\
                    [[overrides]]\nfiles = ['generated/hand']\nseverity = { RX0202 = 'warning' }\n";
    let files = ["a.rx", "generated/b.rx", "generated/hand/c.rx", "nets/old1.rx"];
    let folder = folder(&[&files.map(|name| (name, NET))[..], &[("rx.toml", settings)]].concat());
    let lines = vec!["a.rx:3:9: error[RX0202".to_owned(), "generated/hand/c.rx:3:9: warning[RX0202".to_owned()];
    assert_eq!(found(&rxcheck(&folder, &["."])), (lines, Some(1)));
}

#[test]
fn the_nearest_settings_hold() {
    let off = "severity = { RX0202 = 'off' }\n";
    let folder = folder(&[("rx.toml", off), ("a.rx", NET), ("sub/rx.toml", ""), ("sub/deep/b.rx", NET)]);
    assert_eq!(found(&rxcheck(&folder, &["."])).0, ["sub/deep/b.rx:3:9: error[RX0202"]);
    assert_eq!(found(&rxcheck(&folder, &["--isolated", "."])).0.len(), 2);
    assert_eq!(found(&rxcheck(&folder, &["--config", "rx.toml", "."])).0.len(), 0);
    let output = rxcheck(&folder, &["--config", "none.toml", "."]);
    assert_eq!((stderr(&output), output.status.code()), ("rxcheck: none.toml: no such file or folder\n", Some(2)));
}

#[test]
fn include_and_exclude_select_files() {
    let files = [("a.rx", NET), ("dump.txt", NET), ("old/b.rx", NET), ("nets/old/c.rx", NET), ("d.py", NET)];
    let settings = [("rx.toml", "include = ['*.rx', '*.txt']\nexclude = ['old', 'nets/x']\n")];
    let folder = folder(&[&files[..], &settings].concat());
    let names = |arguments: &[&str]| -> Vec<String> {
        let (lines, _) = found(&rxcheck(&folder, arguments));
        lines.iter().filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
    };
    assert_eq!(names(&["."]), ["a.rx", "dump.txt"]);
    assert_eq!(names(&["old/b.rx", "d.py"]), ["old/b.rx", "d.py"], "what is named is checked");
    assert_eq!(names(&["--force-exclude", "old/b.rx", "a.rx"]), ["a.rx"]);
    assert_eq!(names(&["--isolated", "."]), ["a.rx", "d.py", "nets/old/c.rx", "old/b.rx"]);
}

#[test]
fn warnings_may_set_the_status() {
    let folder = folder(&[("a.py", CAPTURED), ("rx.toml", "error-on-warning = true\n")]);
    let line = vec!["a.py:4:23: warning[RX0251".to_owned()];
    assert_eq!(found(&rxcheck(&folder, &["a.py"])), (line.clone(), Some(1)));
    assert_eq!(found(&rxcheck(&folder, &["--isolated", "a.py"])), (line, Some(0)));
}

#[test]
fn command_line_overrides_the_file() {
    let folder = folder(&[("a.rx", NET), ("b.py", CAPTURED), ("rx.toml", "severity = { RX0202 = 'off' }\n")]);
    assert_eq!(found(&rxcheck(&folder, &["."])).0, ["b.py:4:23: warning[RX0251"]);
    assert_eq!(found(&rxcheck(&folder, &["--select", "RX0202", "."])).0, ["a.rx:3:9: error[RX0202"]);
    assert_eq!(
        found(&rxcheck(&folder, &["--select", "RX02", "--ignore", "captured-python-name,RX03", "."])).0.len(),
        1
    );
    assert_eq!(found(&rxcheck(&folder, &["--ignore", "all", "."])), (Vec::new(), Some(0)));
    let output = rxcheck(&folder, &["--ignore", "unknown-operatr", "a.rx"]);
    assert!(stderr(&output).contains("did you mean `unknown-operator`?"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn mistakes_in_the_file_are_drawn_on_it() {
    let settings = "inclued = []\n\n[severity]\nRX0202 = \"of\"\n";
    let folder = folder(&[("a.rx", NET), ("sub/rx.toml", settings), ("sub/b.rx", NET), ("sub/c.rx", NET)]);
    let output = rxcheck(&folder, &["--format", "text", "."]);
    let wanted = "\
error[RX0202 unknown-operator]: there is no operator `R.nn.rellu`
";
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    assert!(text.contains(wanted) && !text.contains("sub/b.rx"), "files it speaks of are not checked: {text}");
    assert!(text.contains("error[RX0002 unknown-setting]: rx.toml has no key `inclued`"), "{text}");
    assert!(text.contains("sub/rx.toml:1:1 ]") && text.contains("did you mean `include`?"), "{text}");
    assert!(text.contains("`severity.RX0202` takes `\"error\"`") && text.contains("sub/rx.toml:4:10 ]"), "{text}");
    assert_eq!(text.matches("error[RX000").count(), 2, "each once: {text}");
    assert_eq!(output.status.code(), Some(2));
    // Also in document formats.
    let output = rxcheck(&folder, &["--format", "sarif", "sub"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"uri\":\"sub/rx.toml\""));
}

#[test]
fn fixes_keep_code_that_is_not_reported() {
    let folder = folder(&[("a.rx", NET), ("rx.toml", "severity = { RX0202 = 'off' }\n")]);
    assert_eq!(rxcheck(&folder, &["--fix", "--unsafe-fixes", "a.rx"]).status.code(), Some(0));
    assert_eq!(fs::read_to_string(folder.path().join("a.rx")).ok().as_deref(), Some(NET));
}

#[test]
fn standard_input_uses_settings_of_its_name() {
    let folder = folder(&[("sub/rx.toml", "severity = { RX0202 = 'off' }\n")]);
    let run = |name: &str| {
        let file = folder.path().join("stdin");
        fs::write(&file, NET).expect("a file");
        let mut command = command(folder.path(), &["--stdin-name", name, "-"]);
        command.stdin(fs::File::open(file).expect("a file")).output().expect("rxcheck runs").status.code()
    };
    assert_eq!((run("a.rx"), run("sub/a.rx")), (Some(1), Some(0)));
}

#[test]
fn the_tvm_is_chosen_and_its_limits_may_be_suppressed() {
    let net = "@R.function\ndef main(x: R.Tensor((4,), dtype=\"float32\")):\n    y = R.add(x, R.const(\"-inf\", \"float32\"))\n    return y\n";
    let meant = net.replace("))\n    return", "))  # rx: ignore[RX10]\n    return");
    let folder = folder(&[("a.rx", net), ("rx.toml", "[tvm]\nversion = '0.27'\n")]);
    let (lines, status) = found(&rxcheck(&folder, &["a.rx"]));
    assert_eq!((lines.len(), status), (1, Some(0)), "{lines:?}");
    assert_eq!(found(&rxcheck(&folder, &["--isolated", "a.rx"])).0, [""; 0]);
    assert_eq!(found(&rxcheck(&folder, &["--isolated", "--tvm", "0.27", "a.rx"])).0, lines);
    let code = lines[0].split('[').nth(1).expect("a code");
    fs::write(folder.path().join("a.rx"), meant.replace("RX10", code)).expect("a file");
    assert_eq!(found(&rxcheck(&folder, &["a.rx"])).0, [""; 0]);
    // Without a TVM version there is no portability check, and the suppression comment is not reported as unused.
    assert_eq!(found(&rxcheck(&folder, &["--isolated", "a.rx"])).0, [""; 0]);
}

#[test]
fn unknown_tvm_is_refused_with_those_that_are_known() {
    let folder = folder(&[("a.rx", "")]);
    for (version, said) in
        [("0.20", "older than those it knows: 0.25, 0.26, 0.27"), ("0.31", "newer than those it knows")]
    {
        let output = rxcheck(&folder, &["--isolated", "--tvm", version, "a.rx"]);
        assert_eq!(output.status.code(), Some(2));
        let words = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(said), "{words}");
    }
    for version in ["0.25", "0.26.0"] {
        assert_eq!(found(&rxcheck(&folder, &["--isolated", "--tvm", version, "a.rx"])).1, Some(0));
    }
}

/// A call of an operator that the project declares.
const HALVED: &str =
    "@R.function\ndef main(x: R.Tensor((\"n\", 6), \"float32\")):\n    y = R.my.halve(x)\n    return y\n";
/// The declaration of that operator.
const HALVE: &str = "[[ops]]\nname = 'my.halve'\nargs = [{ name = 'x', type = 'R.Tensor((\"n\", \"m\"), dtype=\"d\")' }]\n\
                     result = 'R.Tensor((\"n\", \"m // 2\"), dtype=\"d\")'\n";

#[test]
fn declared_operators_are_known_in_every_mode() {
    let folder = folder(&[("a.rx", HALVED), ("rx.toml", HALVE)]);
    let said = |arguments: &[&str]| String::from_utf8(rxcheck(&folder, arguments).stdout).expect("UTF-8");
    assert_eq!(said(&["a.rx"]), "");
    assert!(said(&["--types", "a.rx"]).contains("(n, 3)"));
    assert!(said(&["--stats", "a.rx"]).contains("my.halve"));
    let why = said(&["--why", "a.rx:3", "--dim", "1"]);
    assert!(why.contains("axis 1 of `y` is 3") && why.contains("R.my.halve"), "{why}");
    assert!(said(&["--why", "a.rx:3", "--dim", "1", "--isolated"]).is_empty());
    assert!(
        said(&["--annotate", "--diff", "a.rx"]).contains("+    y: R.Tensor((n, 3), dtype=\"float32\") = R.my.halve(x)")
    );
    fs::write(folder.path().join("a.rx"), HALVED.replace("\"n\", 6", "6,")).expect("a file");
    assert_eq!(said(&["a.rx"]).lines().count(), 1);
}

#[test]
fn sequence_uses_the_settings() {
    let before = NET.replace("rellu", "relu");
    let files = [("p1.rx", before.as_str()), ("p2.rx", NET), ("rx.toml", "severity = { RX0202 = 'warning' }\n")];
    let folder = folder(&files);
    assert_eq!(rxcheck(&folder, &["--sequence", "."]).status.code(), Some(0));
    assert_eq!(rxcheck(&folder, &["--sequence", "--isolated", "."]).status.code(), Some(1));
    assert_eq!(rxcheck(&folder, &["--sequence", "--isolated", "--ignore", "RX0202", "."]).status.code(), Some(0));
}

#[test]
fn mistakes_in_the_file_are_errors_of_why_and_sequence() {
    let folder = folder(&[("a.rx", HALVED), ("rx.toml", "opps = []\n")]);
    for arguments in [&["--why", "a.rx:3"][..], &["--sequence", "a.rx"]] {
        let output = rxcheck(&folder, arguments);
        assert_eq!(found(&output), (vec!["rx.toml:1:1: error[RX0002".to_owned()], Some(2)), "{arguments:?}");
    }
    let output = rxcheck(&folder, &["--why", "a.rx:3", "--config", "none.toml"]);
    assert_eq!(
        (stderr(&output).lines().next(), output.status.code()),
        (Some("rxcheck: none.toml: no such file or folder"), Some(2))
    );
}

#[test]
fn mistakes_of_declared_operators_are_drawn_with_the_others() {
    let settings = format!("inclued = []\n{}", HALVE.replace("// 2", "//"));
    let folder = folder(&[("a.rx", HALVED), ("rx.toml", &settings)]);
    let (lines, status) = found(&rxcheck(&folder, &["a.rx"]));
    assert_eq!((lines.len(), status), (2, Some(2)), "{lines:?}");
}
