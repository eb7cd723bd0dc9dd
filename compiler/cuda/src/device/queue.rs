//! Replays repeated sequences of launches as CUDA graphs, which cost the host less than separate launches.
//!
//! ```text
//! run 1: launch a, b, c; wait          submitted one by one, and remembered
//! run 2: launch a, b, c; wait          delayed until the wait, captured as a graph, replayed
//! run 3: launch a, b, d; wait          a and b are delayed, d differs: all three are submitted one by one
//! ```
//!
//! A sequence is the launches between two calls of `Queue::flush`, for example by a wait or a copy. Sequences are
//! compared by all of their contents: for example kernels, launch shapes, addresses and scalars. So a replay is
//! equivalent to the launches. Other shapes, other memory or another branch of the program make another sequence.
//! Launches are delayed only while they are a prefix of a remembered sequence.
//!
//! Invariant: delayed launches are submitted before anything else that touches memory, for example a copy, a wait or a
//! free.

use super::driver::{Driver, DriverFailure, Event, Graph, KernelLaunch};
use std::collections::VecDeque;
use std::time::Duration;

/// The maximum number of remembered sequences; the one that ran least recently is forgotten first.
const KNOWN: usize = 32;

/// The maximum length of a remembered sequence, which bounds the memory for it.
const LONGEST: usize = 1 << 14;

/// A remembered sequence.
#[derive(Debug)]
struct Known {
    launches: Vec<KernelLaunch>,
    /// The graph, captured when the sequence occurs for the second time.
    graph: Option<Graph>,
}

/// The launches of the current sequence, and the remembered sequences.
#[derive(Debug, Default)]
pub(super) struct Queue {
    asked: Vec<KernelLaunch>,
    /// The number of launches in `asked` that are submitted to the driver.
    sent: usize,
    known: VecDeque<Known>,
    /// The indices of the sequences in `known` that begin with the launches in `asked`; empty if `asked` is empty.
    candidates: Vec<usize>,
    /// Whether the driver has failed to capture a graph, or the device is lost. No launch is delayed then, and no
    /// sequence is remembered.
    is_plain: bool,
    /// The event that [`Queue::starts`] recorded since the last call of [`Queue::started`].
    start: Option<Event>,
}

impl Queue {
    /// Adds a launch, which may be delayed.
    pub(super) fn launch(&mut self, driver: &dyn Driver, launch: KernelLaunch) -> Result<(), DriverFailure> {
        let at = self.asked.len();
        if at == 0 {
            self.candidates = (0..self.known.len()).collect();
        }
        let known = &self.known;
        self.candidates.retain(|one| known.get(*one).and_then(|known| known.launches.get(at)) == Some(&launch));
        self.asked.push(launch);
        if !self.is_plain && !self.candidates.is_empty() {
            return Ok(());
        }
        let sent = self.send(driver);
        if sent.is_err() {
            // The launches so far are not remembered.
            self.clear();
        }
        sent
    }

    fn clear(&mut self) {
        self.asked.clear();
        self.candidates.clear();
        self.sent = 0;
    }

    /// Submits the delayed launches one by one.
    fn send(&mut self, driver: &dyn Driver) -> Result<(), DriverFailure> {
        if self.sent < self.asked.len() {
            self.starts(driver);
        }
        while let Some(launch) = self.asked.get(self.sent) {
            self.sent += 1;
            driver.launch(launch)?;
        }
        Ok(())
    }

    /// Ends the sequence, for example because the host waits or copies. Replays the sequence if it is a remembered one
    /// and none of it is submitted yet. Otherwise submits the delayed launches one by one, and usually remembers the
    /// sequence.
    pub(super) fn flush(&mut self, driver: &dyn Driver, limit: Option<Duration>) -> Result<(), DriverFailure> {
        let count = self.asked.len();
        let same = self.candidates.iter().copied();
        let same = same
            .filter(|_| self.sent == 0)
            .find(|one| self.known.get(*one).is_some_and(|one| one.launches.len() == count));
        let done = match same.filter(|_| count > 0) {
            Some(at) => self.replay(driver, at),
            None => self.send(driver).and_then(|()| self.remember(driver, limit)),
        };
        self.clear();
        done
    }

    /// Replays a remembered sequence, and captures its graph the first time. If the capture fails, submits the launches
    /// one by one.
    fn replay(&mut self, driver: &dyn Driver, at: usize) -> Result<(), DriverFailure> {
        let Some(mut known) = self.known.remove(at) else { return Ok(()) };
        if known.graph.is_none() {
            known.graph = capture(driver, &known.launches);
            self.is_plain = known.graph.is_none();
        }
        let graph = known.graph;
        self.known.push_back(known);
        match graph {
            Some(graph) => {
                self.starts(driver);
                driver.replay(graph)
            }
            None => self.send(driver),
        }
    }

    /// Remembers the sequence that ends. A sequence of one launch is not remembered, since a graph of it is no faster;
    /// nor is one of more than [`LONGEST`] launches.
    fn remember(&mut self, driver: &dyn Driver, limit: Option<Duration>) -> Result<(), DriverFailure> {
        if self.is_plain || !(2..=LONGEST).contains(&self.asked.len()) {
            return Ok(());
        }
        self.known.push_back(Known { launches: std::mem::take(&mut self.asked), graph: None });
        let oldest = if self.known.len() > KNOWN { self.known.pop_front() } else { None };
        if let Some(graph) = oldest.and_then(|oldest| oldest.graph) {
            // The graph may still be running.
            driver.pass(driver.record_event()?, limit)?;
            driver.drop_graph(graph);
        }
        Ok(())
    }

    /// Records the event before the first launch, if none is recorded since the last call of [`Queue::started`].
    fn starts(&mut self, driver: &dyn Driver) {
        // If the event cannot be recorded, only the measured time is missing or too short.
        self.start = self.start.or_else(|| driver.record_event().ok());
    }

    /// Takes the event that [`Queue::starts`] recorded since the last call, if it recorded one.
    pub(super) fn started(&mut self) -> Option<Event> {
        self.start.take()
    }

    /// Forgets the current and all remembered sequences, because the device is lost.
    pub(super) fn forget(&mut self) {
        *self = Queue { is_plain: true, ..Queue::default() };
    }
}

/// Captures launches as a graph. Returns `None` if a call of the driver fails.
fn capture(driver: &dyn Driver, launches: &[KernelLaunch]) -> Option<Graph> {
    driver.begin_capture().ok()?;
    let launched = launches.iter().try_for_each(|launch| driver.launch(launch));
    let graph = driver.end_capture().ok()?;
    match launched {
        Ok(()) => Some(graph),
        Err(_) => {
            driver.drop_graph(graph);
            None
        }
    }
}
