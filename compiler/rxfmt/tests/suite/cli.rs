//! Tests of the binary.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const UGLY: &str = "@R.function\ndef main( x : R.Tensor((2,),dtype='float32') ):\n  return x\n";
const NEAT: &str = "@R.function\ndef main(x: R.Tensor((2,), dtype=\"float32\")):\n    return x\n";

fn rxfmt() -> Command {
    Command::new(env!("CARGO_BIN_EXE_rxfmt"))
}

/// Writes a file for one test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

fn piped(args: &[&str], text: &str) -> Output {
    let mut child =
        rxfmt().args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn files_are_rewritten_in_place() {
    let path = file("in_place.rx", UGLY);
    assert_eq!(rxfmt().arg(&path).status().unwrap().code(), Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), NEAT);
    assert_eq!(rxfmt().arg("--check").arg(&path).status().unwrap().code(), Some(0));
}

#[test]
fn folder_is_searched_and_exclusions_hold() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("folder");
    fs::create_dir_all(folder.join("inner")).unwrap();
    let ugly = |name: &str| file(&format!("folder/{name}"), UGLY);
    let (inner, kept, hidden, other) = (ugly("inner/a.rx"), ugly("kept.rx"), ugly(".hidden.rx"), ugly("notes.txt"));
    let settings = file("folder/rx.toml", "exclude = [\"kept.rx\"]\n");
    assert_eq!(rxfmt().arg(&folder).status().unwrap().code(), Some(0));
    assert_eq!(fs::read_to_string(&inner).unwrap(), NEAT);
    for untouched in [&kept, &hidden, &other] {
        assert_eq!(fs::read_to_string(untouched).unwrap(), UGLY, "{}", untouched.display());
    }
    assert_eq!(rxfmt().arg("--check").arg(&folder).status().unwrap().code(), Some(0));
    assert_eq!(
        rxfmt().arg("--check").arg(&kept).status().unwrap().code(),
        Some(1),
        "a file that is named is formatted"
    );

    fs::write(&settings, "exclude = 3\n").unwrap();
    fs::write(&inner, UGLY).unwrap();
    let output = rxfmt().arg(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("rx.toml:1:") && said.lines().count() == 1, "{said}");
    assert_eq!(fs::read_to_string(&inner).unwrap(), UGLY);
}

#[test]
fn notebook_is_formatted_only_if_named() {
    // For these texts, a Rust string is a JSON string.
    let cell = |source: &str| format!("{{\"cell_type\": \"code\", \"source\": {source:?}}}");
    let imports = cell("%matplotlib inline\nfrom tvm.script import relax as R\n\n!ls (");
    let notebook = |code: &str| {
        let cells = [imports.clone(), cell(code.trim_end()), cell("x = [1,\n 2]\nmain?")].join(",\n  ");
        format!("{{\"nbformat\": 4,\n \"cells\": [{cells}], \"metadata\": {{}}}}\n\n")
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("notebooks");
    fs::create_dir_all(&folder).unwrap();
    let path = file("notebooks/net.ipynb", &notebook(UGLY));
    file("notebooks/rx.toml", "include = [\"*.ipynb\"]\n");
    assert_eq!(rxfmt().arg(&folder).status().unwrap().code(), Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), notebook(UGLY));
    assert_eq!(rxfmt().arg(&path).status().unwrap().code(), Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), notebook(NEAT));
    assert_eq!(rxfmt().arg("--check").arg(&path).status().unwrap().code(), Some(0));
}

#[test]
fn cells_of_a_notebook_keep_their_line_ends() {
    for imports in ["from tvm.script import relax as R\r\n", "from tvm.script import relax as R"] {
        let notebook = |code: &str| {
            let crlf = code.replace('\n', "\r\n");
            let cells = [imports, crlf.as_str(), crlf.trim_end(), code, "x = 1\r\n"];
            let cells = cells.map(|source| format!("{{\"cell_type\": \"code\", \"source\": {source:?}}}"));
            format!("{{\"nbformat\": 4, \"cells\": [{}]}}", cells.join(", "))
        };
        let path = file("line_ends.ipynb", &notebook(UGLY));
        assert_eq!(rxfmt().arg(&path).status().unwrap().code(), Some(0));
        assert_eq!(fs::read_to_string(&path).unwrap(), notebook(NEAT));
    }
}

#[test]
fn cell_with_the_mark_between_cells_is_an_error() {
    let cell = |source: &str| format!("{{\"cell_type\": \"code\", \"source\": \"{source}\"}}");
    let cells = [cell("a\\n#\\u001c\\nb"), cell(&UGLY.replace('\n', "\\n"))].join(", ");
    let notebook = format!("{{\"nbformat\": 4, \"cells\": [{cells}]}}");
    let path = file("separator.ipynb", &notebook);
    let output = rxfmt().arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("separator.ipynb: cell 1: "));
    assert_eq!(fs::read_to_string(&path).unwrap(), notebook);
}

#[test]
fn check_and_diff_write_nothing() {
    let path = file("check.rx", UGLY);
    let output = rxfmt().args(["--check", "--diff"]).arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let diff = String::from_utf8(output.stdout).unwrap();
    assert!(diff.contains("-  return x\n") && diff.contains("+    return x\n"), "{diff}");
    assert_eq!(rxfmt().arg("--diff").arg(&path).output().unwrap().status.code(), Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), UGLY);
}

#[test]
fn standard_input_goes_to_standard_output() {
    let output = piped(&["-"], UGLY);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), NEAT);
    let classic = piped(
        &["--dialect", "classic", "-"],
        "n = TypeVar(\"n\")\n@R.function\ndef f(x: R.Tensor((n,))):\n    return x\n",
    );
    let classic = String::from_utf8(classic.stdout).unwrap();
    assert_eq!(classic, "@R.function\ndef f(x: R.Tensor((\"n\",))):\n    n = T.int64()\n    return x\n");
}

#[test]
fn a_file_with_mistakes_stays_and_they_are_named() {
    let text = "@R.function\ndef main(x: R.Tensor((2,)):\n    return x\n";
    let path = file("broken.rx", text);
    let output = rxfmt().arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("broken.rx:2:") && said.contains("error[RX01"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn unreadable_input_is_an_error() {
    assert_eq!(rxfmt().arg("no such file.rx").output().unwrap().status.code(), Some(2));
    assert_eq!(rxfmt().output().unwrap().status.code(), Some(2));
    assert_eq!(piped(&["--dialect", "tvm-9", "-"], "").status.code(), Some(2));
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("latin.rx");
    fs::write(&path, b"# \xe9\n").unwrap();
    assert_eq!(rxfmt().arg(&path).output().unwrap().status.code(), Some(2));
}

#[test]
fn of_python_only_decorated_regions_change() {
    let text = "import  os\n\nif True:\n  @R.function\n  def f( x ):\n      return x   # all\n\n\nprint( 1 )\n";
    let output = piped(&["--stdin-name", "a.py", "-"], text);
    let expected = "import  os\n\nif True:\n  @R.function\n  def f(x):\n      return x   # all\n\n\nprint( 1 )\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_is_an_error() {
    let path = file("full.rx", "@R.function\ndef f(x):\n  return x\n").to_string_lossy().into_owned();
    for arguments in [&["--diff", &path][..], &["--help"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let status = rxfmt().args(arguments).stdout(full).status().unwrap();
        assert_eq!(status.code(), Some(2), "{arguments:?}");
    }
}
