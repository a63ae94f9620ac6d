//! The streams of a legacy session: what each has said, who reads it, and what is kept for a client that comes back.
//!
//! Why here: a stream outlives the connection that carries it, so it is a value of its own.
//! Invariants: one reader at a time, the newest; events of a stream have ids in their order, and the id names the stream;
//! a reader that is too slow holds its own call back and nothing else; what is kept is bounded in events and streams.
//! Spec: 2025-11-25 basic/transports, "Resumability and Redelivery"

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use mcp_core::store::EventRecord;
use mcp_core::{Hint, OpenStream, Outbound, Session};
use mcp_wire::RawJson;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::several::is_name;
use super::stored::StoredReader;
use crate::codec::sse::Event;

/// The streams of one session.
pub(in crate::server) struct Streams {
    keep: Keep,
    numbers: Numbers,
    state: Mutex<StreamsState>,
}

/// Where the numbers of streams come from. Nearly every session is served by one process, and then needs no more than one.
enum Numbers {
    Own(AtomicU64),
    /// Several processes write streams of the session; this is one of them, with the numbers of all its sessions.
    Shared {
        process: Arc<str>,
        next: Arc<AtomicU64>,
    },
}

/// How much is kept for a client that comes back.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) struct Keep {
    /// Events of one stream.
    pub(in crate::server) events: usize,
    /// Finished streams of a session.
    pub(in crate::server) streams: usize,
    /// Bytes of one stream, and of the finished ones of a session together.
    pub(in crate::server) bytes: usize,
}

#[derive(Default)]
struct StreamsState {
    by_number: BTreeMap<u64, Arc<EventStream>>,
    /// Ends the reader of the standalone stream when a newer one comes.
    listener: Option<CancellationToken>,
}

/// Where a client was in a stream: the id of the last event it has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    stream: u64,
    process: Option<Box<str>>,
    event: u64,
}

impl Placed {
    /// Reads an event id.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let (stream, event) = id.trim().rsplit_once('-')?;
        let (stream, process) = match stream.split_once('.') {
            Some((stream, process)) => (stream, Some(process)),
            None => (stream, None),
        };
        if !process.is_none_or(is_name) {
            return None;
        }
        Some(Self { stream: stream.parse().ok()?, process: process.map(Into::into), event: event.parse().ok()? })
    }

    /// The number of the event.
    pub(super) fn event(&self) -> u64 {
        self.event
    }

    /// The process that writes the stream, and the stream's name among those of all processes, where there are several.
    pub(super) fn names(&self) -> Option<(&str, String)> {
        let process = self.process.as_deref()?;
        Some((process, name(self.stream, Some(process))))
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", name(self.stream, self.process.as_deref()), self.event)
    }
}

fn name(stream: u64, process: Option<&str>) -> String {
    process.map_or_else(|| stream.to_string(), |process| format!("{stream}.{process}"))
}

impl Streams {
    pub(super) fn new(keep: Keep) -> Self {
        Self { keep, numbers: Numbers::Own(AtomicU64::new(1)), state: Mutex::default() }
    }

