//! Transfers messages between a byte stream and tower-lsp's service.
//!
//! It replaces tower-lsp's `Server`, which ends at the first message that it cannot decode and does not report how the
//! session ended. The service, its router, cancellation and the client handle are tower-lsp's.

use crate::frames::{self, FrameReader, Incoming};
use futures::channel::mpsc;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, SinkExt, Stream, StreamExt, stream};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::Service;
use tower_lsp::jsonrpc::{Error, Request, Response};
use tower_lsp::{ClientSocket, LanguageServer, LspService};

/// The maximal number of concurrent requests; at the limit, no more input is read. It is far above the number that
/// editors send, so that edits never queue after slow requests.
const CONCURRENCY: usize = 1024;

/// The number of messages that are decoded ahead of their handling.
const READ_AHEAD: usize = 16;

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
pub async fn serve<S, I, O>(
    service: LspService<S>,
    socket: ClientSocket,
    input: I,
    output: O,
    hung_up: impl FnOnce(),
    settle: impl Future<Output = ()>,
) -> Ended
where
    S: LanguageServer,
    I: AsyncRead + Unpin + Send + 'static,
    O: AsyncWrite + Unpin + Send + 'static,
{
    let (from_us, mut to_us) = socket.split();
    let (respond, responses) = mpsc::channel(CONCURRENCY);
    let (incoming_sender, mut incoming) = mpsc::channel(READ_AHEAD);
    let reader = tokio::spawn(read(input, incoming_sender));
    let mut writer = tokio::spawn(write(output, stream::select(responses, from_us.map(Outgoing::Request))));
    let mut session = Session { service, respond, under_way: FuturesUnordered::new(), after_shutdown: false };

    let ending = loop {
        tokio::select! {
            _ = &mut writer => break Ending::OutputClosed,
            Some(response) = session.under_way.next() => session.respond(response).await,
            message = incoming.next(), if session.under_way.len() < CONCURRENCY => match message {
                None => break Ending::InputClosed,
                Some(Incoming::Unreadable(answer)) => session.respond(Some(answer)).await,
                // The service drops a response whose id matches no request of the server.
                Some(Incoming::Response(response)) => drop(to_us.send(response).await),
                Some(Incoming::Request(request)) => {
                    let exit = request.method() == "exit";
                    session.call(request).await;
                    if exit {
                        break Ending::Exit;
                    }
                }
            },
        }
    };
    reader.abort();
    if ending == Ending::InputClosed {
        hung_up();
    }
    let after_shutdown = session.after_shutdown;
    if ending != Ending::OutputClosed {
        session.finish(ending, settle, writer).await;
    }
    Ended { ending, after_shutdown }
}

type Reply = Option<Response>;

/// The service and the requests in progress.
struct Session<S: LanguageServer> {
    service: LspService<S>,
    respond: mpsc::Sender<Outgoing>,
    under_way: FuturesUnordered<futures::future::BoxFuture<'static, Reply>>,
    after_shutdown: bool,
}

impl<S: LanguageServer> Session<S> {
    /// Starts the handler of a message. The handler runs up to its first `await` before this returns, so handlers start
    /// in the client's order.
    async fn call(&mut self, request: Request) {
        self.after_shutdown |= request.method() == "shutdown";
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
            let reply = reply.await;
            return self.respond(reply).await;
        }
        match (&mut reply).now_or_never() {
            Some(reply) => self.respond(reply).await,
            None => self.under_way.push(reply),
        }
    }

    async fn respond(&mut self, reply: Reply) {
        if let Some(response) = reply {
            // This fails if the writer is gone, which ends the session anyway.
            let _ = self.respond.send(Outgoing::Response(response)).await;
        }
    }

    /// Finishes the requests in progress and writes the remaining messages, within a time limit.
    async fn finish(mut self, ending: Ending, settle: impl Future<Output = ()>, writer: JoinHandle<io::Result<()>>) {
        if ending == Ending::InputClosed {
            let settled = async {
                while let Some(reply) = self.under_way.next().await {
                    self.respond(reply).await;
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

/// Decodes messages and sends them to `into` until the input ends or fails, or the receiver is gone.
async fn read<I: AsyncRead + Unpin>(input: I, mut into: mpsc::Sender<Incoming>) {
    let mut frames = FrameReader::new(BufReader::with_capacity(1 << 16, input));
    while let Ok(Some(message)) = frames.next().await {
        if into.send(message).await.is_err() {
            return;
        }
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
async fn write<O: AsyncWrite + Unpin>(
    mut output: O,
    mut messages: impl Stream<Item = Outgoing> + Unpin,
) -> io::Result<()> {
    let mut ending = false;
    loop {
        let next = messages.next();
        let message = if ending { next.now_or_never().flatten() } else { next.await };
        let frame = match message {
            None => return Ok(()),
            Some(Outgoing::End) => {
                ending = true;
                continue;
            }
            Some(Outgoing::Response(response)) => frames::frame(&response),
            Some(Outgoing::Request(request)) => frames::frame(&request),
        };
        output.write_all(&frame.map_err(io::Error::other)?).await?;
        output.flush().await?;
    }
}
