//! The main loop: the thread that owns the documents and decides the order of all work on them.
//!
//! Events arrive in the client's order. All events that are already in the queue are handled as one batch: consecutive
//! changes of a document are applied as one edit, and then each touched document is checked once. For example, ten
//! keystrokes that arrive during a check cost one more check, not ten. Diagnostics of a text that a queued change has
//! already made obsolete are not sent (for at most 50 ms).

use crate::documents::Documents;
use crate::event::{Event, NotLowered};
use crate::lsp::to_proto::Diagnostics;
use crate::lsp::{Change, Preferences, Profile, Uri, from_proto};
use crate::outbox::{Outbox, Progress};
use crate::pull::{Pull, Report};
use crate::reads::{Job, Lane, Queue};
use crate::run::child::file_name;
use crate::run::registry::{Program, Runs};
use crate::run::{InProgress, Order, Outcome, stage};
use rx_db::FileKind;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// The maximal number of events in a batch, so that a client that never pauses still receives diagnostics.
const MAX_BATCH: usize = 1024;

/// The longest time that diagnostics are held back because the next change is already in the queue. After it they are
/// sent even if the client never pauses.
const HOLD: Duration = Duration::from_millis(50);

/// The size in bytes from which the first check of a text is shown as a progress: it may take a second on a slow
/// machine.
const LONG: usize = 4 << 20;

/// Changes of one document, in order, and the document's version after them.
struct Changes {
    uri: Uri,
    version: i32,
    changes: Vec<Change>,
}

/// The state of the main loop.
pub struct MainLoop {
    inbox: Receiver<Event>,
    /// Events that were taken from `inbox` to look ahead and are not handled yet.
    ahead: VecDeque<Event>,
    outbox: Outbox,
    profile: Profile,
    preferences: Preferences,
    documents: Documents,
    runs: Runs,
    /// The runs for which the client last requested lenses.
    in_progress: Arc<[InProgress]>,
    /// The queue of reads that take milliseconds.
    short: Queue,
    /// The queue of reads that may take seconds.
    long: Queue,
    /// Changes of one document that are not applied yet: consecutive changes are applied together.
    changes: Option<Changes>,
    /// Documents that changed since their last check.
    touched: Vec<Uri>,
    /// The version and the diagnostics of each cell that were published last.
    published: HashMap<Uri, (i32, Diagnostics)>,
    /// Whether the client is to be asked at the end of the batch to pull all diagnostics again.
    must_refresh: bool,
    /// Pull requests for diagnostics. They are answered at the end of the batch, so that of several requests during
    /// fast typing only the last is computed.
    pulls: Vec<Pull>,
    /// The document that was opened or changed most recently. A run without a document uses it.
    last: Option<Uri>,
    /// Large documents whose first check is not finished, each with the progress that is shown.
    checking: Vec<(Uri, Progress)>,
    /// The time since which diagnostics are held back; `None` if none are.
    held: Option<Instant>,
}

impl MainLoop {
    /// Creates a loop over the events of `inbox`, with the read queues of the two lanes and the registry of runs.
    pub fn new(inbox: Receiver<Event>, (short, long): (Queue, Queue), outbox: Outbox, runs: Runs) -> MainLoop {
        MainLoop {
            inbox,
            ahead: VecDeque::new(),
            outbox,
            profile: Profile::default(),
            preferences: Preferences::default(),
            documents: Documents::default(),
            runs,
            in_progress: Arc::default(),
            short,
            long,
            changes: None,
            touched: Vec::new(),
            published: HashMap::new(),
            must_refresh: false,
            pulls: Vec::new(),
            last: None,
            checking: Vec::new(),
            held: None,
        }
    }

    /// Handles events until [`Event::Stop`].
    pub fn run(mut self) {
        let mut running = true;
        while running && let Some(first) = self.ahead.pop_front().or_else(|| self.inbox.recv().ok()) {
            running = self.handle(first);
            for _ in 1..MAX_BATCH {
                match self.ahead.pop_front().or_else(|| self.inbox.try_recv().ok()) {
                    Some(event) if running => running = self.handle(event),
                    _ => break,
                }
            }
            self.make_changes();
            self.show_runs();
            if running && self.are_overtaken() {
                continue;
            }
            self.start_reads();
            self.publish();
            self.answer_pulls();
            self.documents.take_complaints().iter().for_each(|message| self.outbox.complain(message));
            self.documents.take_log().into_iter().for_each(|line| self.outbox.log(line));
            if self.documents.take_closed_bytes() > 0 {
                rx_memory::give_back();
            }
        }
    }

