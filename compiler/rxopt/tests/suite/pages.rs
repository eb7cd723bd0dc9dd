//! Runs the `rxopt` commands of `README.md` and `docs`.

use std::path::Path;

#[test]
fn commands_of_pages_print_the_output_shown() {
    let (binary, scratch) = (Path::new(env!("CARGO_BIN_EXE_rxopt")), Path::new(env!("CARGO_TARGET_TMPDIR")));
    let failures = rx_tests::console::failures("rxopt", binary, scratch).unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
