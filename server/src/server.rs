//! Starts the parts of the server (workers, main loop, transport) and connects them.

use crate::backend::Backend;
use crate::event::Event;
use crate::main_loop::MainLoop;
use crate::outbox::Outbox;
use crate::parent;
use crate::reads::{self, Lane, start_thread};
use crate::run::registry::Runs;
use crate::transport::{self, Ended, Ending};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tower_lsp::LspService;

/// Serves one client on stdin and stdout, and watches the process `client_process`, if given. Returns the exit status
/// of this process: 0 if the session ended after a `shutdown` request, 1 otherwise.
pub fn run(client_process: Option<u32>) -> i32 {
    match serve_on_runtime(client_process) {
        Ok(ended) if ended.after_shutdown => 0,
        Ok(ended) => {
            if ended.ending != Ending::Exit {
                eprintln!("rx-lsp: the client disconnected without `shutdown`");
            }
            1
        }
        Err(error) => {
            eprintln!("rx-lsp: cannot start: {error}");
            1
        }
    }
}

fn serve_on_runtime(client_process: Option<u32>) -> io::Result<Ended> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let ended = runtime.block_on(serve(client_process));
    // Child processes are killed. On Windows, dropping the runtime would wait for a read of their output to return.
    runtime.shutdown_background();
    ended
}

async fn serve(client_process: Option<u32>) -> io::Result<Ended> {
    let (events, inbox) = channel();
    client_process.into_iter().for_each(|id| parent::watch(id, &events));
    let runtime = Handle::current();
    let short = reads::start_workers(Lane::Short, &events)?;
    let long = reads::start_workers(Lane::Long, &events)?;
    let (done, settled) = oneshot::channel();
    let mut started = Ok(());
    let (service, socket) = LspService::build(|client| {
        let runs = Runs::new(runtime.clone(), client.clone(), events.clone());
        let main_loop = MainLoop::new(inbox, (short, long), Outbox::new(client, runtime, events.clone()), runs);
        started = start_main_loop(main_loop, done);
        Backend::new(events.clone())
    })
    .custom_method("window/workDoneProgress/cancel", Backend::cancel_progress)
    .finish();
    started?;
    // A running child would keep its request pending and so delay the end of the session.
    let hung_up = || drop(events.send(Event::CancelRuns));
    let settle = async {
        let _ = events.send(Event::Stop);
        // An error means that the main loop has already ended.
        let _ = settled.await;
    };
    transport::serve(service, socket, io::stdin(), io::stdout(), hung_up, settle).await
}

fn start_main_loop(main_loop: MainLoop, done: oneshot::Sender<()>) -> io::Result<()> {
    start_thread("main loop", move || {
        // The loop catches panics of the database itself. Any other panic leaves no one to serve requests, so the
        // process exits and the editor can restart the server.
        if catch_unwind(AssertUnwindSafe(|| main_loop.run())).is_err() {
            std::process::exit(1);
        }
        let _ = done.send(());
    })
}