    /// Handles one event. Checks and reads are only recorded; they start at the end of the batch. Returns `false` for
    /// the last event.
    fn handle(&mut self, event: Event) -> bool {
        // These events either do not depend on the documents or are deferred to the end of the batch, so the gathered
        // changes need not be applied first.
        let overtakes = matches!(
            event,
            Event::Change { .. } | Event::Pull(_) | Event::Read(_) | Event::ReadAgain(_) | Event::ReadDone(..)
        );
        if !overtakes {
            self.make_changes();
        }
        match event {
            Event::Configure(profile) => self.profile = profile,
            Event::Initialized => self.outbox.register(&self.profile),
            Event::PullSettings if self.profile.settings => self.outbox.pull_settings(),
            // The client neither sends the new settings nor answers `workspace/configuration`: those of `initialize`
            // stay in effect.
            Event::PullSettings => {}
            Event::Settings(settings) => self.runs.configure(settings),
            Event::Prefer(preferences) => self.preferences = preferences,
            Event::Choose(choice, unknown) => {
                unknown.iter().for_each(|word| self.outbox.complain(&format!("setting rx.check: {word}")));
                if self.documents.choose(choice) {
                    self.touch_all();
                }
            }
            Event::SettingsFiles => {
                self.documents.read_settings();
                self.touch_all();
            }
            Event::Open { uri, language, version, text } => {
                let kind = from_proto::file_kind(&language, &uri);
                if text.len() >= LONG && self.profile.progress {
                    let title = format!("Checking {}", file_name(&from_proto::path_or_name(&uri)));
                    self.checking.push((uri.clone(), self.outbox.progress(title)));
                }
                self.documents.open(uri.clone(), kind, version, &text);
                self.touch(uri);
            }
            Event::Change { uri, version, changes } => self.gather(uri, version, changes),
            Event::Close { uri } => {
                self.forget(&uri);
                if self.documents.close(&uri) {
                    self.unpublish(vec![uri]);
                }
            }
            Event::OpenNotebook { uri, version, cells } => {
                let replaced = self.documents.open_notebook(uri.clone(), version, cells);
                self.unpublish(replaced);
                self.touch(uri);
            }
            Event::ChangeNotebook { uri, version, changes } => {
                let is_empty = changes.is_empty();
                match self.documents.change_notebook(&uri, version, changes, &self.profile) {
                    Some(_) if is_empty => {}
                    Some(removed) => {
                        self.unpublish(removed);
                        self.touch(uri);
                        // The client pulls the changed cells only, but the diagnostics of the others may change too.
                        self.must_refresh |= self.profile.pulls;
                    }
                    None => self.outbox.log(format!("the client changed {}, which is not open", uri.as_str())),
                }
            }
            Event::CloseNotebook { uri } => {
                self.forget(&uri);
                let cells = self.documents.close_notebook(&uri);
                self.unpublish(cells);
            }
            Event::Pull(pull) => self.pulls.push(pull),
            Event::Read(read) => self.queue(read.lane).push(read),
            Event::ReadAgain(read) => self.queue(read.lane).again(read),
            Event::NotLowered(found) => self.not_lowered(found),
            Event::ReadDone(lane, complaint) => {
                self.queue(lane).free();
                complaint.into_iter().for_each(|line| self.outbox.log(line));
            }
            Event::Run(order) => self.run_function(order),
            Event::Stage(order) => self.show_stage(order),
            Event::ApplyEdit(edit) if self.profile.writing.apply => self.outbox.apply(edit),
            Event::ApplyEdit(_) => self.outbox.complain("this editor cannot apply edits for a command"),
            Event::RunEnded(id) => self.runs.ended(id),
            Event::CancelProgress(token) => self.runs.cancel(&token),
            Event::StopRun(uri) => self.runs.cancel_run(uri.as_ref().map(|uri| self.documents.owner(uri))),
            Event::CancelRuns => self.runs.cancel_all(),
            Event::Stop => return false,
        }
        true
    }

    /// Removes a document or notebook that is being closed from the state of this loop, and ends its children.
    fn forget(&mut self, uri: &Uri) {
        self.checked(uri);
        self.touched.retain(|touched| touched != uri);
        self.last = self.last.take().filter(|last| last != uri);
        self.runs.close(uri);
    }

