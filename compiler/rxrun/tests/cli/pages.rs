//! Runs the `rxrun` commands of `README.md` and `docs`, and `rxrun FILE` for each example.

use rx_db::FileKind;
use std::path::Path;
use std::process::Command;

#[test]
fn commands_of_pages_print_the_output_shown() {
    let (binary, scratch) = (Path::new(env!("CARGO_BIN_EXE_rxrun")), Path::new(env!("CARGO_TARGET_TMPDIR")));
    let failures = rx_tests::console::failures("rxrun", binary, scratch).unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn valid_examples_run_without_options() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut valid = 0;
    for entry in std::fs::read_dir(root.join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rx") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let is_valid = rx_tests::check::check(&text, FileKind::Rx).errors().next().is_none();
        let run = Command::new(env!("CARGO_BIN_EXE_rxrun")).arg(&path).output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert_eq!(run.status.code(), Some(i32::from(!is_valid)), "{}: {stderr}", path.display());
        assert_eq!(stdout.contains("out0: "), is_valid, "{}: {stdout}", path.display());
        valid += usize::from(is_valid);
    }
    assert!(valid >= 12, "{valid} valid examples");
}
