//! What streams said, kept for a client that comes back at another process.
//!
//! Why here: the process that runs a call keeps its events itself; this is for all the others.
//! Invariants: events of a stream are read in their order, each once; what is missing between two numbers is gone for good.
//! Spec: 2025-11-25 basic/transports, "Resumability and Redelivery"

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use mcp_wire::RawJson;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::Cause;

/// Names a stream.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StreamKey {
    /// The id of its session: a secret of its owner.
    pub session: String,
    /// Its name, which no other stream of the session ever has: at most 100 letters, digits, `-`, `_` and `.`.
    pub stream: String,
}

impl StreamKey {
    /// The key of a stream of a session.
    pub fn new(session: impl Into<String>, stream: impl Into<String>) -> Self {
        Self { session: session.into(), stream: stream.into() }
    }
}

impl fmt::Debug for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamKey").field("stream", &self.stream).finish_non_exhaustive()
    }
}

/// One event of a stream: a message, or that the client was let go for a while.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EventRecord {
    /// Its place in the stream, from 1.
    pub number: u64,
    /// The message.
    #[serde(default)]
    pub message: Option<RawJson>,
    /// How long a client that was let go waits, in milliseconds.
    #[serde(default)]
    pub retry_ms: Option<u64>,
}

impl EventRecord {
    /// The event of a message.
    #[must_use]
    pub fn message(number: u64, message: RawJson) -> Self {
        Self { number, message: Some(message), retry_ms: None }
    }

    /// The event of a client that is let go.
    #[must_use]
    pub fn release(number: u64, retry: Duration) -> Self {
        let retry = u64::try_from(retry.as_millis()).unwrap_or(u64::MAX);
        Self { number, message: None, retry_ms: Some(retry) }
    }
}

impl fmt::Debug for EventRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is said to a client is nobody else's business.
        f.debug_struct("EventRecord").field("number", &self.number).finish_non_exhaustive()
    }
}

/// How a stream is getting on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StreamState {
    /// Nothing more will be said.
    pub finished: bool,
    /// The process that runs the call says so anew before this, in milliseconds since the Unix epoch; if it does not, it has
    /// gone, and with it the rest of the stream.
    pub alive_until_ms: u64,
    /// When the stream may be forgotten.
    pub keep_until_ms: u64,
}

impl StreamState {
    /// A stream that goes on.
    #[must_use]
    pub fn open(alive_until_ms: u64, keep_until_ms: u64) -> Self {
        Self { finished: false, alive_until_ms, keep_until_ms }
    }

    /// A stream of which everything is said.
    #[must_use]
    pub fn finished(keep_until_ms: u64) -> Self {
        Self { finished: true, alive_until_ms: 0, keep_until_ms }
    }
}

/// What a reader of a stream is given.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EventPage {
    /// The events, in order.
    pub events: Vec<EventRecord>,
    /// How the stream is getting on behind them: when it is finished and these are not the last, more can be read.
    pub state: StreamState,
}

impl EventPage {
    /// A page.
    #[must_use]
    pub fn new(events: Vec<EventRecord>, state: StreamState) -> Self {
        Self { events, state }
    }
}

/// Why an event store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventStoreError {
    /// The engine behind the store failed.
    #[error("the event store is not available")]
    Unavailable(#[source] Cause),
}

/// What the streams of shared sessions said.
///
/// Only the process that runs a call writes its stream, one append at a time, and repeats an append that it could not see
/// the end of. Any process reads, also while the stream is written. A store may drop the oldest events of a stream, and
/// whole streams that are finished, to stay within bounds of its own; a stream that goes on keeps at least its newest event.
/// A store that forgets everything costs those clients their rest of the stream that come back elsewhere, and no call.
#[async_trait]
pub trait EventStore: Send + Sync + 'static {
    /// Adds events, whose numbers rise, and notes how the stream is getting on; the first append, which may have no events,
    /// makes the stream known. All of it or nothing. An event is ignored if its number is not above all that were added
    /// before: it comes from a repetition. What is finished stays finished.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn append(
        &self,
        stream: &StreamKey,
        events: &[EventRecord],
        state: StreamState,
    ) -> Result<(), EventStoreError>;

    /// At most `most` of the events after number `after`, the oldest first; `None` if the stream is not known. Where there are
    /// none and the stream goes on, the store may take up to `wait` to see whether some come; returning an empty page at once
    /// is right too, and the reader then waits itself.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn read(
        &self,
        stream: &StreamKey,
        after: u64,
        most: usize,
        wait: Duration,
    ) -> Result<Option<EventPage>, EventStoreError>;

    /// Forgets every stream of a session.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn remove_session(&self, session: &str) -> Result<(), EventStoreError>;

    /// Forgets the streams that may be forgotten at `now_ms`. Every process calls this each minute; a store that does so by
    /// itself has nothing to do.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn remove_expired(&self, now_ms: u64) -> Result<(), EventStoreError>;
}

/// How much [`MemoryEvents`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventBounds {
    /// Events of one stream. Default 256.
    pub events: usize,
    /// Bytes of one stream; its newest event is kept whatever its size. Default 1 MiB.
    pub bytes: usize,
    /// Finished streams of one session. Default 16.
    pub streams: usize,
}

impl Default for EventBounds {
    fn default() -> Self {
        Self { events: 256, bytes: 1024 * 1024, streams: 16 }
    }
}

