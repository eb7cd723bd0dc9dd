//! A worker pool that processes many inputs on a few threads and delivers the results in order. `rayon` has no ordered
//! delivery that bounds the number of waiting results and that the consumer can stop.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// Stack size of a worker, in bytes. Recursion over nested text is bounded, but deep. Pages take memory only when they
/// are used.
const STACK: usize = 64 << 20;

/// The state shared by the workers and the caller.
struct State<T> {
    /// The index of the next item to take.
    next: usize,
    /// The index of the next result to deliver.
    handed: usize,
    /// Results that are finished before earlier ones, by index.
    waiting: BTreeMap<usize, T>,
    stop: bool,
}

/// Applies `work` to every item on `workers` threads, and passes the results to `sink` in the order of `items`, until
/// `sink` breaks. At most `workers` items are in progress at once, and at most twice as many results wait. `work` must
/// not panic.
///
/// # Errors
/// If not even one thread can be started.
pub fn in_order<I: Sync, T: Send>(
    items: &[I],
    workers: NonZeroUsize,
    work: impl Fn(&I) -> T + Sync,
    mut sink: impl FnMut(T) -> ControlFlow<()>,
) -> io::Result<()> {
    let workers = workers.get().min(items.len());
    let state = Mutex::new(State { next: 0, handed: 0, waiting: BTreeMap::new(), stop: false });
    let changed = Condvar::new();
    let worker = || {
        while let Some((index, item)) = take(items, &state, &changed, 2 * workers) {
            let result = work(item);
            lock(&state).waiting.insert(index, result);
            changed.notify_all();
        }
    };
    std::thread::scope(|scope| {
        for started in 0..workers {
            let thread = Builder::new().name(format!("check {started}")).stack_size(STACK);
            match thread.spawn_scoped(scope, worker) {
                Ok(_) => {}
                // Continue with fewer workers, as long as there is at least one.
                Err(error) if started == 0 => return Err(error),
                Err(_) => break,
            }
        }
        for index in 0..items.len() {
            let result = next_result(index, &state, &changed);
            if sink(result).is_break() {
                break;
            }
            lock(&state).handed = index + 1;
            changed.notify_all();
        }
        lock(&state).stop = true;
        changed.notify_all();
        Ok(())
    })
}

/// Takes the next item, after waiting until few enough results are undelivered; returns `None` at the end.
fn take<'i, I, T>(items: &'i [I], state: &Mutex<State<T>>, changed: &Condvar, ahead: usize) -> Option<(usize, &'i I)> {
    let state = lock(state);
    let full = |state: &mut State<T>| !state.stop && state.next < items.len() && state.next >= state.handed + ahead;
    let mut state = changed.wait_while(state, full).unwrap_or_else(PoisonError::into_inner);
    if state.stop {
        return None;
    }
    let index = state.next;
    let item = items.get(index)?;
    state.next += 1;
    Some((index, item))
}

/// Waits for the result of item `index`.
fn next_result<T>(index: usize, state: &Mutex<State<T>>, changed: &Condvar) -> T {
    let mut guard = lock(state);
    loop {
        if let Some(result) = guard.waiting.remove(&index) {
            return result;
        }
        guard = changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Locks the state. A poisoned lock is accepted: no thread panics while it holds the lock, and the state would still be
/// valid.
fn lock<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::in_order;
    use std::num::NonZeroUsize;
    use std::ops::ControlFlow;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_come_in_order_and_few_are_in_flight() {
        let items: Vec<usize> = (0..500).collect();
        let running = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let mut seen = Vec::new();
        let work = |item: &usize| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // Unequal amounts of work shuffle the order of completion.
            let sum: usize = (0..(item * 7919) % 5000).sum();
            running.fetch_sub(1, Ordering::SeqCst);
            (*item, sum).0
        };
        let sink = |result| {
            seen.push(result);
            ControlFlow::Continue(())
        };
        in_order(&items, NonZeroUsize::new(4).unwrap(), work, sink).unwrap();
        assert_eq!(seen, items);
        assert!(most.load(Ordering::SeqCst) <= 4);
    }

    #[test]
    fn a_broken_sink_ends_the_work() {
        let items: Vec<usize> = (0..1000).collect();
        let done = AtomicUsize::new(0);
        let work = |_: &usize| done.fetch_add(1, Ordering::SeqCst);
        in_order(&items, NonZeroUsize::new(3).unwrap(), work, |_| ControlFlow::Break(())).unwrap();
        assert!(done.load(Ordering::SeqCst) <= 6);
    }

    #[test]
    fn no_items_no_threads() {
        let none: [u8; 0] = [];
        in_order(&none, NonZeroUsize::MIN, |_| (), |()| ControlFlow::Continue(())).unwrap();
    }
}