    /// Removes the diagnostics of closed documents from the client.
    fn unpublish(&mut self, closed: Vec<Uri>) {
        if self.profile.pulls {
            return;
        }
        for uri in closed {
            self.published.remove(&uri);
            self.outbox.publish(uri, None, Vec::new());
        }
    }

    fn gather(&mut self, uri: Uri, version: i32, mut changes: Vec<Change>) {
        if self.changes.as_ref().is_some_and(|gathered| gathered.uri != uri) {
            self.make_changes();
        }
        match &mut self.changes {
            Some(gathered) => {
                gathered.version = version;
                gathered.changes.append(&mut changes);
            }
            None => self.changes = Some(Changes { uri, version, changes }),
        }
    }

    /// Applies the gathered changes as one edit.
    fn make_changes(&mut self) {
        let Some(Changes { uri, version, changes }) = self.changes.take() else { return };
        let _span = tracing::debug_span!("change", uri = uri.as_str(), version).entered();
        if self.documents.change(&uri, version, &changes, &self.profile) {
            self.touch(uri);
        } else {
            self.outbox.log(format!("the client changed {}, which is not open", uri.as_str()));
        }
    }

    /// Starts a child process that runs a function of the current text.
    fn run_function(&mut self, mut order: Order) {
        let Some(uri) = order.uri.take().or_else(|| self.last.clone()) else {
            return self.refuse(order, "no document is open");
        };
        match self.documents.text(&uri) {
            Ok((text, kind)) => {
                let program = self.program(&uri, text, kind);
                self.runs.start(program, order, self.profile.progress);
            }
            Err(why) => self.refuse(order, why),
        }
    }

    /// Shows a stage of the function at a position, or of the whole module if the stage has no single function. The
    /// stage is computed by a worker if the registry can build it, otherwise by a child process.
    fn show_stage(&mut self, order: stage::Order) {
        let order = match self.runs.build(order) {
            Ok(read) => return self.queue(read.lane).push(read),
            Err(order) => order,
        };
        let found = self.documents.subject(&order.uri, order.at, order.stage, self.profile.encoding);
        let text = self.documents.text(&order.uri);
        match found.zip(text.ok()) {
            Some((subject, (text, kind))) => {
                let program = self.program(&order.uri, text, kind);
                self.runs.show(program, subject, order);
            }
            // An error means that the client no longer waits for the response.
            None => drop(order.reply.send(None)),
        }
    }

    /// Returns the program of a document with this text; the program of a cell is its notebook.
    fn program(&self, uri: &Uri, text: String, kind: FileKind) -> Program {
        let (cell, encoding) = (self.documents.cell(uri), self.profile.encoding);
        Program { uri: self.documents.owner(uri).clone(), text, kind, encoding, cell }
    }

    /// Asks the client to request the lenses again if runs have started or ended.
    fn show_runs(&mut self) {
        let in_progress = self.runs.in_progress();
        if *in_progress != self.in_progress {
            self.in_progress = Arc::clone(in_progress);
            self.outbox.refresh_lenses(&self.profile);
        }
    }

    fn refuse(&self, order: Order, why: &str) {
        let message = format!("nothing was run: {why}");
        self.outbox.complain(&message);
        // An error means that the client no longer waits for the response.
        let _ = order.reply.send(Outcome::failed(message));
    }

    fn touch(&mut self, uri: Uri) {
        if self.last.as_ref() != Some(&uri) {
            self.last = Some(uri.clone());
        }
        touch(&mut self.touched, &uri);
    }

    fn queue(&mut self, lane: Lane) -> &mut Queue {
        match lane {
            Lane::Short => &mut self.short,
            Lane::Long => &mut self.long,
        }
    }

    /// Hands queued reads to the free workers.
    fn start_reads(&mut self) {
        for queue in [&mut self.short, &mut self.long] {
            while let Some(read) = queue.take() {
                let Some((snapshot, documents)) = self.documents.snapshot(read.uri.as_ref()) else {
                    read.question.answer();
                    continue;
                };
                let (profile, preferences) = (self.profile, self.preferences);
                let in_progress = Arc::clone(&self.in_progress);
                queue.give(Job { read, snapshot, documents, profile, preferences, in_progress });
            }
        }
    }

