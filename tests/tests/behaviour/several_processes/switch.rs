//! Stores with a switch: they work, fail, or do not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use mcp_core::store::{
    AnswerRoute, AnswerRouteError, Errand, EventPage, EventRecord, EventStore, EventStoreError, MemoryBus,
    MemoryEvents, MemoryRoute, MemorySessions, Recipient, SessionRecord, SessionStore, SessionStoreError, StreamKey,
    StreamState,
};

/// What a store does when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Works = 0,
    Fails = 1,
    Hangs = 2,
}

/// What the processes of a test share.
#[derive(Debug, Default)]
pub(super) struct Engine {
    sessions: Switched<Sessions>,
    events: Switched<MemoryEvents>,
    route: Switched<MemoryRoute>,
    pub(super) bus: Arc<MemoryBus>,
}

#[derive(Debug, Default)]
struct Switched<T> {
    store: T,
    mood: AtomicU8,
}

#[derive(Debug)]
struct Sessions(MemorySessions);

impl Default for Sessions {
    fn default() -> Self {
        Self(MemorySessions::new(100))
    }
}

impl Engine {
    pub(super) fn sessions_are(&self, mood: Mood) {
        self.sessions.mood.store(mood as u8, Ordering::Relaxed);
    }

    pub(super) fn events_are(&self, mood: Mood) {
        self.events.mood.store(mood as u8, Ordering::Relaxed);
    }

    pub(super) fn route_is(&self, mood: Mood) {
        self.route.mood.store(mood as u8, Ordering::Relaxed);
    }

    /// The record of a session.
    pub(super) async fn record(&self, id: &str) -> Option<SessionRecord> {
        self.sessions.store.0.load(id).await.unwrap()
    }
}

impl<T> Switched<T> {
    async fn ready(&self) -> Result<(), &'static str> {
        match self.mood.load(Ordering::Relaxed) {
            0 => Ok(()),
            1 => Err("switched off"),
            _ => std::future::pending().await,
        }
    }
}

fn no_sessions(cause: &'static str) -> SessionStoreError {
    SessionStoreError::Unavailable(cause.into())
}

#[async_trait]
impl SessionStore for Engine {
    async fn create(&self, record: &SessionRecord) -> Result<(), SessionStoreError> {
        self.sessions.ready().await.map_err(no_sessions)?;
        self.sessions.store.0.create(record).await
    }

    async fn load(&self, id: &str) -> Result<Option<SessionRecord>, SessionStoreError> {
        self.sessions.ready().await.map_err(no_sessions)?;
        // As a store over a wire does it: others run meanwhile.
        tokio::task::yield_now().await;
        self.sessions.store.0.load(id).await
    }

    async fn replace(&self, record: &SessionRecord) -> Result<(), SessionStoreError> {
        self.sessions.ready().await.map_err(no_sessions)?;
        tokio::task::yield_now().await;
        self.sessions.store.0.replace(record).await
    }

    async fn touch(&self, id: &str, used_ms: u64, expires_ms: u64) -> Result<bool, SessionStoreError> {
        self.sessions.ready().await.map_err(no_sessions)?;
        self.sessions.store.0.touch(id, used_ms, expires_ms).await
    }

    async fn remove(&self, id: &str) -> Result<bool, SessionStoreError> {
        self.sessions.ready().await.map_err(no_sessions)?;
        self.sessions.store.0.remove(id).await
    }

    async fn remove_expired(&self, now_ms: u64) -> Result<usize, SessionStoreError> {
        self.sessions.ready().await.map_err(no_sessions)?;
        self.sessions.store.0.remove_expired(now_ms).await
    }
}

fn no_events(cause: &'static str) -> EventStoreError {
    EventStoreError::Unavailable(cause.into())
}

#[async_trait]
impl EventStore for Engine {
    async fn append(
        &self,
        stream: &StreamKey,
        events: &[EventRecord],
        state: StreamState,
    ) -> Result<(), EventStoreError> {
        self.events.ready().await.map_err(no_events)?;
        self.events.store.append(stream, events, state).await
    }

    async fn read(
        &self,
        stream: &StreamKey,
        after: u64,
        most: usize,
        wait: Duration,
    ) -> Result<Option<EventPage>, EventStoreError> {
        self.events.ready().await.map_err(no_events)?;
        self.events.store.read(stream, after, most, wait).await
    }

    async fn remove_session(&self, session: &str) -> Result<(), EventStoreError> {
        self.events.ready().await.map_err(no_events)?;
        self.events.store.remove_session(session).await
    }

    async fn remove_expired(&self, now_ms: u64) -> Result<(), EventStoreError> {
        self.events.ready().await.map_err(no_events)?;
        self.events.store.remove_expired(now_ms).await
    }
}

fn no_route(cause: &'static str) -> AnswerRouteError {
    AnswerRouteError::Unavailable(cause.into())
}

#[async_trait]
impl AnswerRoute for Engine {
    async fn join(&self, process: &str) -> Result<(), AnswerRouteError> {
        self.route.ready().await.map_err(no_route)?;
        self.route.store.join(process).await
    }

    async fn send(&self, to: &Recipient, errand: &Errand) -> Result<(), AnswerRouteError> {
        self.route.ready().await.map_err(no_route)?;
        // Records only: what travels is text.
        let errand: Errand = serde_json::from_str(&serde_json::to_string(errand).unwrap()).unwrap();
        self.route.store.send(to, &errand).await
    }

    async fn receive(&self, process: &str) -> Result<Vec<Errand>, AnswerRouteError> {
        self.route.ready().await.map_err(no_route)?;
        self.route.store.receive(process).await
    }

    async fn leave(&self, process: &str) -> Result<(), AnswerRouteError> {
        self.route.store.leave(process).await
    }
}
