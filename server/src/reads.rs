//! Read-only requests about documents. Worker threads answer them on snapshots of the database while edits continue on
//! the main loop.

use crate::event::Event;
use crate::lsp::semantic::Sent;
use crate::lsp::{self, Point, Preferences, Profile, Uri, to_proto};
use crate::notebooks::{AskedCell, in_document};
use crate::projects::Said;
use crate::run::InProgress;
use rx_base::{Diagnostic, Span};
use rx_db::{FileId, FileView, Snapshot};
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// A group of workers for requests of similar cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// For requests that take milliseconds.
    Short,
    /// For requests that may take seconds: code generation.
    Long,
}

impl Lane {
    /// Returns the number of workers. It is small because an edit waits until each running read has noticed its
    /// cancellation.
    fn workers(self) -> usize {
        match self {
            Lane::Short => 2,
            Lane::Long => 1,
        }
    }

    /// Returns the stack size of a worker in bytes. Code generation walks loop nests recursively; `rxrun` uses a stack
    /// of the same size for it.
    fn stack_size(self) -> usize {
        match self {
            Lane::Short => STACK_SIZE,
            Lane::Long => 4 * STACK_SIZE,
        }
    }
}

/// The reads of a lane that no worker has started. A read gets its snapshot only when a worker is free, because an edit
/// waits until every snapshot is dropped.
pub struct Queue {
    jobs: Sender<Job>,
    waiting: VecDeque<Read>,
    busy: usize,
    workers: usize,
}

impl Queue {
    /// Adds a read at the end of the queue.
    pub fn push(&mut self, read: Read) {
        self.waiting.push_back(read);
    }

    /// Records that a worker is free again.
    // INVARIANT: each job that made a worker busy ends with one `Event::ReadAgain` or `Event::ReadDone`.
    pub fn free(&mut self) {
        self.busy -= 1;
    }

    /// Records that a worker is free again, and puts its cancelled read at the front of the queue.
    pub fn again(&mut self, read: Read) {
        self.free();
        self.waiting.push_front(read);
    }

    /// Removes and returns the next read that the client still waits for. `None` if there is none or if all workers are
    /// busy.
    pub fn take(&mut self) -> Option<Read> {
        if self.busy == self.workers {
            return None;
        }
        std::iter::from_fn(|| self.waiting.pop_front()).find(|read| !read.question.is_abandoned())
    }

    /// Sends a job to a free worker.
    pub fn give(&mut self, job: Job) {
        // Workers outlive the queue. If they were gone, dropping the job would drop its reply, and the request would
        // fail.
        if self.jobs.send(job).is_ok() {
            self.busy += 1;
        }
    }
}

/// The stack size in bytes of threads that query the database. The analysis recurses on nested text, and salsa does not
/// grow stacks.
pub const STACK_SIZE: usize = 64 << 20;

/// Starts a thread with a stack of [`STACK_SIZE`], which ends when `run` returns.
///
/// # Errors
/// The operating system cannot start a thread.
pub fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.into()).stack_size(STACK_SIZE).spawn(run).map(drop)
}

/// The reason why a read failed: a sentence for the client's log.
pub type Failure = &'static str;

/// The sender of a response. It is closed once the client cancels the request.
pub type Reply<T> = oneshot::Sender<Result<T, Failure>>;

/// A read-only request about one open document, or about all of them.
pub struct Read {
    /// The document, or `None` for all open documents.
    pub uri: Option<Uri>,
    /// The workers that handle it.
    pub lane: Lane,
    /// The query to run, and the sender of its response.
    pub question: Box<dyn Ask>,
}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read").field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl Read {
    /// Creates a read that computes its result with `ask`, and returns it with the receiver of the result. For a
    /// document that is not open or cannot be checked, the result is `T::default()`.
    pub fn new<T: Default + Send + 'static>(
        uri: Uri,
        ask: impl Fn(&Subject<'_>) -> T + Send + 'static,
    ) -> (Read, oneshot::Receiver<Result<T, Failure>>) {
        let (reply, receiver) = oneshot::channel();
        let question = Box::new(Question { ask, reply, answer: T::default() });
        (Read { uri: Some(uri), lane: Lane::Short, question }, receiver)
    }

    /// Creates a read that calls `ask` for each open document and concatenates the results.
    pub fn of_all<T: Send + 'static>(
        ask: impl Fn(&Subject<'_>) -> Vec<T> + Send + 'static,
    ) -> (Read, oneshot::Receiver<Result<Vec<T>, Failure>>) {
        let (reply, receiver) = oneshot::channel();
        let question = Box::new(Survey { ask, reply, answer: Vec::new() });
        (Read { uri: None, lane: Lane::Short, question }, receiver)
    }
}

