//! The checks hold for the versions in memory, and fail for stores that are broken on purpose.

use std::sync::Mutex;

use async_trait::async_trait;

use super::*;
use crate::store::{
    AnswerRoute, AnswerRouteError, ChangeRecord, Errand, EventPage, EventRecord, EventStore, EventStoreError,
    MemoryBus, MemoryEvents, MemoryRoute, MemorySessions, NoticeBus, NoticeBusError, NoticeRecord, Recipient,
    SessionRecord, SessionStore, SessionStoreError, StreamKey, StreamState,
};

#[tokio::test(start_paused = true)]
async fn the_stores_in_memory_keep_their_promises() {
    check_session_store(&MemorySessions::new(10)).await.unwrap();
    check_event_store(&MemoryEvents::default()).await.unwrap();
    check_answer_route(&MemoryRoute::default()).await.unwrap();
    check_notice_bus(&MemoryBus::new()).await.unwrap();
}

/// What is wrong with a store of sessions.
#[derive(Clone, Copy, PartialEq)]
enum SessionFault {
    Overwrites,
    IgnoresVersions,
    TurnsTimeBack,
    RevivesByTouch,
    TellsEveryoneTheyEndedIt,
    EndsTooMuch,
}

struct BrokenSessions(MemorySessions, SessionFault, Mutex<Vec<String>>);

#[async_trait]
impl SessionStore for BrokenSessions {
    async fn create(&self, record: &SessionRecord) -> Result<(), SessionStoreError> {
        if self.1 == SessionFault::Overwrites {
            self.0.remove(&record.id).await?;
        }
        self.2.lock().unwrap().push(record.id.clone());
        self.0.create(record).await
    }

    async fn load(&self, id: &str) -> Result<Option<SessionRecord>, SessionStoreError> {
        self.0.load(id).await
    }

    async fn replace(&self, record: &SessionRecord) -> Result<(), SessionStoreError> {
        if self.1 == SessionFault::IgnoresVersions && self.0.remove(&record.id).await? {
            return self.0.create(record).await;
        }
        self.0.replace(record).await
    }

    async fn touch(&self, id: &str, used_ms: u64, expires_ms: u64) -> Result<bool, SessionStoreError> {
        if self.1 == SessionFault::TurnsTimeBack
            && let Some(mut record) = self.0.load(id).await?
        {
            self.0.remove(id).await?;
            (record.used_ms, record.expires_ms) = (used_ms, expires_ms);
            self.0.create(&record).await?;
        }
        Ok(self.0.touch(id, used_ms, expires_ms).await? || self.1 == SessionFault::RevivesByTouch)
    }

    async fn remove(&self, id: &str) -> Result<bool, SessionStoreError> {
        Ok(self.0.remove(id).await? || self.1 == SessionFault::TellsEveryoneTheyEndedIt)
    }

    async fn remove_expired(&self, now_ms: u64) -> Result<usize, SessionStoreError> {
        let everything = self.1 == SessionFault::EndsTooMuch;
        self.0.remove_expired(if everything { u64::MAX } else { now_ms }).await
    }
}

#[tokio::test(start_paused = true)]
async fn the_check_of_session_stores_finds_what_is_broken() {
    use SessionFault::{
        EndsTooMuch, IgnoresVersions, Overwrites, RevivesByTouch, TellsEveryoneTheyEndedIt, TurnsTimeBack,
    };
    for (fault, told) in [
        (Overwrites, "one id was given to two sessions"),
        (IgnoresVersions, "a change of a version that is not the newest is no Conflict"),
        (TurnsTimeBack, "touching moves both times forward"),
        (RevivesByTouch, "a session that is not there was touched"),
        (TellsEveryoneTheyEndedIt, "of two that end a session, not one"),
        (EndsTooMuch, "a session that is not expired has ended"),
    ] {
        let store = BrokenSessions(MemorySessions::new(10), fault, Mutex::default());
        let error = check_session_store(&store).await.unwrap_err().to_string();
        assert!(error.starts_with(told), "{error}");
    }
}

/// What is wrong with a store of events.
#[derive(Clone, Copy, PartialEq)]
enum EventFault {
    Repeats,
    GoesOnAfterItsEnd,
    MixesSessions,
    SkipsTheFirst,
    NeverWakes,
}

struct BrokenEvents {
    inner: MemoryEvents,
    fault: EventFault,
    shift: Mutex<u64>,
}

impl BrokenEvents {
    fn key(&self, stream: &StreamKey) -> StreamKey {
        let session = if self.fault == EventFault::MixesSessions { "one" } else { &stream.session };
        StreamKey::new(session, stream.stream.clone())
    }
}

#[async_trait]
impl EventStore for BrokenEvents {
    async fn append(
        &self,
        stream: &StreamKey,
        events: &[EventRecord],
        state: StreamState,
    ) -> Result<(), EventStoreError> {
        if self.fault == EventFault::Repeats && events.len() > 2 {
            // Numbers anew what it has already.
            let shift = std::mem::replace(&mut *self.shift.lock().unwrap(), 2);
            let events: Vec<_> =
                events.iter().map(|event| EventRecord { number: event.number + shift, ..event.clone() }).collect();
            return self.inner.append(&self.key(stream), &events, state).await;
        }
        if self.fault == EventFault::NeverWakes && state.finished {
            return Ok(());
        }
        self.inner.append(&self.key(stream), events, state).await
    }

