//! What is running: one run per document, and one child that shows a stage of it.

use super::built::{Build, Options};
use super::child::{self, Call, Stop};
use super::stage::{self, Stage, Subject};
use super::{Order, Outcome, Settings};
use crate::event::Event;
use crate::lsp::progress::RunView;
use crate::lsp::{ProgressToken, Uri, from_proto};
use crate::reads::{Lane, Read};
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
    kind: Kind,
    uri: Uri,
    /// The name of its progress; none shows no progress.
    token: Option<ProgressToken>,
    stop: oneshot::Sender<Stop>,
}

/// What a child is for: a new one ends the older of the same kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Run,
    Stage,
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
        let id = self.next(Kind::Run, &program.uri);
        let Order { function, module, token, mut reply, arguments, .. } = order;
        let asked_for = token.is_some();
        let token = token.unwrap_or_else(|| ProgressToken::String(format!("rx/run/{id}")));
        let uri = program.uri.clone();
        let call = self.call(program, (function, module), arguments, None);
        let mut view = RunView::new(self.client.clone(), &call.label, self.settings.message);
        if asked_for || may_create {
            view = view.with_progress(token.clone(), asked_for);
        }
        let (stop, stopped) = oneshot::channel();
        self.running.push(Running { id, kind: Kind::Run, uri, token: Some(token), stop });
        let events = self.events.clone();
        self.runtime.spawn(async move {
            let outcome = follow(call, &mut view, stopped, &mut reply).await;
            view.end(&outcome).await;
            // Errors are a client that does not wait any more, and a main loop that is gone.
            let _ = reply.send(outcome);
            let _ = events.send(Event::RunEnded(id));
        });
    }

    /// A question whose answer is a stage that the server makes itself.
    ///
    /// # Errors
    /// The order, where `rxrun` has to make it.
    pub fn build(&self, order: stage::Order) -> Result<Read, stage::Order> {
        let options = Options::read(&self.settings.arguments).filter(|_| order.stage.is_built_here());
        match options {
            Some(options) => {
                let (uri, events) = (order.uri.clone(), self.events.clone());
                let build = Build { order, options, events, shown: None, not_lowered: None };
                Ok(Read { uri: Some(uri), lane: Lane::Long, question: Box::new(build) })
            }
            None => Err(order),
        }
    }

    /// Shows a stage; an earlier child that was to show one of the same document is ended.
    pub fn show(&mut self, program: Program, subject: Subject, order: stage::Order) {
        let stage::Order { uri, stage, mut reply, .. } = order;
        let id = self.next(Kind::Stage, &uri);
        let module = subject.module.clone().filter(|_| !subject.alone);
        let call = self.call(program, (Some(subject.function.clone()), module), Vec::new(), Some(stage));
        let mut view = RunView::new(self.client.clone(), &call.label, self.settings.message);
        let (stop, stopped) = oneshot::channel();
        self.running.push(Running { id, kind: Kind::Stage, uri, token: None, stop });
        let events = self.events.clone();
        self.runtime.spawn(async move {
            let outcome = follow(call, &mut view, stopped, &mut reply).await;
            // Errors are as above. The view is not ended: the answer says everything.
            let _ = reply.send(Some(stage::shown(&subject, stage, outcome)));
            let _ = events.send(Event::RunEnded(id));
        });
    }

    /// A number for a new child; an earlier one of the same kind and document is ended.
    fn next(&mut self, kind: Kind, uri: &Uri) -> u64 {
        self.stop(Stop::Replaced, |running| running.kind == kind && running.uri == *uri);
        self.started += 1;
        self.started
    }

    /// What a child is called with, of a function and its module; `arguments` come behind those of the settings.
    fn call(
        &self,
        program: Program,
        (function, module): (Option<String>, Option<String>),
        arguments: Vec<String>,
        stage: Option<Stage>,
    ) -> Call {
        let name = from_proto::path_or_name(&program.uri);
        let label = match (&function, stage) {
            (Some(function), Some(stage)) => stage.label(function),
            (Some(function), None) => format!("`{function}`"),
            (None, _) => child::file_name(&name),
        };
        Call {
            program: self.settings.program.clone(),
            arguments: self.settings.arguments.iter().cloned().chain(arguments).collect(),
            function,
            module,
            stage,
            folder: from_proto::folder(&program.uri),
            name: child::name_of_kind(name, program.kind),
            text: program.text,
            kind: program.kind,
            encoding: program.encoding,
            values: stage.is_none() && self.settings.values,
            limit: self.settings.limit,
            label,
        }
    }

    /// Ends the run whose progress the client cancelled; another's progress is none of ours.
    pub fn cancel(&mut self, token: &ProgressToken) {
        self.stop(Stop::Cancelled, |running| running.token.as_ref() == Some(token));
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
async fn follow<T>(
    call: Call,
    view: &mut RunView,
    stopped: oneshot::Receiver<Stop>,
    reply: &mut oneshot::Sender<T>,
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