/// The query of a read. A read that was cancelled by an edit runs the same query again.
pub trait Ask: Send {
    /// Whether the client no longer waits for the response.
    fn is_abandoned(&self) -> bool;
    /// Discards the results of a cancelled attempt.
    fn begin(&mut self) {}
    /// Computes the result, or the part of it that comes from one document, and stores it.
    fn find(&mut self, subject: &Subject<'_>);
    /// Sends the stored result; the default if no document was visited.
    fn answer(self: Box<Self>);
    /// Sends an error instead of a result.
    fn fail(self: Box<Self>, why: Failure);
}

struct Question<T, F> {
    ask: F,
    reply: Reply<T>,
    answer: T,
}

impl<T: Default + Send, F: Fn(&Subject<'_>) -> T + Send> Ask for Question<T, F> {
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn find(&mut self, subject: &Subject<'_>) {
        self.answer = (self.ask)(subject);
    }

    fn answer(self: Box<Self>) {
        // A closed receiver means that the request was cancelled.
        drop(self.reply.send(Ok(self.answer)));
    }

    fn fail(self: Box<Self>, why: Failure) {
        drop(self.reply.send(Err(why)));
    }
}

struct Survey<T, F> {
    ask: F,
    reply: Reply<Vec<T>>,
    answer: Vec<T>,
}

impl<T: Send, F: Fn(&Subject<'_>) -> Vec<T> + Send> Ask for Survey<T, F> {
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn begin(&mut self) {
        self.answer.clear();
    }

    fn find(&mut self, subject: &Subject<'_>) {
        self.answer.extend((self.ask)(subject));
    }

    fn answer(self: Box<Self>) {
        drop(self.reply.send(Ok(self.answer)));
    }

    fn fail(self: Box<Self>, why: Failure) {
        drop(self.reply.send(Err(why)));
    }
}

/// The subject of a query: a document in a snapshot, and the client's capabilities and preferences.
pub struct Subject<'a> {
    /// The document and the analyses of it.
    pub view: FileView<'a>,
    /// The document's URI; in a notebook, that of the cell.
    pub uri: &'a Uri,
    /// The cell, if the document is one of a notebook.
    pub cell: Option<&'a AskedCell>,
    /// The client's capabilities.
    pub profile: &'a Profile,
    /// The user's settings for display.
    pub preferences: &'a Preferences,
    /// The client's version of the text.
    pub version: i32,
    /// The server's number of the text.
    pub text_number: u64,
    /// The settings that apply to the document.
    pub said: &'a Said,
    /// The semantic tokens that the client has, for the next delta.
    pub sent: &'a Mutex<Option<Sent>>,
    /// The run of the document, if one is in progress.
    pub in_progress: Option<&'a InProgress>,
}

impl Subject<'_> {
    /// Returns the byte offset of a position.
    pub fn offset(&self, at: Point) -> usize {
        let at = self.cell.map_or(at, |cell| cell.point(at));
        self.view.document().offset_of(at.line, at.column, self.profile.encoding)
    }

    /// Returns the byte span between two positions.
    pub fn span(&self, start: Point, end: Point) -> Span {
        let place = |at| u32::try_from(self.offset(at)).unwrap_or(u32::MAX);
        Span::new(place(start), place(end))
    }

    /// Returns the document's diagnostics, with the severities of its settings applied.
    pub fn diagnostics(&self) -> Vec<Diagnostic<Span>> {
        self.said.apply(self.view.workspace().diagnostics(self.view.file()))
    }

    /// Converts a byte span to a range in the client's position encoding; in a notebook, a range of the cell in which
    /// it begins.
    pub fn range(&self, span: Span) -> lsp::Range {
        let range = self.range_in_text(span);
        self.cell.map_or(range, |cell| cell.layout.range(range).1)
    }

    fn range_in_text(&self, span: Span) -> lsp::Range {
        to_proto::range(self.view.document(), span, self.profile.encoding)
    }

    /// Converts a byte span to a location; in a notebook, a location in the cell in which it begins.
    pub fn location(&self, span: Span) -> lsp::Location {
        let layout = self.cell.map(|cell| &*cell.layout);
        to_proto::location(self.view.document(), self.uri, layout, span, self.profile.encoding)
    }

    /// Whether a byte span begins in this document; in a notebook, in this cell.
    pub fn holds(&self, span: Span) -> bool {
        match self.cell {
            Some(AskedCell { index: Some(_), .. }) => in_document(self.range_in_text(span), self.cell).is_some(),
            _ => true,
        }
    }

    /// Returns the version of the text at a location in this document or in another cell of the notebook.
    pub fn version_of(&self, uri: &Uri) -> i32 {
        let cell = self.cell.and_then(|cell| cell.layout.documents().get(cell.layout.index(uri)?));
        cell.map_or(self.version, |(_, version)| *version)
    }

    /// Returns the byte span of this document; in a notebook, of this cell, without the line end that joins it.
    pub fn whole(&self) -> Span {
        let document = self.view.document();
        let place = |offset| u32::try_from(offset).unwrap_or(u32::MAX);
        let Some(AskedCell { layout, index: Some(index) }) = self.cell else {
            return Span::new(0, place(document.len()));
        };
        let (start, end) = layout.lines(*index);
        let offset = |line| place(document.offset_of(line, 0, self.profile.encoding));
        Span::new(offset(start), end.map_or(place(document.len()), offset).saturating_sub(1))
    }
}

