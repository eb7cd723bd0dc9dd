//! `rxrun`, as the wheel carries it.

use std::process::ExitCode;

fn main() -> ExitCode {
    rxrun::main()
}
