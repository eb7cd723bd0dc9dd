//! Questions about documents, answered by workers on snapshots of the database while edits go on.

use crate::event::Event;
use crate::lsp::semantic::Sent;
use crate::lsp::{self, Point, Preferences, Profile, Uri, to_proto};
use crate::projects::Said;
use rx_base::{Diagnostic, Span};
use rx_db::{FileId, FileView, Snapshot};
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Who answers a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Workers for what takes milliseconds.
    Short,
    /// A worker for what may take seconds: code generation.
    Long,
}

impl Lane {
    /// How many questions it answers at once. An edit waits until each has noticed it, so they are few.
    fn workers(self) -> usize {
        match self {
            Lane::Short => 2,
            Lane::Long => 1,
        }
    }

    /// The stack of its workers: code generation walks loop nests recursively, as `rxrun` does on a stack of this size.
    fn stack_size(self) -> usize {
        match self {
            Lane::Short => STACK_SIZE,
            Lane::Long => 4 * STACK_SIZE,
        }
    }
}

/// The questions of a lane that no worker has yet. A worker gets one with a fresh snapshot only when it is free: an edit waits for
/// every snapshot to be dropped.
pub struct Queue {
    jobs: Sender<Job>,
    waiting: VecDeque<Read>,
    busy: usize,
    workers: usize,
}

impl Queue {
    /// Adds a question.
    pub fn push(&mut self, read: Read) {
        self.waiting.push_back(read);
    }

    /// A worker is free again.
    // INVARIANT: each job that made a worker busy ends with one `Event::ReadAgain` or `Event::ReadDone`.
    pub fn free(&mut self) {
        self.busy -= 1;
    }

    /// A worker is free again, and its question is the next.
    pub fn again(&mut self, read: Read) {
        self.free();
        self.waiting.push_front(read);
    }

    /// The next question that somebody waits for, where a worker is free.
    pub fn take(&mut self) -> Option<Read> {
        if self.busy == self.workers {
            return None;
        }
        std::iter::from_fn(|| self.waiting.pop_front()).find(|read| !read.question.is_abandoned())
    }

    /// Gives a question to a free worker.
    pub fn give(&mut self, job: Job) {
        // Workers end only when the main loop does; were they gone, the dropped job would answer with an error.
        if self.jobs.send(job).is_ok() {
            self.busy += 1;
        }
    }
}

/// For the threads that ask the database: analysis of nested text recurses, and salsa grows no stacks.
pub const STACK_SIZE: usize = 64 << 20;

/// Why there is no answer: a sentence for the client's log.
pub type Failure = &'static str;

/// Where an answer goes; closed when the client cancelled the request.
pub type Reply<T> = oneshot::Sender<Result<T, Failure>>;

/// A question about one document, or about all that are open.
pub struct Read {
    /// Which document; all if there is none.
    pub uri: Option<Uri>,
    /// Who answers it.
    pub lane: Lane,
    /// What is asked.
    pub question: Box<dyn Ask>,
}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read").field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl Read {
    /// A question that `ask` answers, and where the answer will be. A document that is not open, or cannot be checked, has the
    /// default answer: nothing.
    pub fn new<T: Default + Send + 'static>(
        uri: Uri,
        ask: impl Fn(&Subject<'_>) -> T + Send + 'static,
    ) -> (Read, oneshot::Receiver<Result<T, Failure>>) {
        let (reply, receiver) = oneshot::channel();
        let question = Box::new(Question { ask, reply, answer: T::default() });
        (Read { uri: Some(uri), lane: Lane::Short, question }, receiver)
    }

    /// A question that `ask` answers for each open document; the answer is all of theirs.
    pub fn of_all<T: Send + 'static>(
        ask: impl Fn(&Subject<'_>) -> Vec<T> + Send + 'static,
    ) -> (Read, oneshot::Receiver<Result<Vec<T>, Failure>>) {
        let (reply, receiver) = oneshot::channel();
        let question = Box::new(Survey { ask, reply, answer: Vec::new() });
        (Read { uri: None, lane: Lane::Short, question }, receiver)
    }
}

