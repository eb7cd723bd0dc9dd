//! The `rx-lsp` binary: reads its arguments and serves one client on stdin and stdout.

use rx_server::arguments::{self, Command};
use rx_server::server;
use std::io::Write;

fn main() {
    let code = match arguments::parse(std::env::args().skip(1)) {
        Ok(Command::Serve { client_process }) => server::run(client_process),
        Ok(Command::Print(text)) => {
            // A closed stdout is no failure of ours.
            let _ = writeln!(std::io::stdout(), "{text}");
            0
        }
        Err(message) => {
            eprintln!("rx-lsp: {message}\n{}", arguments::USAGE);
            2
        }
    };
    // Not a return from `main`: a thread may still sit in a read of stdin that never ends.
    std::process::exit(code)
}
