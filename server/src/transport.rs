//! Transfers messages between a byte stream and tower-lsp's service.
//!
//! It replaces tower-lsp's `Server`, which ends at the first message that it cannot decode and does not report how the
//! session ended. The service, its router, cancellation and the client handle are tower-lsp's.
//!
//! One thread reads and one writes, instead of tokio's stdin and stdout: those run each read and write as a task of a
//! thread pool, whose result wakes the runtime. That would add up to four switches between threads to each edit.

use crate::frames::{self, FrameReader, Incoming};
use crate::reads::start_thread;
use futures::channel::mpsc;
use futures::executor::block_on;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, Sink, SinkExt, Stream, StreamExt, stream};
use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tower::Service;
use tower_lsp::jsonrpc::{Error, Request, Response};
use tower_lsp::{ClientSocket, LanguageServer, LspService};

/// The maximal number of requests in progress on the runtime. At the limit, the reader starts at most [`HANDED_OVER`]
/// more and then stops reading until one finishes. It is far above the number that editors send, so that edits never
/// queue after slow requests.
const CONCURRENCY: usize = 1024;

/// The number of started requests that may wait for the runtime to take them.
const HANDED_OVER: usize = 16;

/// The time limit for writing the last messages when the session is over.
const GRACE: Duration = Duration::from_secs(2);

/// The way in which a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client sent `exit`.
    Exit,
    /// The input is closed.
    InputClosed,
    /// The output is closed.
    OutputClosed,
}

/// The result of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The way in which it ended.
    pub ending: Ending,
    /// Whether the client sent `shutdown` before the end.
    pub after_shutdown: bool,
}

/// Serves one client until the session ends. If the input is closed without `exit`, `hung_up` is called at once to
/// cancel long work. Then pending requests are finished and `settle` is awaited, while messages are still written.
///
/// # Errors
/// The operating system cannot start a thread.
pub async fn serve<S, I, O>(
    service: LspService<S>,
    socket: ClientSocket,
    input: I,
    output: O,
    hung_up: impl FnOnce(),
    settle: impl Future<Output = ()>,
) -> io::Result<Ended>
where
    S: LanguageServer,
    I: Read + Send + 'static,
    O: Write + Send + 'static,
{
    let (from_us, to_us) = socket.split();
    let (respond, responses) = mpsc::channel(CONCURRENCY);
    let (hand_over, mut handed_over) = mpsc::channel(HANDED_OVER);
    let (stopped, mut writer) = oneshot::channel();
    let messages = stream::select(responses, from_us.map(Outgoing::Request));
    start_thread("writer", move || {
        // If the output fails, the session ends, as if the client had closed it.
        let _ = write(output, messages);
        // An error means that the session is already over.
        let _ = stopped.send(());
    })?;
    let after_shutdown = Arc::new(AtomicBool::new(false));
    let reader = Reader { service, respond: respond.clone(), hand_over, after_shutdown: Arc::clone(&after_shutdown) };
    // The thread ends at the end of the input or with this process: a read cannot be cancelled.
    start_thread("reader", move || reader.run(input, to_us))?;
    let mut pending = Pending { respond, under_way: FuturesUnordered::new() };

    let ending = loop {
        tokio::select! {
            _ = &mut writer => break Ending::OutputClosed,
            Some(reply) = pending.under_way.next() => respond_with(&mut pending.respond, reply).await,
            next = handed_over.next(), if pending.under_way.len() < CONCURRENCY => match next {
                None => break Ending::InputClosed,
                Some(HandedOver::Request(reply)) => pending.under_way.push(reply),
                Some(HandedOver::Exit) => break Ending::Exit,
            },
        }
    };
    if ending == Ending::InputClosed {
        hung_up();
    }
    if ending != Ending::OutputClosed {
        pending.finish(ending, settle, writer).await;
    }
    Ok(Ended { ending, after_shutdown: after_shutdown.load(Ordering::Relaxed) })
}

type Reply = Option<Response>;