/// A question of any kind. What is asked again after an edit is asked the same way.
pub trait Ask: Send {
    /// Whether nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool;
    /// Forgets what was found before an edit.
    fn begin(&mut self) {}
    /// Finds the answer, or what one document has to say to it, and keeps it.
    fn find(&mut self, subject: &Subject<'_>);
    /// Gives the answer that was found, or nothing.
    fn answer(self: Box<Self>);
    /// Says that there will be no answer.
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
        // A closed reply means a cancelled request: nobody misses the answer.
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

/// What a question is about: a document as it is now, and how the client wants its answer.
pub struct Subject<'a> {
    /// The document and what is known of it.
    pub view: FileView<'a>,
    /// The document's name.
    pub uri: &'a Uri,
    /// What the client can take.
    pub profile: &'a Profile,
    /// What the user wants to see.
    pub preferences: &'a Preferences,
    /// The client's number of the text.
    pub version: i32,
    /// The server's number of the text.
    pub text_number: u64,
    /// What its settings file says.
    pub said: &'a Said,
    /// What was sent of its semantic tokens.
    pub sent: &'a Mutex<Option<Sent>>,
}

impl Subject<'_> {
    /// The byte at a position.
    pub fn offset(&self, at: Point) -> usize {
        self.view.document().offset_of(at.line, at.column, self.profile.encoding)
    }

    /// The bytes between two positions.
    pub fn span(&self, start: Point, end: Point) -> Span {
        let place = |at| u32::try_from(self.offset(at)).unwrap_or(u32::MAX);
        Span::new(place(start), place(end))
    }

    /// The mistakes of the document as they are shown.
    pub fn diagnostics(&self) -> Vec<Diagnostic<Span>> {
        self.said.apply(self.view.workspace().diagnostics(self.view.file()))
    }

    /// Bytes of the document as the client counts.
    pub fn range(&self, span: Span) -> lsp::Range {
        to_proto::range(self.view.document(), span, self.profile.encoding)
    }
}

/// A document that a question is about.
pub struct Asked {
    /// The document's name.
    pub uri: Uri,
    /// Its name in the database.
    pub file: FileId,
    /// What was sent of its semantic tokens.
    pub sent: Arc<Mutex<Option<Sent>>>,
    /// The client's number of the text.
    pub version: i32,
    /// The server's number of the text.
    pub text_number: u64,
    /// What its settings file says.
    pub said: Said,
}

/// A question with all that is needed to answer it.
pub struct Job {
    /// The question.
    pub read: Read,
    /// The database as it is now.
    pub snapshot: Snapshot,
    /// The documents it is about.
    pub documents: Vec<Asked>,
    /// How the client wants its answer.
    pub profile: Profile,
    /// What the user wants to see.
    pub preferences: Preferences,
}

/// Starts the workers of a lane. They end when the returned queue is dropped; each job ends with one [`Event::ReadDone`] or
/// [`Event::ReadAgain`]. The error is the system's, when it has no threads left.
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
        // The guard is dropped with the statement: only waiting for a job is exclusive.
        let job = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        if events.send(run(job)).is_err() {
            return;
        }
    }
}

/// Answers one question. The snapshot is gone when this returns, so that edits are not held up.
fn run(job: Job) -> Event {
    let Job { mut read, snapshot, documents, profile, preferences } = job;
    let lane = read.lane;
    let _span = tracing::debug_span!("read", uri = read.uri.as_ref().map(|uri| uri.as_str())).entered();
    let find = || {
        snapshot.catch(|snapshot| {
            read.question.begin();
            for Asked { uri, file, sent, version, text_number, said } in &documents {
                if let Some(view) = snapshot.view(*file) {
                    let (profile, preferences) = (&profile, &preferences);
                    let (version, text_number) = (*version, *text_number);
                    let subject = Subject { view, uri, profile, preferences, version, text_number, said, sent };
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
