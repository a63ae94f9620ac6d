//! Streams that go through a store: written by the process that runs the call, read by any other.
//!
//! Why here: what is kept in memory for a client that comes back is not there for one that comes back elsewhere.
//! Invariants: writing holds back neither the call nor its reader; what waits to be written is the stream's own bounded
//! memory; a reader ends with the stream, the session, the store, or the process that wrote.
//! Spec: 2025-11-25 basic/transports, "Resumability and Redelivery"

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use mcp_core::store::{EventPage, EventRecord, EventStore, EventStoreError, StreamKey, StreamState};
use mcp_core::{OpenStream, Server, Session};
use tokio::time::Instant;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::several::millis;
use super::stream::{EventStream, Placed, truncated};
use crate::codec::sse::Event;
use crate::server::service::Shared;

/// How long a stream counts as alive after its process said so, and how often it says so.
const LEASE: Duration = Duration::from_secs(30);
const BEAT: Duration = Duration::from_secs(10);

/// How long a store may wait for events, and how often one is asked that does not wait.
const WAIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(500);

/// How long a store that failed is left alone, and how often it is told the end of a stream.
const PAUSE: Duration = Duration::from_secs(1);
const ATTEMPTS: usize = 5;

/// Events that are read at a time.
const PAGE: usize = 256;

/// Writes what a stream says.
pub(super) struct Keeper {
    events: Arc<dyn EventStore>,
    server: Server,
    key: StreamKey,
    timeout: Duration,
}

impl Keeper {
    pub(super) fn new(
        events: Arc<dyn EventStore>,
        server: Server,
        session: &Session,
        stream: &EventStream,
        timeout: Duration,
    ) -> Self {
        Self { events, server, key: StreamKey::new(session.id(), stream.name()), timeout }
    }

    /// Makes the stream known, before its client learns of it. Failing costs the client its way back elsewhere, no more.
    pub(super) async fn begin(&self) {
        self.append(&[], self.alive()).await;
    }

    /// Writes until the stream is over.
    pub(super) async fn keep(&self, stream: &EventStream) {
        let (mut written, mut attempts) = (0, 0);
        loop {
            // What is said meanwhile waits in the stream; what it does not keep is missing for those who come back.
            let unwritten = tokio::time::timeout(BEAT, stream.after(written)).await;
            let (events, over) = unwritten.unwrap_or_default();
            let state = match over {
                false => self.alive(),
                // The server ended and the call with it: what is missing will not come.
                true if self.server.stopped().is_cancelled() => StreamState::open(0, self.keep_until()),
                true => StreamState::finished(self.keep_until()),
            };
            if self.append(&events, state).await {
                written = events.last().map_or(written, |event| event.number);
                attempts = 0;
                if over {
                    return;
                }
                continue;
            }
            attempts += 1;
            if over && attempts >= ATTEMPTS {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn alive(&self) -> StreamState {
        StreamState::open(self.server.now_ms().saturating_add(millis(LEASE)), self.keep_until())
    }

    fn keep_until(&self) -> u64 {
        self.server.now_ms().saturating_add(millis(self.server.limits().session_idle))
    }

    async fn append(&self, events: &[EventRecord], state: StreamState) -> bool {
        let appending = tokio::time::timeout(self.timeout, self.events.append(&self.key, events, state)).await;
        match appending {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "events could not be stored");
                false
            }
            Err(_) => {
                tracing::warn!("events could not be stored in time");
                false
            }
        }
    }
}

/// One connection's view of a stream in the store.
pub(in crate::server) struct StoredReader {
    events: Arc<dyn EventStore>,
    server: Server,
    key: StreamKey,
    timeout: Duration,
    /// The newest event that was handed out.
    after: u64,
    page: VecDeque<EventRecord>,
    /// Behind `page` there may be more at once.
    more: bool,
    state: StreamState,
    /// What was released up to here had let an earlier connection go; this one came for the rest.
    released_until: u64,
    opening: Option<Bytes>,
    reading: Option<Reading>,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    done: bool,
    _open: OpenStream,
}

type Reading = Pin<Box<dyn Future<Output = Option<Option<EventPage>>> + Send>>;

impl StoredReader {
    /// Reads on after `place`; `None` if nothing is known of its stream, or nothing of it will come any more.
    pub(super) async fn open(
        events: Arc<dyn EventStore>,
        shared: &Shared,
        session: &Session,
        place: &Placed,
    ) -> Result<Option<Self>, EventStoreError> {
        let Some((_, stream)) = place.names() else { return Ok(None) };
        let key = StreamKey::new(session.id(), stream);
        let Some(page) = events.read(&key, place.event(), PAGE, Duration::ZERO).await? else { return Ok(None) };
        if page.events.is_empty() && is_lost(&page.state, shared.server.now_ms()) {
            return Ok(None);
        }
        let id = place.to_string();
        let opening = session.rules().polling.then(|| Event::priming(&id).with_retry(shared.config.retry).encode());
        Ok(Some(Self {
            events,
            server: shared.server.clone(),
            key,
            timeout: shared.config.store_timeout,
            after: place.event(),
            more: page.events.len() >= PAGE,
            state: page.state,
            released_until: page.events.last().map_or_else(|| place.event(), |event| event.number),
            page: page.events.into(),
            opening,
            reading: None,
            ended: Box::pin(session.ended().cancelled_owned()),
            done: false,
            _open: session.hold_open(),
        }))
    }

