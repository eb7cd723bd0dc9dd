//! `rx-lsp`: the language server.
//!
//! Messages come in over stdin ([`transport`]), are decoded by tower-lsp and turned into [`event::Event`]s by handlers without
//! state ([`backend`]). One thread, the [`main_loop`], owns the documents and the database: it applies edits in order, publishes
//! diagnostics, hands reads to workers ([`reads`]) and starts children ([`run`]). Protocol types are in [`lsp`] only. tokio is
//! used for the transport and the children.
//!
//! # Invariants
//!
//! - Handlers keep nothing but the client's folders; each pushes one event, in the client's order. Reads run on snapshots and are
//!   retried if an edit cancels them. Files that are not open are read on a separate thread, without the database ([`folders`]).
//! - No work on the path of an edit is proportional to the size of the file.
//! - For answers sent as differences (semantic tokens), the server remembers, for each segment, the key and the number of tokens
//!   that it sent, not the tokens.
//! - Opening or checking a file executes nothing of it. On request `rxrun` runs the editor's text, or prints a stage of it, in a
//!   child process; a crash of the child is a message. A child ends with its run: cancelled, replaced, out of time, or when the
//!   client is gone.
//! - Settings files are read when a document is opened and when the client reports a change, never on an edit. While a file is
//!   wrong, its last correct settings apply.

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
        Ok(Command::Serve { client_process, verbose }) => match rx_trace::init(verbose) {
            Ok(()) => server::run(client_process),
            Err(message) => {
                eprintln!("rx-lsp: {message}");
                2
            }
        },
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
