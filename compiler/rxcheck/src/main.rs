//! The `rxcheck` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    rxcheck::main()
}