    /// The next event, encoded; `None` when this connection has nothing more to read.
    pub(super) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(opening));
        }
        loop {
            if self.done || self.ended.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            if let Some(event) = self.page.pop_front() {
                return Poll::Ready(Some(self.say(event)));
            }
            if self.state.finished && !self.more {
                return Poll::Ready(None);
            }
            if !self.more && is_lost(&self.state, self.server.now_ms()) {
                return Poll::Ready(Some(self.lost()));
            }
            let reading = self.reading.get_or_insert_with(|| {
                let wait = if self.more { Duration::ZERO } else { WAIT };
                Box::pin(read(Arc::clone(&self.events), self.key.clone(), self.after, wait, self.timeout))
            });
            let read = ready!(reading.as_mut().poll(context));
            self.reading = None;
            match read {
                // The client comes back, and finds the store or is told that it is not there.
                None => self.done = true,
                Some(None) => return Poll::Ready(Some(self.lost())),
                Some(Some(page)) => {
                    self.more = page.events.len() >= PAGE;
                    self.state = page.state;
                    self.page = page.events.into();
                }
            }
        }
    }

    fn say(&mut self, event: EventRecord) -> Bytes {
        if event.number > self.after.saturating_add(1) {
            // What is missing is told once; the event itself comes next.
            self.after = event.number - 1;
            self.page.push_front(event);
            return truncated();
        }
        self.after = event.number;
        let id = format!("{}-{}", self.key.stream, event.number);
        match (event.message, event.retry_ms) {
            (Some(message), _) => Event::new(message.as_bytes()).with_id(&id).encode(),
            (None, Some(retry)) if event.number > self.released_until => {
                self.done = true;
                Event::priming(&id).with_retry(Duration::from_millis(retry)).encode()
            }
            (None, _) => Event::priming(&id).encode(),
        }
    }

    /// The rest will not come any more.
    fn lost(&mut self) -> Bytes {
        self.done = true;
        truncated()
    }
}

/// Whether the process that wrote the stream is gone, and the rest with it.
fn is_lost(state: &StreamState, now_ms: u64) -> bool {
    !state.finished && state.alive_until_ms < now_ms
}

/// The next page; `None` when the store failed, and `Some(None)` when it knows nothing of the stream.
async fn read(
    events: Arc<dyn EventStore>,
    key: StreamKey,
    after: u64,
    wait: Duration,
    timeout: Duration,
) -> Option<Option<EventPage>> {
    let asked = Instant::now();
    let page = match tokio::time::timeout(wait + timeout, events.read(&key, after, PAGE, wait)).await {
        Ok(Ok(page)) => page,
        Ok(Err(error)) => {
            tracing::warn!(%error, "events could not be read");
            return None;
        }
        Err(_) => {
            tracing::warn!("events could not be read in time");
            return None;
        }
    };
    let idle = page.as_ref().is_some_and(|page| page.events.is_empty() && !page.state.finished);
    if idle && asked.elapsed() < POLL {
        tokio::time::sleep_until(asked + POLL).await;
    }
    Some(page)
}
