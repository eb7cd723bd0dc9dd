//! `rxopt`, as the wheel carries it.

use std::process::ExitCode;

fn main() -> ExitCode {
    rxopt::main()
}