    /// Streams of a session that others write streams of too, with the numbers of this process.
    pub(super) fn shared(keep: Keep, process: Arc<str>, next: Arc<AtomicU64>) -> Self {
        Self { keep, numbers: Numbers::Shared { process, next }, state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, StreamsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new stream for a call.
    pub(super) fn open(&self) -> Arc<EventStream> {
        let (next, process) = match &self.numbers {
            Numbers::Own(next) => (next, None),
            Numbers::Shared { process, next } => (&**next, Some(Arc::clone(process))),
        };
        let number = next.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(EventStream { number, process, keep: self.keep, state: Mutex::default() });
        self.state().by_number.insert(number, Arc::clone(&stream));
        stream
    }

    pub(super) fn find(&self, place: &Placed) -> Option<Arc<EventStream>> {
        let process = match &self.numbers {
            Numbers::Own(_) => None,
            Numbers::Shared { process, .. } => Some(&**process),
        };
        let here = place.process.as_deref() == process;
        if here { self.state().by_number.get(&place.stream).cloned() } else { None }
    }

    /// The client reads a stream of this process at another: whoever read it here is gone.
    pub(super) fn read_elsewhere(&self, name: &str) {
        let found = self.state().by_number.values().find(|stream| stream.name() == name).cloned();
        if let Some(stream) = found {
            stream.dismiss();
        }
    }

    /// The client has opened the standalone stream elsewhere.
    pub(super) fn stop_listening(&self) {
        if let Some(listener) = self.state().listener.take() {
            listener.cancel();
        }
    }

    /// A stream is over: of those, only the newest are kept.
    pub(super) fn finished(&self) {
        let mut state = self.state();
        let over: Vec<(u64, usize)> =
            state.by_number.iter().filter_map(|(number, stream)| Some((*number, stream.finished_size()?))).collect();
        let (mut streams, mut bytes) = (0, 0_usize);
        for (number, size) in over.into_iter().rev() {
            streams += 1;
            bytes = bytes.saturating_add(size);
            if streams > 1 && (streams > self.keep.streams || bytes > self.keep.bytes) {
                state.by_number.remove(&number);
            }
        }
    }

    /// The standalone stream; an older reader of it ends. `lost` says that the client came for a stream of which nothing is
    /// known any more.
    pub(super) fn listen(&self, session: Session, lost: bool) -> Notices {
        let replaced = CancellationToken::new();
        if let Some(older) = self.state().listener.replace(replaced.clone()) {
            older.cancel();
        }
        let ended = session.ended();
        let open = session.hold_open();
        Notices {
            session,
            _open: open,
            opening: lost.then(truncated),
            ended: Box::pin(ended.cancelled_owned()),
            replaced: Box::pin(replaced.cancelled_owned()),
        }
    }
}

/// What one call says, numbered.
pub(super) struct EventStream {
    number: u64,
    process: Option<Arc<str>>,
    keep: Keep,
    state: Mutex<StreamState>,
}

#[derive(Default)]
struct StreamState {
    /// The oldest kept event has this number; numbers start at 1, the opening of the stream has 0.
    first: u64,
    events: VecDeque<Said>,
    /// The size of those events.
    bytes: usize,
    finished: bool,
    /// The number of events the current reader has been given.
    read: u64,
    /// Rises with each new reader; an older one finds out that it was replaced.
    readers: u64,
    reading: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    waiting: Option<Waker>,
    keeper: Option<Waker>,
}

#[derive(Clone)]
enum Said {
    Frame(Bytes),
    Response(Bytes, Hint),
    Release(Duration),
}

impl EventStream {
    fn state(&self) -> std::sync::MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its name among the streams of all processes.
    pub(super) fn name(&self) -> String {
        name(self.number, self.process.as_deref())
    }

    fn id(&self, event: u64) -> String {
        match &self.process {
            None => format!("{}-{event}", self.number),
            Some(process) => format!("{}.{process}-{event}", self.number),
        }
    }

    /// Ends the reader that there is.
    fn dismiss(&self) {
        let mut state = self.state();
        state.readers += 1;
        state.reading = false;
        for waker in [state.reader.take(), state.writer.take()].into_iter().flatten() {
            waker.wake();
        }
    }

    /// The kept events after number `seen`, and whether nothing more is said; waits until there is either.
    pub(super) async fn after(&self, seen: u64) -> (Vec<EventRecord>, bool) {
        poll_fn(|context| {
            let mut state = self.state();
            if state.last() <= seen && !state.finished {
                state.keeper = Some(context.waker().clone());
                return Poll::Pending;
            }
            let numbered = (state.first..).zip(&state.events).filter(|(number, _)| *number > seen);
            let records = numbered.filter_map(|(number, said)| said.record(number)).collect();
            Poll::Ready((records, state.finished))
        })
        .await
    }

    /// How many bytes a finished stream holds.
    fn finished_size(&self) -> Option<usize> {
        let state = self.state();
        state.finished.then_some(state.bytes)
    }

    /// Adds an event. Waits while a reader is there that has as many unread ones as are kept.
    pub(super) async fn push(&self, item: Outbound) {
        let said = match item {
            Outbound::Notification(frame) | Outbound::Request(frame) => Said::Frame(frame),
            Outbound::Response(frame, hint) => Said::Response(frame, hint),
            Outbound::Release { retry } => Said::Release(retry),
            _ => return,
        };
        poll_fn(|context| {
            let mut state = self.state();
            let unread = state.last().saturating_sub(state.read);
            if state.reading && unread >= u64::try_from(self.keep.events).unwrap_or(u64::MAX) {
                state.writer = Some(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        let mut state = self.state();
        if state.events.is_empty() {
            state.first = state.last() + 1;
        }
        state.bytes = state.bytes.saturating_add(said.size());
        state.events.push_back(said);
        while state.events.len() > 1
            && (state.events.len() > self.keep.events || (state.bytes > self.keep.bytes && !state.oldest_is_unread()))
        {
            let size = state.events.pop_front().map_or(0, |said| said.size());
            state.bytes = state.bytes.saturating_sub(size);
            state.first += 1;
        }
        state.wake_readers();
    }

    /// Nothing more is said.
    pub(super) fn finish(&self) {
        let mut state = self.state();
        state.finished = true;
        state.wake_readers();
    }

    /// The response, for a client that takes no stream; `None` when the stream ends without one.
    pub(super) async fn response(&self) -> Option<(Bytes, Hint)> {
        poll_fn(|context| {
            let mut state = self.state();
            for said in &state.events {
                if let Said::Response(frame, hint) = said {
                    return Poll::Ready(Some((frame.clone(), hint.clone())));
                }
            }
            if state.finished {
                return Poll::Ready(None);
            }
            state.waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl Said {
    /// The event for a store. Frames are JSON: none is left out.
    fn record(&self, number: u64) -> Option<EventRecord> {
        match self {
            Self::Frame(frame) | Self::Response(frame, _) => {
                Some(EventRecord::message(number, RawJson::from_bytes(frame.clone()).ok()?))
            }
            Self::Release(retry) => Some(EventRecord::release(number, *retry)),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Frame(frame) | Self::Response(frame, _) => frame.len(),
            Self::Release(_) => 0,
        }
    }
}

impl StreamState {
    /// A client that is there has not been given the oldest event yet.
    fn oldest_is_unread(&self) -> bool {
        self.reading && self.read < self.first
    }

    /// The number of the newest event, 0 before the first.
    fn last(&self) -> u64 {
        if self.events.is_empty() {
            return self.first.saturating_sub(1);
        }
        self.first + u64::try_from(self.events.len()).unwrap_or(u64::MAX) - 1
    }

    fn wake_readers(&mut self) {
        for waker in [self.reader.take(), self.waiting.take(), self.keeper.take()].into_iter().flatten() {
            waker.wake();
        }
    }
}

/// One connection's view of a stream: of this process, or one in the store.
pub(in crate::server) enum Reader {
    Here(LiveReader),
    Stored(Box<StoredReader>),
}

impl Reader {
    /// The next event, encoded; `None` when this connection has nothing more to read.
    pub(in crate::server) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self {
            Self::Here(reader) => reader.poll_event(context),
            Self::Stored(reader) => reader.poll_event(context),
        }
    }
}

/// One connection's view of a stream of this process.
pub(in crate::server) struct LiveReader {
    stream: Arc<EventStream>,
    _open: OpenStream,
    generation: u64,
    /// The number of the next event to hand out.
    next: u64,
    /// What was released up to here had let an earlier connection go; this one came for the rest.
    released_until: u64,
    opening: Option<Bytes>,
    /// Says that events between the last one seen and the next are not kept any more.
    gap: Option<Bytes>,
    done: bool,
}

/// Tells a client that came back that something it has not seen is gone.
pub(super) fn truncated() -> Bytes {
    Event::new(br#"{"jsonrpc":"2.0","method":"notifications/replay_truncated","params":{}}"#).encode()
}

impl LiveReader {
    /// Reads a new stream from its start, with an opening event where the revision has one.
    pub(super) fn from_start(stream: Arc<EventStream>, session: &Session, retry: Duration) -> Self {
        let id = stream.id(0);
        // Before, parsers took an event without data for a message.
        let opening = session.rules().polling.then(|| Event::priming(&id).with_retry(retry).encode());
        Self::new(stream, session, 1, opening)
    }

    /// Reads on after `place`.
    pub(super) fn resumed(stream: Arc<EventStream>, session: &Session, retry: Duration, place: &Placed) -> Self {
        let id = place.to_string();
        let opening = session.rules().polling.then(|| Event::priming(&id).with_retry(retry).encode());
        let next = place.event.saturating_add(1);
        let gap = next < stream.state().first;
        let mut reader = Self::new(stream, session, next, opening);
        reader.gap = gap.then(truncated);
        reader
    }

    fn new(stream: Arc<EventStream>, session: &Session, next: u64, opening: Option<Bytes>) -> Self {
        let (generation, released_until) = {
            let mut state = stream.state();
            state.readers += 1;
            state.reading = true;
            state.read = next.saturating_sub(1);
            // An older reader finds that it is not the newest any more, and a writer may go on.
            for waker in [state.reader.take(), state.writer.take()].into_iter().flatten() {
                waker.wake();
            }
            (state.readers, state.last())
        };
        Self { stream, _open: session.hold_open(), generation, next, released_until, opening, gap: None, done: false }
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(opening) = self.opening.take().or_else(|| self.gap.take()) {
            return Poll::Ready(Some(opening));
        }
        if self.done {
            return Poll::Ready(None);
        }
        let mut state = self.stream.state();
        if state.readers != self.generation {
            return Poll::Ready(None);
        }
        // Events that are not kept any more are gone.
        self.next = self.next.max(state.first);
        let index = usize::try_from(self.next.saturating_sub(state.first)).unwrap_or(usize::MAX);
        let Some(said) = state.events.get(index).cloned() else {
            if state.finished {
                return Poll::Ready(None);
            }
            state.reader = Some(context.waker().clone());
            return Poll::Pending;
        };
        let number = self.next;
        self.next += 1;
        state.read = number;
        if let Some(writer) = state.writer.take() {
            writer.wake();
        }
        drop(state);
        let id = self.stream.id(number);
        Poll::Ready(Some(match said {
            Said::Frame(frame) | Said::Response(frame, _) => Event::new(&frame).with_id(&id).encode(),
            Said::Release(_) if number <= self.released_until => Event::priming(&id).encode(),
            Said::Release(retry) => {
                // The client knows where it was and comes back for the rest.
                self.done = true;
                Event::priming(&id).with_retry(retry).encode()
            }
        }))
    }
}

impl Drop for LiveReader {
    fn drop(&mut self) {
        let mut state = self.stream.state();
        if state.readers == self.generation {
            state.reading = false;
            if let Some(writer) = state.writer.take() {
                writer.wake();
            }
        }
    }
}

/// One connection's view of the standalone stream: change notices of the session.
pub(in crate::server) struct Notices {
    session: Session,
    _open: OpenStream,
    opening: Option<Bytes>,
    ended: std::pin::Pin<Box<WaitForCancellationFutureOwned>>,
    replaced: std::pin::Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Notices {
    pub(in crate::server) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        use std::future::Future as _;
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(opening));
        }
        if self.ended.as_mut().poll(context).is_ready() || self.replaced.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        self.session.poll_notice(context).map(|frame| frame.map(|frame| Event::new(&frame).encode()))
    }
}
