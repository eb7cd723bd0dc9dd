//! The thread that owns the documents and decides what is done when.
//!
//! Events come in the client's order. Those that wait are taken together: edits are applied one after the other, then the
//! touched documents are checked once, so that fast typing costs one check and not one per key.

use crate::documents::Documents;
use crate::event::Event;
use crate::lsp::{Profile, Uri, from_proto};
use crate::outbox::Outbox;
use crate::reads::{Job, Read, WORKERS};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender};

/// The most events taken together, so that a client that never pauses still gets diagnostics.
const MAX_BATCH: usize = 1024;

/// The main loop's state.
pub struct MainLoop {
    inbox: Receiver<Event>,
    jobs: Sender<Job>,
    outbox: Outbox,
    profile: Profile,
    documents: Documents,
    /// Questions no worker has yet. A worker gets one with a fresh snapshot only when it is free: an edit waits for every
    /// snapshot to be dropped.
    waiting: VecDeque<Read>,
    busy: usize,
    /// Documents changed since they were last checked.
    touched: Vec<Uri>,
}

impl MainLoop {
    /// A loop over the events of `inbox` that gives its reads to workers through `jobs`.
    pub fn new(inbox: Receiver<Event>, jobs: Sender<Job>, outbox: Outbox) -> MainLoop {
        MainLoop {
            inbox,
            jobs,
            outbox,
            profile: Profile::default(),
            documents: Documents::default(),
            waiting: VecDeque::new(),
            busy: 0,
            touched: Vec::new(),
        }
    }

    /// Runs until [`Event::Stop`].
    pub fn run(mut self) {
        let mut running = true;
        while running && let Ok(first) = self.inbox.recv() {
            running = self.handle(first);
            for _ in 1..MAX_BATCH {
                match self.inbox.try_recv() {
                    Ok(event) if running => running = self.handle(event),
                    _ => break,
                }
            }
            self.start_reads();
            self.publish();
            self.documents.take_log().into_iter().for_each(|line| self.outbox.log(line));
        }
    }

    /// Does what an event asks, but for checking and reading. False: it is the last.
    fn handle(&mut self, event: Event) -> bool {
        match event {
            Event::Configure(profile) => self.profile = profile,
            Event::Open { uri, language, version, text } => {
                let kind = from_proto::file_kind(&language, &uri);
                self.documents.open(uri.clone(), kind, version, &text);
                self.touch(uri);
            }
            Event::Change { uri, version, changes } => {
                if self.documents.change(&uri, version, &changes, &self.profile) {
                    self.touch(uri);
                } else {
                    self.outbox.log(format!("{} was changed and is not open", uri.as_str()));
                }
            }
            Event::Close { uri } => {
                self.touched.retain(|touched| *touched != uri);
                if self.documents.close(&uri) {
                    self.outbox.publish(uri, None, Vec::new());
                }
            }
            Event::Read(read) => self.waiting.push_back(read),
            // INVARIANT: each job that made a worker busy ends with one of these two.
            Event::ReadAgain(read) => {
                self.busy -= 1;
                self.waiting.push_front(read);
            }
            Event::ReadDone(complaint) => {
                self.busy -= 1;
                complaint.into_iter().for_each(|line| self.outbox.log(line));
            }
            Event::Stop => return false,
        }
        true
    }

    fn touch(&mut self, uri: Uri) {
        if !self.touched.contains(&uri) {
            self.touched.push(uri);
        }
    }

    /// Gives free workers something to do.
    fn start_reads(&mut self) {
        while self.busy < WORKERS
            && let Some(read) = self.waiting.pop_front()
        {
            if read.is_abandoned() {
                continue;
            }
            let Some((snapshot, file)) = self.documents.snapshot(&read.uri) else {
                read.answer_nothing();
                continue;
            };
            // Workers end only when this loop does; were they gone, the dropped job would answer with an error.
            if self.jobs.send(Job { read, snapshot, file, profile: self.profile }).is_ok() {
                self.busy += 1;
            }
        }
    }

    /// Checks what was touched and tells the client, also when nothing is new: it waits for the version.
    fn publish(&mut self) {
        for uri in std::mem::take(&mut self.touched) {
            if let Some((version, diagnostics)) = self.documents.diagnostics(&uri, &self.profile) {
                self.outbox.publish(uri, Some(version), diagnostics);
            }
        }
    }
}