    async fn read(
        &self,
        stream: &StreamKey,
        after: u64,
        most: usize,
        wait: Duration,
    ) -> Result<Option<EventPage>, EventStoreError> {
        let after = if self.fault == EventFault::SkipsTheFirst { after + 1 } else { after };
        let page = self.inner.read(&self.key(stream), after, most, wait).await?;
        Ok(page.map(|mut page| {
            page.state.finished &= self.fault != EventFault::GoesOnAfterItsEnd;
            page
        }))
    }

    async fn remove_session(&self, session: &str) -> Result<(), EventStoreError> {
        self.inner.remove_session(session).await
    }

    async fn remove_expired(&self, now_ms: u64) -> Result<(), EventStoreError> {
        self.inner.remove_expired(now_ms).await
    }
}

#[tokio::test(start_paused = true)]
async fn the_check_of_event_stores_finds_what_is_broken() {
    use EventFault::{GoesOnAfterItsEnd, MixesSessions, NeverWakes, Repeats, SkipsTheFirst};
    for (fault, told) in [
        (Repeats, "a repeated append has changed what was there"),
        (GoesOnAfterItsEnd, "what a reader waited for came changed"),
        (MixesSessions, "a stream is known in a session that is not its own"),
        (SkipsTheFirst, "events came back changed or out of order"),
        (NeverWakes, "an event that is appended does not come"),
    ] {
        let store = BrokenEvents { inner: MemoryEvents::default(), fault, shift: Mutex::default() };
        let error = check_event_store(&store).await.unwrap_err().to_string();
        assert!(error.starts_with(told), "{error}");
    }
}

/// What is wrong with a route.
#[derive(Clone, Copy, PartialEq)]
enum RouteFault {
    TellsEveryone,
    TellsOne,
    TurnsAround,
    Remembers,
}

struct BrokenRoute(MemoryRoute, RouteFault);

#[async_trait]
impl AnswerRoute for BrokenRoute {
    async fn join(&self, process: &str) -> Result<(), AnswerRouteError> {
        self.0.join(process).await
    }

    async fn send(&self, to: &Recipient, errand: &Errand) -> Result<(), AnswerRouteError> {
        match (self.1, to) {
            (RouteFault::TellsEveryone, _) => self.0.send(&Recipient::Everyone, errand).await,
            (RouteFault::TellsOne, Recipient::Everyone) => Ok(()),
            _ => self.0.send(to, errand).await,
        }
    }

    async fn receive(&self, process: &str) -> Result<Vec<Errand>, AnswerRouteError> {
        let mut received = self.0.receive(process).await?;
        if self.1 == RouteFault::TurnsAround {
            received.reverse();
        }
        Ok(received)
    }

    async fn leave(&self, process: &str) -> Result<(), AnswerRouteError> {
        if self.1 == RouteFault::Remembers { Ok(()) } else { self.0.leave(process).await }
    }
}

#[tokio::test(start_paused = true)]
async fn the_check_of_routes_finds_what_is_broken() {
    let wrong = "errands came to the wrong process, changed, twice or out of order";
    for (fault, told) in [
        (RouteFault::TellsEveryone, wrong),
        (RouteFault::TellsOne, "an errand does not come"),
        (RouteFault::TurnsAround, wrong),
        (RouteFault::Remembers, wrong),
    ] {
        let error = check_answer_route(&BrokenRoute(MemoryRoute::default(), fault)).await.unwrap_err().to_string();
        assert!(error.starts_with(told), "{error}");
    }
}

/// What is wrong with a bus.
#[derive(Clone, Copy, PartialEq)]
enum BusFault {
    KeepsTheOldest,
    TellsOfOneKind,
}

struct BrokenBus {
    inner: MemoryBus,
    fault: BusFault,
    published: Mutex<usize>,
}

#[async_trait]
impl NoticeBus for BrokenBus {
    async fn join(&self, process: &str) -> Result<(), NoticeBusError> {
        self.inner.join(process).await
    }

    async fn publish(&self, from: &str, changes: &[ChangeRecord]) -> Result<(), NoticeBusError> {
        let full = {
            let mut published = self.published.lock().unwrap();
            *published += changes.len();
            *published > 1000
        };
        match self.fault {
            BusFault::KeepsTheOldest if full => Ok(()),
            BusFault::KeepsTheOldest => self.inner.publish(from, changes).await,
            BusFault::TellsOfOneKind => self.inner.publish(from, &[ChangeRecord::Tools]).await,
        }
    }

    async fn receive(&self, process: &str) -> Result<Vec<NoticeRecord>, NoticeBusError> {
        self.inner.receive(process).await
    }

    async fn leave(&self, process: &str) -> Result<(), NoticeBusError> {
        self.inner.leave(process).await
    }
}

#[tokio::test(start_paused = true)]
async fn the_check_of_buses_finds_what_is_broken() {
    for fault in [BusFault::KeepsTheOldest, BusFault::TellsOfOneKind] {
        let bus = BrokenBus { inner: MemoryBus::new(), fault, published: Mutex::default() };
        let error = check_notice_bus(&bus).await.unwrap_err().to_string();
        assert_eq!(error, "a change does not come");
    }
}
