//! The `rxopt` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    rxopt::main()
}
