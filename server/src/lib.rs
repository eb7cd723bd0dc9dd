//! `rx-lsp`: the language server.
//!
//! One thread reads messages from stdin, and one writes to stdout ([`transport`]). tower-lsp decodes the messages, and
//! stateless handlers turn them into [`event::Event`]s ([`backend`]). One thread, the [`main_loop`], owns the documents
//! and the database: it applies edits in order, publishes diagnostics, hands reads to worker threads ([`reads`]) and
//! starts child processes ([`run`]). The protocol's types are converted in [`lsp`]. tokio runs the requests that wait
//! for a result, and the child processes.
//!
//! # Invariants
//!
//! - Handlers keep no state but the client's workspace folders. Each handler pushes one event, in the client's order.
//!   Reads run on snapshots and are retried if an edit cancels them. Files that are not open are read on a separate
//!   thread, without the database ([`folders`]).
//! - No work on the path of an edit is proportional to the size of the file. Notebooks are an exception: an edit of
//!   a cell joins all cells again, and finds the part of their text that differs.
//! - For results that are sent as deltas (semantic tokens), the server remembers the key and the number of the tokens
//!   that it sent for each segment, not the tokens themselves.
//! - Opening or checking a file executes none of its code. On request, `rxrun` runs the editor's text in a child
//!   process, or prints a compilation stage of it. If the child crashes, the user sees a message. A child ends with its
//!   run: when it finishes, is cancelled, is replaced by a newer run, exceeds its time limit, or when the client is
//!   gone. It also watches the server, and ends if the server is killed.
//! - Settings files are read when a document is opened and when the client reports a change, never on an edit. While a
//!   file has errors, its last valid settings apply.

pub mod arguments;
pub mod backend;
pub mod commands;
pub mod documents;
pub mod event;
pub mod folders;
pub mod frames;
pub mod lsp;
pub mod main_loop;
pub mod notebooks;
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

/// Parses the process's arguments and serves one client on stdin and stdout. This is the entry point of the binary.
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
            // A closed stdout is not an error of this process.
            let _ = writeln!(std::io::stdout(), "{text}");
            0
        }
        Err(message) => {
            eprintln!("rx-lsp: {message}\n{}", arguments::USAGE);
            2
        }
    };
    // Returning from `main` could block: a thread may still be in a read of stdin that never ends.
    std::process::exit(code)
}
