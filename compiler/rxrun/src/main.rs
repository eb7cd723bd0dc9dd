//! The `rxrun` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    rxrun::main()
}
