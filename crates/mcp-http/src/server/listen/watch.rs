//! The open connections of a listener: which are idle, and how each is told to end.
//!
//! Why here: one sweep finds the idle ones, so that a connection costs a number and a waker and no timer of its own.
//! Invariants: a connection that is told to end is woken or sees it at its next poll; a request under way is never idle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

/// How a connection is to end, the later the sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    /// Not yet.
    None,
    /// After what is under way.
    Drain,
    /// At once.
    Cut,
}

/// Sweeps without a request after which a connection is asked to end; at the next it is cut.
const IDLE_SWEEPS: u8 = 2;

/// As good as never, and within reach of the clock.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// What is open.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// What also those are told that open later.
    ending: AtomicEnding,
    next: u64,
    open: HashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    watched: Arc<Watched>,
    seen: u64,
    idle_sweeps: u8,
}

impl Connections {
    /// A connection more, until the returned value is dropped.
    pub(super) fn open(self: &Arc<Self>) -> Open {
        let mut table = self.lock();
        let watched = Arc::new(Watched::default());
        watched.ending.raise(table.ending.load());
        let key = table.next;
        table.next += 1;
        // The first sweep only takes note, whenever it comes.
        let entry = Entry { watched: Arc::clone(&watched), seen: u64::MAX, idle_sweeps: 0 };
        table.open.insert(key, entry);
        Open { connections: Arc::clone(self), key, watched, waker: None }
    }

    /// Tells everybody to end.
    pub(super) fn end(&self, ending: Ending) {
        let table = self.lock();
        table.ending.raise(ending);
        table.open.values().for_each(|entry| entry.watched.tell(ending));
    }

    /// Looks for idle connections. At one sweep per `interval(limit)` they are asked to end when no request has begun and
    /// none was under way for `limit`, and are cut at the latest after twice as long.
    pub(super) fn sweep(&self) {
        for entry in self.lock().open.values_mut() {
            let counts = entry.watched.counts.load(Ordering::Relaxed);
            if counts == entry.seen && counts & UNDER_WAY == 0 {
                entry.idle_sweeps = entry.idle_sweeps.saturating_add(1);
            } else {
                (entry.seen, entry.idle_sweeps) = (counts, 0);
            }
            if entry.idle_sweeps > IDLE_SWEEPS {
                entry.watched.tell(Ending::Cut);
            } else if entry.idle_sweeps == IDLE_SWEEPS {
                entry.watched.tell(Ending::Drain);
            }
        }
    }

    /// How often to sweep for this limit.
    pub(super) fn interval(limit: Duration) -> Duration {
        (limit / u32::from(IDLE_SWEEPS)).clamp(Duration::from_millis(1), NEVER)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open connection, in the hands of what serves it.
#[derive(Debug)]
pub(super) struct Open {
    connections: Arc<Connections>,
    key: u64,
    watched: Arc<Watched>,
    /// A copy of what is left to be woken, compared without a lock.
    waker: Option<Waker>,
}

impl Open {
    /// What the connection is told; whoever polls is woken when it is told more.
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Ending {
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.waker = Some(context.waker().clone());
            self.watched.lock().clone_from(&self.waker);
        }
        self.watched.ending.load()
    }

    /// Where its requests are counted.
    pub(super) fn watched(&self) -> Arc<Watched> {
        Arc::clone(&self.watched)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connections.lock().open.remove(&self.key);
    }
}

/// The requests of a connection, and what it is told.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// The low half: requests under way. The high half: how often one began or ended.
    counts: AtomicU64,
    ending: AtomicEnding,
    waker: Mutex<Option<Waker>>,
}

const UNDER_WAY: u64 = 0xffff_ffff;
const CHANGE: u64 = UNDER_WAY + 1;

impl Watched {
    fn tell(&self, ending: Ending) {
        self.ending.raise(ending);
        // The lock orders this after the raise: a waker that comes later comes with a look at what was raised.
        let waker = self.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request under way, from its head to the end of its response's body.
#[derive(Debug)]
pub(super) struct Busy(Arc<Watched>);

impl Busy {
    pub(super) fn begin(watched: &Arc<Watched>) -> Self {
        watched.counts.fetch_add(CHANGE + 1, Ordering::Relaxed);
        Self(Arc::clone(watched))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // Its end counts as a change: what follows is idle from here, not from the request's begin.
        self.0.counts.fetch_add(CHANGE - 1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct AtomicEnding(AtomicU8);

impl AtomicEnding {
    fn raise(&self, ending: Ending) {
        self.0.fetch_max(ending as u8, Ordering::AcqRel);
    }

    fn load(&self) -> Ending {
        match self.0.load(Ordering::Acquire) {
            0 => Ending::None,
            1 => Ending::Drain,
            _ => Ending::Cut,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_idle_connection_is_asked_to_end_and_then_cut() {
        let connections = Arc::new(Connections::default());
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut open = connections.open();
        let mut ending = || open.poll(&Context::from_waker(&waker));
        assert_eq!(ending(), Ending::None);
        for expected in [Ending::None, Ending::None, Ending::Drain, Ending::Cut] {
            connections.sweep();
            assert_eq!(ending(), expected);
        }
        assert_eq!(woken.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_request_under_way_is_not_idle_and_its_end_counts_as_life() {
        let connections = Arc::new(Connections::default());
        let mut open = connections.open();
        let waker = Waker::noop();
        let watched = open.watched();
        let mut ending = |connections: &Connections, sweeps: usize| {
            (0..sweeps).for_each(|_| connections.sweep());
            open.poll(&Context::from_waker(waker))
        };
        let (one, two) = (Busy::begin(&watched), Busy::begin(&watched));
        assert_eq!(ending(&connections, 10), Ending::None);
        drop(one);
        assert_eq!(ending(&connections, 10), Ending::None, "another is under way");
        drop(two);
        assert_eq!(ending(&connections, 2), Ending::None, "noted, and idle once");
        drop(Busy::begin(&watched));
        assert_eq!(ending(&connections, 2), Ending::None, "a request came between");
        assert_eq!(ending(&connections, 1), Ending::Drain);
    }

    #[test]
    fn what_all_are_told_holds_for_those_that_open_later() {
        let connections = Arc::new(Connections::default());
        let mut before = connections.open();
        connections.end(Ending::Drain);
        let mut after = connections.open();
        let context = Context::from_waker(Waker::noop());
        assert_eq!([before.poll(&context), after.poll(&context)], [Ending::Drain; 2]);
        connections.end(Ending::Cut);
        connections.end(Ending::Drain);
        assert_eq!([before.poll(&context), after.poll(&context)], [Ending::Cut; 2]);
        drop((before, after));
        assert!(connections.lock().open.is_empty(), "what is over is forgotten");
    }
}
