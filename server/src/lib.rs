//! `rx-lsp`: the language server.
//!
//! Messages come in over stdin ([`transport`]), are decoded by tower-lsp and turned into [`event::Event`]s by handlers
//! without state ([`backend`]). One thread, the [`main_loop`], owns the documents and the database: it applies edits in
//! order, publishes diagnostics, hands reads to workers ([`reads`]) and starts children ([`run`]). Protocol types stay in
//! [`lsp`].

pub mod arguments;
pub mod backend;
pub mod commands;
pub mod documents;
pub mod event;
pub mod folders;
pub mod frames;
pub mod lsp;
pub mod main_loop;
pub mod outbox;
pub mod parent;
pub mod projects;
pub mod pull;
pub mod reads;
pub mod run;
pub mod server;
pub mod transport;

use arguments::Command;
use std::io::Write;

/// The binary: reads the process's arguments and serves one client on stdin and stdout.
pub fn main() -> ! {
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