/// A message from the reader thread to the runtime.
enum HandedOver {
    /// A request that has started and not finished.
    Request(BoxFuture<'static, Reply>),
    /// The client sent `exit`.
    Exit,
}

/// The state of the reader thread. It calls the handlers itself: those of notifications finish at once, so an edit
/// reaches the main loop without passing through the runtime.
struct Reader<S: LanguageServer> {
    service: LspService<S>,
    respond: mpsc::Sender<Outgoing>,
    hand_over: mpsc::Sender<HandedOver>,
    after_shutdown: Arc<AtomicBool>,
}

impl<S: LanguageServer> Reader<S> {
    /// Handles messages until `exit`, or until the input ends or fails. The client's responses are sent to `to_us`.
    fn run(mut self, input: impl Read, mut to_us: impl Sink<Response> + Unpin) {
        let mut frames = FrameReader::new(BufReader::with_capacity(1 << 16, input));
        while let Ok(Some(message)) = frames.read() {
            match message {
                Incoming::Unreadable(answer) => self.respond(Some(answer)),
                // The service drops a response whose id matches no request of the server.
                Incoming::Response(response) => drop(block_on(to_us.send(response))),
                Incoming::Request(request) => {
                    let exit = request.method() == "exit";
                    self.call(request);
                    if exit {
                        return self.hand_over(HandedOver::Exit);
                    }
                }
            }
        }
    }

    /// Starts the handler of a message. The handler runs up to its first `await` before this returns, so handlers start
    /// in the client's order. A handler that has not finished by then continues on the runtime.
    fn call(&mut self, request: Request) {
        if request.method() == "shutdown" {
            self.after_shutdown.store(true, Ordering::Relaxed);
        }
        let initialize = request.method() == "initialize";
        // The service drops unknown messages that begin with `$/`. Only notifications may be dropped: the protocol
        // wants an error for a request.
        let optional = request.id().cloned().filter(|_| request.method().starts_with("$/"));
        let unknown = optional.map(|id| Response::from_error(id, Error::method_not_found()));
        // The service returns an error after `exit`; then there is no response.
        let reply = self.service.call(request).map(|reply| reply.ok().and_then(|reply| reply.or(unknown)));
        let mut reply = reply.boxed();
        if initialize {
            // The service rejects other requests until `initialize` is answered.
            let reply = block_on(reply);
            return self.respond(reply);
        }
        match (&mut reply).now_or_never() {
            Some(reply) => self.respond(reply),
            None => self.hand_over(HandedOver::Request(reply)),
        }
    }

    fn respond(&mut self, reply: Reply) {
        block_on(respond_with(&mut self.respond, reply));
    }

    fn hand_over(&mut self, message: HandedOver) {
        // An error means that the session is over: the output is closed.
        let _ = block_on(self.hand_over.send(message));
    }
}

async fn respond_with(respond: &mut mpsc::Sender<Outgoing>, reply: Reply) {
    if let Some(response) = reply {
        // This fails if the writer is gone, which ends the session anyway.
        let _ = respond.send(Outgoing::Response(response)).await;
    }
}

/// The requests in progress, which the runtime finishes.
struct Pending {
    respond: mpsc::Sender<Outgoing>,
    under_way: FuturesUnordered<BoxFuture<'static, Reply>>,
}

impl Pending {
    /// Finishes the requests in progress and writes the remaining messages, within a time limit.
    async fn finish(mut self, ending: Ending, settle: impl Future<Output = ()>, writer: oneshot::Receiver<()>) {
        if ending == Ending::InputClosed {
            let settled = async {
                while let Some(reply) = self.under_way.next().await {
                    respond_with(&mut self.respond, reply).await;
                }
                settle.await;
            };
            let _ = timeout(GRACE * 5, settled).await;
        }
        let last = async {
            let _ = self.respond.send(Outgoing::End).await;
            let _ = writer.await;
        };
        // The time limit ensures that a client that no longer reads does not keep this process alive.
        let _ = timeout(GRACE, last).await;
    }
}

/// A message to the client.
enum Outgoing {
    Response(Response),
    Request(Request),
    /// The end: the writer writes the messages that are already queued, and stops.
    End,
}

/// Writes messages until [`Outgoing::End`], or until the output fails.
fn write(mut output: impl Write, mut messages: impl Stream<Item = Outgoing> + Unpin) -> io::Result<()> {
    let mut ending = false;
    loop {
        let next = messages.next();
        let message = if ending { next.now_or_never().flatten() } else { block_on(next) };
        let frame = match message {
            None => return Ok(()),
            Some(Outgoing::End) => {
                ending = true;
                continue;
            }
            Some(Outgoing::Response(response)) => frames::frame(&response),
            Some(Outgoing::Request(request)) => frames::frame(&request),
        };
        output.write_all(&frame.map_err(io::Error::other)?)?;
        output.flush()?;
    }
}
