//! What is running: one run per document.

use super::child::{self, Call, Stop};
use super::{Order, Outcome, Settings};
use crate::event::Event;
use crate::lsp::progress::RunView;
use crate::lsp::{ProgressToken, Uri, from_proto};
use rx_db::{Encoding, FileKind};
use std::sync::mpsc::Sender;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tower_lsp::Client;

/// The runs under way. Dropping it ends them.
pub struct Runs {
    /// Where the children are followed; nothing else runs there but the transport.
    runtime: Handle,
    client: Client,
    events: Sender<Event>,
    settings: Settings,
    running: Vec<Running>,
    started: u64,
}

struct Running {
    id: u64,
    uri: Uri,
    token: ProgressToken,
    stop: oneshot::Sender<Stop>,
}

/// A document as it is when a run of it starts.
pub struct Program {
    /// Its name.
    pub uri: Uri,
    /// Its text, saved or not.
    pub text: String,
    /// What the text is.
    pub kind: FileKind,
    /// How its client counts columns.
    pub encoding: Encoding,
}

impl Runs {
    /// Nothing yet. Runs are followed on `runtime` and each ends with an [`Event::RunEnded`].
    pub fn new(runtime: Handle, client: Client, events: Sender<Event>) -> Runs {
        Runs { runtime, client, events, settings: Settings::default(), running: Vec::new(), started: 0 }
    }

    /// Settings for the runs to come.
    pub fn configure(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Starts a run; an earlier one of the same document is ended. `may_create` says whether the client shows progress that
    /// it did not ask for.
    pub fn start(&mut self, program: Program, order: Order, may_create: bool) {
        self.stop(Stop::Replaced, |running| running.uri == program.uri);
        self.started += 1;
        let id = self.started;
        let Order { function, token, mut reply, arguments, .. } = order;
        let asked_for = token.is_some();
        let token = token.unwrap_or_else(|| ProgressToken::String(format!("rx/run/{id}")));
        let name = from_proto::path_or_name(&program.uri);
        let label = match &function {
            Some(function) => format!("`{function}`"),
            None => child::file_name(&name),
        };
        let mut view = RunView::new(self.client.clone(), &label);
        if asked_for || may_create {
            view = view.with_progress(token.clone(), asked_for);
        }
        let call = Call {
            program: self.settings.program.clone(),
            arguments: self.settings.arguments.iter().cloned().chain(arguments).collect(),
            function,
            folder: from_proto::folder(&program.uri),
            name: child::name_of_kind(name, program.kind),
            text: program.text,
            kind: program.kind,
            encoding: program.encoding,
            values: self.settings.values,
            limit: self.settings.limit,
            label,
        };
        let (stop, stopped) = oneshot::channel();
        self.running.push(Running { id, uri: program.uri, token, stop });
        let events = self.events.clone();
        self.runtime.spawn(async move {
            let outcome = follow(call, &mut view, stopped, &mut reply).await;
            view.end(&outcome).await;
            // Errors are a client that does not wait any more, and a main loop that is gone.
            let _ = reply.send(outcome);
            let _ = events.send(Event::RunEnded(id));
        });
    }

    /// Ends the run whose progress the client cancelled; another's progress is none of ours.
    pub fn cancel(&mut self, token: &ProgressToken) {
        self.stop(Stop::Cancelled, |running| running.token == *token);
    }

    /// Ends all runs.
    pub fn cancel_all(&mut self) {
        self.stop(Stop::Cancelled, |_| true);
    }

    /// Forgets a run that has ended.
    pub fn ended(&mut self, id: u64) {
        self.running.retain(|running| running.id != id);
    }

    fn stop(&mut self, why: Stop, which: impl Fn(&Running) -> bool) {
        for running in self.running.extract_if(.., |running| which(running)) {
            // An error is a run that has just ended by itself.
            let _ = running.stop.send(why);
        }
    }
}

/// Runs the child until it ends, somebody ends it, or nobody waits for it.
async fn follow(
    call: Call,
    view: &mut RunView,
    stopped: oneshot::Receiver<Stop>,
    reply: &mut oneshot::Sender<Outcome>,
) -> Outcome {
    let stop = async {
        tokio::select! {
            // The registry is dropped when the server ends.
            stop = stopped => stop.unwrap_or(Stop::Cancelled),
            () = reply.closed() => Stop::Cancelled,
        }
    };
    child::run(call, view, stop).await
}