/// A document that a read covers.
pub struct Asked {
    /// The document's URI.
    pub uri: Uri,
    /// The URI of the notebook if the document is a cell; otherwise that of the document.
    pub owner: Uri,
    /// Its id in the database.
    pub file: FileId,
    /// The cell, if the document is one of a notebook.
    pub cell: Option<AskedCell>,
    /// The semantic tokens that the client has, for the next delta.
    pub sent: Arc<Mutex<Option<Sent>>>,
    /// The client's version of the text.
    pub version: i32,
    /// The server's number of the text.
    pub text_number: u64,
    /// The settings that apply to it.
    pub said: Said,
}

/// A read with everything that a worker needs to run it.
pub struct Job {
    /// The read.
    pub read: Read,
    /// A snapshot of the current database.
    pub snapshot: Snapshot,
    /// The documents that the read covers.
    pub documents: Vec<Asked>,
    /// The client's capabilities.
    pub profile: Profile,
    /// The user's settings for display.
    pub preferences: Preferences,
    /// The runs in progress, of all documents.
    pub in_progress: Arc<[InProgress]>,
}

/// Starts the workers of a lane. They end when the returned queue is dropped. Each job ends with one
/// [`Event::ReadDone`] or [`Event::ReadAgain`].
///
/// # Errors
/// The operating system cannot start a thread.
pub fn start_workers(lane: Lane, events: &Sender<Event>) -> std::io::Result<Queue> {
    let (jobs, inbox) = channel();
    let inbox = Arc::new(Mutex::new(inbox));
    for number in 0..lane.workers() {
        let (inbox, events) = (Arc::clone(&inbox), events.clone());
        let builder = std::thread::Builder::new().name(format!("{lane:?} {number}")).stack_size(lane.stack_size());
        builder.spawn(move || work(&inbox, &events))?;
    }
    Ok(Queue { jobs, waiting: VecDeque::new(), busy: 0, workers: lane.workers() })
}

fn work(inbox: &Mutex<Receiver<Job>>, events: &Sender<Event>) {
    loop {
        // The lock guard is dropped at the end of this statement, so workers exclude each other only while they wait
        // for a job.
        let job = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        if events.send(run(job)).is_err() {
            return;
        }
    }
}

/// Runs one read. The snapshot is dropped before this returns, so that edits do not wait for it.
fn run(job: Job) -> Event {
    let Job { mut read, snapshot, documents, profile, preferences, in_progress } = job;
    let lane = read.lane;
    let _span = tracing::debug_span!("read", uri = read.uri.as_ref().map(|uri| uri.as_str())).entered();
    let find = || {
        snapshot.catch(|snapshot| {
            read.question.begin();
            for Asked { uri, owner, file, cell, sent, version, text_number, said } in &documents {
                if let Some(view) = snapshot.view(*file) {
                    let (profile, preferences) = (&profile, &preferences);
                    let (version, text_number) = (*version, *text_number);
                    let cell = cell.as_ref();
                    let in_progress = in_progress.iter().find(|run| run.uri == *owner);
                    let subject = Subject {
                        view,
                        uri,
                        cell,
                        profile,
                        preferences,
                        version,
                        text_number,
                        said,
                        sent,
                        in_progress,
                    };
                    read.question.find(&subject);
                }
            }
        })
    };
    let outcome = catch_unwind(AssertUnwindSafe(find));
    drop(snapshot);
    match outcome {
        Ok(Ok(())) => {
            read.question.answer();
            Event::ReadDone(lane, None)
        }
        Ok(Err(_cancelled)) => Event::ReadAgain(read),
        Err(_panic) => {
            let about = read.uri.as_ref().map_or("all documents", |uri| uri.as_str());
            let message = format!("a request about {about} failed: this is a bug in rx-lsp");
            read.question.fail("internal error");
            Event::ReadDone(lane, Some(message))
        }
    }
}
