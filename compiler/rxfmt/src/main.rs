//! The `rxfmt` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    rxfmt::main()
}
