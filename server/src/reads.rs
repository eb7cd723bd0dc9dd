//! Questions about documents, answered by workers on snapshots of the database while edits go on.

use crate::event::Event;
use crate::lsp::{self, Point, Profile, Uri, to_proto};
use rx_db::{FileId, Snapshot};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// How many reads run at once. An edit waits until each has noticed it, so they are few.
pub const WORKERS: usize = 2;

/// For the threads that ask the database: analysis of nested text recurses, and salsa grows no stacks.
pub const STACK_SIZE: usize = 64 << 20;

/// Why there is no answer: a sentence for the client's log.
pub type Failure = &'static str;

/// Where an answer goes; closed when the client cancelled the request.
pub type Reply<T> = oneshot::Sender<Result<T, Failure>>;

/// A question about one document.
#[derive(Debug)]
pub struct Read {
    /// Which document.
    pub uri: Uri,
    /// What is asked.
    pub question: Question,
}

/// What can be asked.
#[derive(Debug)]
pub enum Question {
    /// What stands at a position.
    Hover(Point, Reply<Option<lsp::Hover>>),
    /// What can be run.
    CodeLens(Reply<Vec<lsp::CodeLens>>),
}

impl Read {
    /// Whether nobody waits for the answer any more.
    pub fn is_abandoned(&self) -> bool {
        match &self.question {
            Question::Hover(_, reply) => reply.is_closed(),
            Question::CodeLens(reply) => reply.is_closed(),
        }
    }

    /// Answers that there is nothing: the document is not open, or cannot be checked.
    pub fn answer_nothing(self) {
        match self.question {
            // A closed reply means a cancelled request: nobody misses the answer.
            Question::Hover(_, reply) => drop(reply.send(Ok(None))),
            Question::CodeLens(reply) => drop(reply.send(Ok(Vec::new()))),
        }
    }

    fn fail(self, why: Failure) {
        match self.question {
            Question::Hover(_, reply) => drop(reply.send(Err(why))),
            Question::CodeLens(reply) => drop(reply.send(Err(why))),
        }
    }

    fn send(self, answer: Answer) {
        match (self.question, answer) {
            (Question::Hover(_, reply), Answer::Hover(hover)) => drop(reply.send(Ok(hover))),
            (Question::CodeLens(reply), Answer::CodeLens(lenses)) => drop(reply.send(Ok(lenses))),
            // INVARIANT: `answer` answers the question it is given. A dropped reply is an error to the client.
            _ => {}
        }
    }
}

/// Answers, one kind per kind of question.
enum Answer {
    Hover(Option<lsp::Hover>),
    CodeLens(Vec<lsp::CodeLens>),
}

/// A question with all that is needed to answer it.
pub struct Job {
    /// The question.
    pub read: Read,
    /// The database as it is now.
    pub snapshot: Snapshot,
    /// The document's name in it.
    pub file: FileId,
    /// How the client wants its answer.
    pub profile: Profile,
}

/// Starts the workers. They end when the returned sender is dropped; each job ends with one [`Event::ReadDone`] or
/// [`Event::ReadAgain`]. The error is the system's, when it has no threads left.
pub fn start_workers(events: &Sender<Event>) -> std::io::Result<Sender<Job>> {
    let (jobs, inbox) = channel();
    let inbox = Arc::new(Mutex::new(inbox));
    for number in 0..WORKERS {
        let (inbox, events) = (Arc::clone(&inbox), events.clone());
        let builder = std::thread::Builder::new().name(format!("read {number}")).stack_size(STACK_SIZE);
        builder.spawn(move || work(&inbox, &events))?;
    }
    Ok(jobs)
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
    let Job { read, snapshot, file, profile } = job;
    let answer = || snapshot.catch(|snapshot| answer(snapshot, file, &read, &profile));
    let outcome = catch_unwind(AssertUnwindSafe(answer));
    drop(snapshot);
    match outcome {
        Ok(Ok(answer)) => {
            read.send(answer);
            Event::ReadDone(None)
        }
        Ok(Err(_cancelled)) => Event::ReadAgain(read),
        Err(_panic) => {
            let message = format!("a request about {} failed: this is a bug in rx-lsp", read.uri.as_str());
            read.fail("internal error");
            Event::ReadDone(Some(message))
        }
    }
}

fn answer(snapshot: &Snapshot, file: FileId, read: &Read, profile: &Profile) -> Answer {
    let document = snapshot.document(file);
    match &read.question {
        Question::Hover(at, _) => {
            let offset = document.offset_of(at.line, at.column, profile.encoding);
            let hover = snapshot.hover(file, offset);
            Answer::Hover(hover.map(|hover| to_proto::hover(document, hover, profile)))
        }
        Question::CodeLens(_) => {
            Answer::CodeLens(to_proto::run_lenses(document, &read.uri, &snapshot.functions(file), profile))
        }
    }
}
