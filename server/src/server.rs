//! Puts the parts together.

use crate::backend::Backend;
use crate::event::Event;
use crate::main_loop::MainLoop;
use crate::outbox::Outbox;
use crate::parent;
use crate::reads::{self, Job, STACK_SIZE};
use crate::transport::{self, Ended, Ending};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tower_lsp::{Client, LspService};

/// Serves one client on stdin and stdout, and watches the process it names. Returns the process's exit status: 0 after
/// `shutdown`, else 1.
pub fn run(client_process: Option<u32>) -> i32 {
    client_process.into_iter().for_each(parent::watch);
    match serve_on_runtime() {
        Ok(ended) if ended.after_shutdown => 0,
        Ok(ended) => {
            if ended.ending != Ending::Exit {
                eprintln!("rx-lsp: the client left without `shutdown`");
            }
            1
        }
        Err(error) => {
            eprintln!("rx-lsp: cannot start: {error}");
            1
        }
    }
}

fn serve_on_runtime() -> io::Result<Ended> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let ended = runtime.block_on(serve());
    // An open stdin may be in the middle of a read; dropping the runtime would wait for it.
    runtime.shutdown_background();
    ended
}

async fn serve() -> io::Result<Ended> {
    let (events, inbox) = channel();
    let jobs = reads::start_workers(&events)?;
    let (done, settled) = oneshot::channel();
    let mut started = Ok(());
    let (service, socket) = LspService::new(|client| {
        started = start_main_loop(inbox, jobs, client, done);
        Backend::new(events.clone())
    });
    started?;
    let settle = async {
        let _ = events.send(Event::Stop);
        // An error is a main loop that is gone already.
        let _ = settled.await;
    };
    Ok(transport::serve(service, socket, tokio::io::stdin(), tokio::io::stdout(), settle).await)
}

fn start_main_loop(
    inbox: Receiver<Event>,
    jobs: Sender<Job>,
    client: Client,
    done: oneshot::Sender<()>,
) -> io::Result<()> {
    let main_loop = MainLoop::new(inbox, jobs, Outbox::new(client));
    let builder = std::thread::Builder::new().name("main loop".into()).stack_size(STACK_SIZE);
    let run = move || {
        // The loop catches what goes wrong in the database. Without the loop there is nothing to serve: better that the
        // editor starts the server anew.
        if catch_unwind(AssertUnwindSafe(|| main_loop.run())).is_err() {
            std::process::exit(1);
        }
        let _ = done.send(());
    };
    builder.spawn(run).map(drop)
}
