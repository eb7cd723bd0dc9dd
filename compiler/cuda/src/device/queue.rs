//! Launches on their way to the driver: a sequence that repeats is captured once and replayed.
//!
//! A sequence is what is launched between two points where the host waits or copies. It is known by all of it: kernels, shapes of launches,
//! addresses, scalars. So a replay does what the launches would have done, whatever the program did on the host to come to them; other
//! shapes, other memory or another branch make another sequence. Launches are held back only as long as they are those of a known one.
//!
//! Invariant: delayed launches are submitted before anything else that touches memory: a copy, a wait, a free.

use super::driver::{Driver, Graph, KernelLaunch, Mark, Refused};
use std::collections::VecDeque;
use std::time::Duration;

/// How many sequences are known: those that were met last.
const KNOWN: usize = 32;

/// A longer sequence is not held back: what is remembered of it would be too much.
const LONGEST: usize = 1 << 14;

/// A sequence that was launched.
#[derive(Debug)]
struct Known {
    launches: Vec<KernelLaunch>,
    /// Made when it comes for the second time.
    graph: Option<Graph>,
}

/// Launches since the host last waited or copied.
#[derive(Debug, Default)]
pub(super) struct Queue {
    asked: Vec<KernelLaunch>,
    /// How many of them the driver has.
    sent: usize,
    known: VecDeque<Known>,
    /// The known sequences that begin with what was asked for.
    candidates: Vec<usize>,
    /// The driver refused to capture: it is not asked again.
    is_plain: bool,
    /// Before the first launch since [`Queue::started`] was called last.
    start: Option<Mark>,
}

impl Queue {
    /// Asks for a launch.
    pub(super) fn launch(&mut self, driver: &dyn Driver, launch: KernelLaunch) -> Result<(), Refused> {
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
            // What comes after a refusal is no sequence that anybody wants again.
            self.clear();
        }
        sent
    }

    fn clear(&mut self) {
        self.asked.clear();
        self.candidates.clear();
        self.sent = 0;
    }

    /// Sends what is held back.
    fn send(&mut self, driver: &dyn Driver) -> Result<(), Refused> {
        if self.sent < self.asked.len() {
            self.starts(driver);
        }
        while let Some(launch) = self.asked.get(self.sent) {
            self.sent += 1;
            driver.launch(launch)?;
        }
        Ok(())
    }

    /// The host waits or copies: all that was asked for goes to the driver, as a graph where it is known.
    pub(super) fn flush(&mut self, driver: &dyn Driver, limit: Option<Duration>) -> Result<(), Refused> {
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

    /// A known sequence comes again.
    fn replay(&mut self, driver: &dyn Driver, at: usize) -> Result<(), Refused> {
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

    /// Knows what was asked for from here on. One launch is no faster as a graph.
    fn remember(&mut self, driver: &dyn Driver, limit: Option<Duration>) -> Result<(), Refused> {
        if self.is_plain || !(2..=LONGEST).contains(&self.asked.len()) {
            return Ok(());
        }
        self.known.push_back(Known { launches: std::mem::take(&mut self.asked), graph: None });
        let oldest = if self.known.len() > KNOWN { self.known.pop_front() } else { None };
        if let Some(graph) = oldest.and_then(|oldest| oldest.graph) {
            // It may still run.
            driver.pass(driver.mark()?, limit)?;
            driver.drop_graph(graph);
        }
        Ok(())
    }

    fn starts(&mut self, driver: &dyn Driver) {
        // Without a mark there is no time, and nothing else is lacking.
        self.start = self.start.or_else(|| driver.mark().ok());
    }

    /// The point before what was launched since this was called last, where something was.
    pub(super) fn started(&mut self) -> Option<Mark> {
        self.start.take()
    }

    /// Forgets what was asked for, of a device that is lost.
    pub(super) fn forget(&mut self) {
        *self = Queue { is_plain: true, ..Queue::default() };
    }
}

/// The graph of launches; none where the driver makes none.
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
