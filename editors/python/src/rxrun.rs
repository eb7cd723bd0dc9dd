//! `rxrun`, as packaged in the Python wheel.

use std::process::ExitCode;

fn main() -> ExitCode {
    rxrun::main()
}