/// Events in memory, for servers of one process.
#[derive(Debug, Default)]
pub struct MemoryEvents {
    bounds: EventBounds,
    sessions: Mutex<HashMap<String, Streams>>,
    appended: Notify,
}

#[derive(Debug, Default)]
struct Streams {
    next: u64,
    by_name: HashMap<String, Stream>,
}

#[derive(Debug)]
struct Stream {
    /// In the order of their first append.
    serial: u64,
    last: u64,
    bytes: usize,
    events: VecDeque<EventRecord>,
    state: StreamState,
}

impl MemoryEvents {
    /// An empty store.
    #[must_use]
    pub fn new(bounds: EventBounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<String, Streams>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, stream: &StreamKey, after: u64, most: usize) -> Option<EventPage> {
        let sessions = self.sessions();
        let stream = sessions.get(&stream.session)?.by_name.get(&stream.stream)?;
        let events = stream.events.iter().filter(|event| event.number > after).take(most).cloned().collect();
        Some(EventPage::new(events, stream.state))
    }
}

impl Stream {
    fn add(&mut self, event: &EventRecord, bounds: EventBounds) {
        if event.number <= self.last {
            return;
        }
        self.last = event.number;
        self.bytes = self.bytes.saturating_add(size(event));
        self.events.push_back(event.clone());
        while self.events.len() > 1 && (self.events.len() > bounds.events || self.bytes > bounds.bytes) {
            let dropped = self.events.pop_front();
            self.bytes = self.bytes.saturating_sub(dropped.as_ref().map_or(0, size));
        }
    }
}

fn size(event: &EventRecord) -> usize {
    event.message.as_ref().map_or(0, |message| message.as_bytes().len())
}

impl Streams {
    /// Keeps only the newest of those that are finished.
    fn trim(&mut self, limit: usize) {
        let finished = self.by_name.iter().filter(|(_, stream)| stream.state.finished);
        let finished: BTreeMap<u64, String> = finished.map(|(name, stream)| (stream.serial, name.clone())).collect();
        for name in finished.values().take(finished.len().saturating_sub(limit.max(1))) {
            self.by_name.remove(name);
        }
    }
}

#[async_trait]
impl EventStore for MemoryEvents {
    async fn append(
        &self,
        stream: &StreamKey,
        events: &[EventRecord],
        state: StreamState,
    ) -> Result<(), EventStoreError> {
        {
            let mut sessions = self.sessions();
            let streams = sessions.entry(stream.session.clone()).or_default();
            let serial = streams.next;
            let known = streams.by_name.entry(stream.stream.clone()).or_insert_with(|| Stream {
                serial,
                last: 0,
                bytes: 0,
                events: VecDeque::new(),
                state,
            });
            for event in events {
                known.add(event, self.bounds);
            }
            known.state = StreamState { finished: known.state.finished || state.finished, ..state };
            streams.next += 1;
            streams.trim(self.bounds.streams);
        }
        self.appended.notify_waiters();
        Ok(())
    }

    async fn read(
        &self,
        stream: &StreamKey,
        after: u64,
        most: usize,
        wait: Duration,
    ) -> Result<Option<EventPage>, EventStoreError> {
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let mut appended = std::pin::pin!(self.appended.notified());
            // Before the look, so that nothing is missed in between.
            appended.as_mut().enable();
            let page = self.look(stream, after, most);
            let is_idle = page.as_ref().is_some_and(|page| page.events.is_empty() && !page.state.finished);
            if !is_idle || tokio::time::timeout_at(deadline, appended).await.is_err() {
                return Ok(page);
            }
        }
    }

    async fn remove_session(&self, session: &str) -> Result<(), EventStoreError> {
        self.sessions().remove(session);
        self.appended.notify_waiters();
        Ok(())
    }

    async fn remove_expired(&self, now_ms: u64) -> Result<(), EventStoreError> {
        self.sessions().retain(|_, streams| {
            streams.by_name.retain(|_, stream| stream.state.keep_until_ms > now_ms);
            !streams.by_name.is_empty()
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn numbers(store: &MemoryEvents, stream: &StreamKey) -> Option<Vec<u64>> {
        let page = store.read(stream, 0, 1000, Duration::ZERO).await.unwrap()?;
        Some(page.events.iter().map(|event| event.number).collect())
    }

    #[tokio::test]
    async fn memory_stays_within_its_bounds() {
        let store = MemoryEvents::new(EventBounds { events: 3, bytes: 10, streams: 2 });
        let message = |number, text: &str| EventRecord::message(number, RawJson::from_serialize(text).unwrap());
        let one = StreamKey::new("s", "1");
        let small: Vec<_> = (1..=5).map(|number| message(number, "")).collect();
        store.append(&one, &small, StreamState::open(1, 1)).await.unwrap();
        assert_eq!(numbers(&store, &one).await.unwrap(), [3, 4, 5]);
        let large = message(6, "much larger than the bound");
        store.append(&one, &[large], StreamState::finished(1)).await.unwrap();
        assert_eq!(numbers(&store, &one).await.unwrap(), [6], "the newest is kept whatever its size");
        for name in ["2", "3"] {
            store.append(&StreamKey::new("s", name), &[], StreamState::finished(1)).await.unwrap();
        }
        assert_eq!(numbers(&store, &one).await, None, "the oldest finished stream has made room");
        assert!(numbers(&store, &StreamKey::new("s", "2")).await.is_some());
    }
}
