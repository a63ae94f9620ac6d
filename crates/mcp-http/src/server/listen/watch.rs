//! The open connections of a listener: which are idle or do not take what they asked for, and how each is told to end.
//!
//! Why here: one sweep finds them, so that a connection costs a few numbers and a waker and no timer of its own.
//! Invariants: a connection that is told to end is woken or sees it at its next poll; a request under way is never idle,
//! as long as its answer is taken.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
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
    /// Sweeps since which everything could be written at once.
    flowing_sweeps: u8,
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
        let entry = Entry { watched: Arc::clone(&watched), seen: u64::MAX, idle_sweeps: 0, flowing_sweeps: 0 };
        table.open.insert(key, entry);
        Open { connections: Arc::clone(self), key, watched, waker: None }
    }

    /// Tells everybody to end.
    pub(super) fn end(&self, ending: Ending) {
        let table = self.lock();
        table.ending.raise(ending);
        table.open.values().for_each(|entry| entry.watched.tell(ending));
    }

    /// Looks for idle connections. At one sweep per `interval(limit)` they are asked to end when for `limit` no request has
    /// begun, and none was under way or nothing of the answers could be written; they are cut at the latest after twice as
    /// long. So is a connection that takes everything else at once and leaves one answer lying.
    pub(super) fn sweep(&self) {
        for entry in self.lock().open.values_mut() {
            let watched = &entry.watched;
            let counts = watched.counts.load(Ordering::Relaxed);
            let is_blocked = watched.is_blocked.load(Ordering::Relaxed);
            if counts == entry.seen && (is_blocked || counts & UNDER_WAY == 0) {
                entry.idle_sweeps = entry.idle_sweeps.saturating_add(1);
            } else {
                (entry.seen, entry.idle_sweeps) = (counts, 0);
            }
            let was_blocked = watched.was_blocked.swap(is_blocked, Ordering::Relaxed);
            entry.flowing_sweeps = if was_blocked { 0 } else { entry.flowing_sweeps.saturating_add(1) };
            // What lies on a slow connection may have to wait for its turn.
            let is_lying = watched.untaken.next_sweep() && entry.flowing_sweeps >= IDLE_SWEEPS;
            if entry.idle_sweeps > IDLE_SWEEPS || is_lying {
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
    /// Bytes wait that the other side does not take.
    is_blocked: AtomicBool,
    /// The same at any time since the last sweep.
    was_blocked: AtomicBool,
    untaken: Untaken,
    ending: AtomicEnding,
    waker: Mutex<Option<Waker>>,
}

const UNDER_WAY: u64 = 0xffff_ffff;
const CHANGE: u64 = UNDER_WAY + 1;

impl Watched {
    /// Something could not be written.
    pub(super) fn is_blocked(&self) {
        self.is_blocked.store(true, Ordering::Relaxed);
        self.was_blocked.store(true, Ordering::Relaxed);
    }

    /// What could not be written before could be now: a slow reader is not idle.
    pub(super) fn goes_on(&self) {
        self.is_blocked.store(false, Ordering::Relaxed);
        self.counts.fetch_add(CHANGE, Ordering::Relaxed);
    }

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
pub(super) struct Busy {
    watched: Arc<Watched>,
    untaken_since: Option<u8>,
}

impl Busy {
    pub(super) fn begin(watched: &Arc<Watched>) -> Self {
        watched.counts.fetch_add(CHANGE + 1, Ordering::Relaxed);
        Self { watched: Arc::clone(watched), untaken_since: None }
    }

    /// There is something to be taken.
    pub(super) fn offers(&mut self) {
        self.is_asked();
        self.untaken_since = Some(self.watched.untaken.add());
    }

    /// Somebody came for more.
    pub(super) fn is_asked(&mut self) {
        if let Some(since) = self.untaken_since.take() {
            self.watched.untaken.remove(since);
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.is_asked();
        // Its end counts as a change: what follows is idle from here, not from the request's begin.
        self.watched.counts.fetch_add(CHANGE - 1, Ordering::Relaxed);
    }
}

/// Answers of which something waits for the other side, by the sweep since which that is so: over HTTP/2 one may be left
/// lying while others are taken. Numbers of sweeps go round, which is no matter: those that are left from the last round are found before.
#[derive(Debug, Default)]
struct Untaken {
    sweep: AtomicU8,
    since: [AtomicU32; 4],
}

impl Untaken {
    fn add(&self) -> u8 {
        let sweep = self.sweep.load(Ordering::Relaxed);
        self.of(sweep).fetch_add(1, Ordering::Relaxed);
        sweep
    }

    fn remove(&self, sweep: u8) {
        self.of(sweep).fetch_sub(1, Ordering::Relaxed);
    }

    /// Begins the next sweep; whether something was not taken during the last `IDLE_SWEEPS` whole ones.
    fn next_sweep(&self) -> bool {
        let next = self.sweep.load(Ordering::Relaxed).wrapping_add(1);
        self.sweep.store(next, Ordering::Relaxed);
        self.of(next.wrapping_sub(IDLE_SWEEPS + 1)).load(Ordering::Relaxed) > 0
    }

    fn of(&self, sweep: u8) -> &AtomicU32 {
        let [first, second, third, fourth] = &self.since;
        match sweep % 4 {
            0 => first,
            1 => second,
            2 => third,
            _ => fourth,
        }
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
    fn a_reader_that_takes_nothing_is_idle_and_a_slow_one_is_not() {
        let connections = Arc::new(Connections::default());
        let mut open = connections.open();
        let watched = open.watched();
        let _under_way = Busy::begin(&watched);
        let mut ending = |sweeps: usize| {
            (0..sweeps).for_each(|_| connections.sweep());
            open.poll(&Context::from_waker(Waker::noop()))
        };
        watched.is_blocked();
        for _ in 0..10 {
            assert_eq!(ending(2), Ending::None);
            watched.goes_on();
            watched.is_blocked();
        }
        assert_eq!(ending(3), Ending::Drain);
        assert_eq!(ending(1), Ending::Cut);
    }

    #[test]
    fn one_answer_that_is_left_lying_ends_its_connection_whatever_the_others_do() {
        let connections = Arc::new(Connections::default());
        let mut open = connections.open();
        let watched = open.watched();
        let (mut lying, mut taken) = (Busy::begin(&watched), Busy::begin(&watched));
        let mut ending = |sweeps: usize| {
            (0..sweeps).for_each(|_| connections.sweep());
            open.poll(&Context::from_waker(Waker::noop()))
        };
        lying.offers();
        for _ in 0..10 {
            taken.offers();
            assert_eq!(ending(2), Ending::None);
            taken.is_asked();
            lying.offers();
        }
        taken.is_asked();
        lying.is_asked();
        assert_eq!(ending(10), Ending::None, "both wait for what is not there yet");
        lying.offers();
        assert_eq!(ending(2), Ending::None);
        watched.is_blocked();
        watched.goes_on();
        assert_eq!(ending(2), Ending::None, "on a slow connection it may have to wait for its turn");
        assert_eq!(ending(4), Ending::Cut);
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