    /// Adds errors of lowering to a document's diagnostics, if its text has not changed meanwhile.
    fn not_lowered(&mut self, NotLowered { uri, text_number, diagnostics }: NotLowered) {
        if self.documents.not_lowered(&uri, text_number, diagnostics) {
            touch(&mut self.touched, self.documents.owner(&uri));
            self.restate();
        }
    }

    /// Asks clients that pull diagnostics to pull them again.
    fn restate(&mut self) {
        if self.profile.pulls && !self.touched.is_empty() {
            self.documents.restate();
            self.must_refresh = true;
        }
    }

    /// Marks all documents for a new check, because settings affect the diagnostics of each.
    fn touch_all(&mut self) {
        self.documents.uris().for_each(|uri| touch(&mut self.touched, uri));
        self.restate();
    }

    /// Checks the touched documents and publishes their diagnostics. They are published even if they are unchanged,
    /// because the client waits for diagnostics of the new version. Of a notebook, only cells are published that have
    /// a new version or other diagnostics. Nothing is published to a client that pulls diagnostics.
    fn publish(&mut self) {
        let touched = std::mem::take(&mut self.touched);
        let _span = (!touched.is_empty()).then(|| tracing::debug_span!("publish").entered());
        if std::mem::take(&mut self.must_refresh) {
            self.outbox.refresh(&self.profile);
        }
        if self.profile.pulls {
            self.held = None;
            return;
        }
        let mut held = false;
        for uri in touched {
            let reports = self.documents.reports(&uri, &self.profile);
            self.checked(&uri);
            if reports.is_empty() {
                continue;
            }
            if self.is_overtaken(&uri) {
                held = true;
                continue;
            }
            let is_notebook = reports.iter().any(|(of, ..)| *of != uri);
            for (uri, version, diagnostics) in reports {
                if is_notebook {
                    let published = self.published.get(&uri);
                    if published.is_some_and(|(of, known)| *of == version && *known == diagnostics) {
                        continue;
                    }
                    self.published.insert(uri.clone(), (version, diagnostics.clone()));
                }
                self.outbox.publish(uri, Some(version), diagnostics);
            }
        }
        if !held {
            self.held = None;
        }
    }

    /// Ends the progress of a document's first check.
    fn checked(&mut self, uri: &Uri) {
        self.checking.retain(|(checking, _)| checking != uri);
    }

    /// Whether the queue already has a change of a touched document, so that its check can wait for that change.
    fn are_overtaken(&mut self) -> bool {
        let touched = std::mem::take(&mut self.touched);
        let overtaken = touched.iter().any(|uri| self.is_overtaken(uri));
        self.touched = touched;
        overtaken
    }

    /// Whether the queue already has a change of the document, so that its diagnostics can wait for that change.
    /// `false` once diagnostics have been held back for [`HOLD`].
    fn is_overtaken(&mut self, uri: &Uri) -> bool {
        while self.ahead.len() < MAX_BATCH
            && let Ok(event) = self.inbox.try_recv()
        {
            self.ahead.push_back(event);
        }
        let changes = |event: &Event| match event {
            Event::Change { uri: changed, .. } => changed == uri,
            Event::ChangeNotebook { uri: changed, changes, .. } => changed == uri && !changes.is_empty(),
            _ => false,
        };
        self.ahead.iter().any(changes) && self.held.get_or_insert_with(Instant::now).elapsed() < HOLD
    }

    /// Answers the pull requests for diagnostics from the current text. A notebook is converted once for all its cells.
    fn answer_pulls(&mut self) {
        let mut reports: Vec<(Uri, i32, Diagnostics)> = Vec::new();
        for pull in std::mem::take(&mut self.pulls) {
            if pull.reply.is_closed() {
                continue;
            }
            let id = self.documents.statement_id(&pull.uri);
            let known = pull.previous.is_some() && pull.previous == id;
            let diagnostics = match known {
                true => None,
                false => {
                    if reports.iter().all(|(of, ..)| *of != pull.uri) {
                        reports.extend(self.documents.reports(&pull.uri, &self.profile));
                    }
                    let index = reports.iter().position(|(of, ..)| *of == pull.uri);
                    Some(index.map(|index| reports.swap_remove(index).2).unwrap_or_default())
                }
            };
            self.checked(&pull.uri);
            // An error means that the client no longer waits for the response.
            let _ = pull.reply.send(Ok(Report { id, diagnostics }));
        }
    }
}

fn touch(touched: &mut Vec<Uri>, uri: &Uri) {
    if !touched.contains(uri) {
        touched.push(uri.clone());
    }
}
