//! The registry of child processes. For each document there is at most one run and one child that shows a stage. Of the
//! children of all documents, at most two of each kind run at a time; the others wait in order.

use super::built::{Build, Options};
use super::child::{self, Call, Stop};
use super::stage::{self, Stage, Subject};
use super::{InProgress, Order, Outcome, Settings};
use crate::event::Event;
use crate::lsp::progress::RunView;
use crate::lsp::{ProgressToken, Uri, from_proto};
use crate::notebooks::AskedCell;
use crate::reads::{Lane, Read};
use rx_db::{Encoding, FileKind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tower_lsp::Client;

/// The maximal number of children of a kind that run at a time. A child uses all cores, and much of the memory of the
/// device. With two, a long run of one document does not keep the others from running.
const MAX_CHILDREN: usize = 2;

/// The runs in progress. Dropping it ends them.
pub struct Runs {
    /// The runtime that follows the children. It also runs the requests that wait for a result, here or in the client.
    runtime: Handle,
    client: Client,
    events: Sender<Event>,
    settings: Settings,
    /// The runs that have not ended, those that wait included.
    running: Vec<Running>,
    /// The runs among them, for lenses.
    in_progress: Arc<[InProgress]>,
    /// The turns of runs, for each of which one child may be started.
    run_turns: Arc<Semaphore>,
    /// As `run_turns`, for children that show a stage.
    stage_turns: Arc<Semaphore>,
    started: u64,
}

struct Running {
    id: u64,
    /// The document; for a cell, its notebook.
    uri: Uri,
    /// The function that was requested; `None` if the child shows a stage.
    run: Option<InProgress>,
    /// The token of its progress; `None` if no progress is shown.
    token: Option<ProgressToken>,
    stop: oneshot::Sender<Stop>,
}

/// A document at the time when a run of it starts.
pub struct Program {
    /// Its URI; for a cell, that of its notebook.
    pub uri: Uri,
    /// Its text, saved or not.
    pub text: String,
    /// The kind of the text.
    pub kind: FileKind,
    /// The client's position encoding.
    pub encoding: Encoding,
    /// The cell, if the document is one of a notebook.
    pub cell: Option<AskedCell>,
}

impl Runs {
    /// Creates an empty registry. Runs are followed on `runtime`, and each ends with an [`Event::RunEnded`].
    pub fn new(runtime: Handle, client: Client, events: Sender<Event>) -> Runs {
        let (settings, running, in_progress) = (Settings::default(), Vec::new(), Arc::default());
        let [run_turns, stage_turns] = [(); 2].map(|()| Arc::new(Semaphore::new(MAX_CHILDREN)));
        Runs { runtime, client, events, settings, running, in_progress, run_turns, stage_turns, started: 0 }
    }

    /// Sets the settings of later runs.
    pub fn configure(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Starts a run, or queues it if others are in progress, and ends an earlier run of the same document. `may_create`
    /// is whether the client accepts a progress that it did not request.
    pub fn start(&mut self, program: Program, order: Order, may_create: bool) {
        let id = self.next(true, &program.uri);
        let Order { function, module, token, mut reply, arguments, .. } = order;
        let asked_for = token.is_some();
        let token = token.unwrap_or_else(|| ProgressToken::String(format!("rx/run/{id}")));
        let uri = program.uri.clone();
        let run = InProgress { uri: uri.clone(), function: function.clone(), module: module.clone() };
        let call = self.call(program, (function, module), arguments, None);
        let mut view = RunView::new(self.client.clone(), &call.label, self.settings.message);
        if asked_for || may_create {
            view = view.with_progress(token.clone(), asked_for);
        }
        let (stop, stopped) = oneshot::channel();
        self.running.push(Running { id, uri, run: Some(run), token: Some(token), stop });
        self.list_runs();
        let (events, turns) = (self.events.clone(), Arc::clone(&self.run_turns));
        self.runtime.spawn(async move {
            let outcome = follow(call, &mut view, &turns, stopped, &mut reply).await;
            view.end(&outcome).await;
            // Errors mean that the client no longer waits for the response, or that the main loop has ended.
            let _ = reply.send(outcome);
            let _ = events.send(Event::RunEnded(id));
        });
    }

    /// Returns a read that computes a stage inside the server.
    ///
    /// # Errors
    /// Returns the order if only `rxrun` can compute it.
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

    /// Starts a child that computes a stage, and ends an earlier such child for the same document.
    pub fn show(&mut self, program: Program, subject: Subject, order: stage::Order) {
        let stage::Order { stage, mut reply, .. } = order;
        let uri = program.uri.clone();
        let id = self.next(false, &uri);
        let module = subject.module.clone().filter(|_| !subject.alone);
        let function = Some(subject.function.clone());
        let call = self.call(program, (function, module), Vec::new(), Some(stage));
        let mut view = RunView::new(self.client.clone(), &call.label, self.settings.message);
        let (stop, stopped) = oneshot::channel();
        self.running.push(Running { id, uri, run: None, token: None, stop });
        let (events, turns) = (self.events.clone(), Arc::clone(&self.stage_turns));
        self.runtime.spawn(async move {
            let outcome = follow(call, &mut view, &turns, stopped, &mut reply).await;
            // Errors are ignored for the same reasons as in `start`. The outcome is not shown as a message, because the
            // response contains it.
            let _ = reply.send(Some(stage::shown(&subject, stage, outcome)));
            let _ = events.send(Event::RunEnded(id));
        });
    }

    /// Returns an id for a new child, and ends an earlier child of the same kind (a run, or a stage) and document.
    fn next(&mut self, is_run: bool, uri: &Uri) -> u64 {
        self.stop(Stop::Replaced, |running| running.run.is_some() == is_run && running.uri == *uri);
        self.started += 1;
        self.started
    }

    /// Assembles the call of `rxrun` for a function and its module. `arguments` are appended to those of the settings.
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
            cell: program.cell,
            values: stage.is_none() && self.settings.values,
            limit: self.settings.limit,
            label,
        }
    }

    /// Ends the run whose progress the client cancelled. A token of another progress is ignored.
    pub fn cancel(&mut self, token: &ProgressToken) {
        self.stop(Stop::Cancelled, |running| running.token.as_ref() == Some(token));
    }

    /// Ends the run of a document, or the runs of all documents if it is `None`.
    pub fn cancel_run(&mut self, uri: Option<&Uri>) {
        self.stop(Stop::Cancelled, |running| running.run.is_some() && uri.is_none_or(|uri| running.uri == *uri));
    }

    /// Ends the run of a closed document, and the child that shows a stage of it.
    pub fn close(&mut self, uri: &Uri) {
        self.stop(Stop::Cancelled, |running| running.uri == *uri);
    }

    /// Returns the runs that are in progress and were not stopped.
    pub fn in_progress(&self) -> &Arc<[InProgress]> {
        &self.in_progress
    }

    /// Updates [`Runs::in_progress`] after runs started or ended.
    fn list_runs(&mut self) {
        self.in_progress = self.running.iter().filter_map(|running| running.run.clone()).collect();
    }

    /// Ends all runs.
    pub fn cancel_all(&mut self) {
        self.stop(Stop::Cancelled, |_| true);
    }

    /// Removes a run that has ended.
    pub fn ended(&mut self, id: u64) {
        self.running.retain(|running| running.id != id);
        self.list_runs();
    }

    fn stop(&mut self, why: Stop, which: impl Fn(&Running) -> bool) {
        for running in self.running.extract_if(.., |running| which(running)) {
            // An error means that the run has just ended by itself.
            let _ = running.stop.send(why);
        }
        self.list_runs();
    }
}

/// Runs the child until it ends, is stopped, or the client cancels the request.
async fn follow<T>(
    call: Call,
    view: &mut RunView,
    turns: &Semaphore,
    stopped: oneshot::Receiver<Stop>,
    reply: &mut oneshot::Sender<T>,
) -> Outcome {
    let stop = async {
        tokio::select! {
            // The registry, and with it the sender, is dropped when the server ends.
            stop = stopped => stop.unwrap_or(Stop::Cancelled),
            () = reply.closed() => Stop::Cancelled,
        }
    };
    child::run(call, view, turns, stop).await
}
