//! The contract of an [`EventStore`].
//!
//! Why here: see the module above.

use std::time::Duration;

use mcp_wire::RawJson;

use super::{TestError, both, done, ensure, fresh, soon};
use crate::store::{EventPage, EventRecord, EventStore, StreamKey, StreamState};

/// A moment that no clock of a test reaches.
const FAR: u64 = 4_000_000_000_000;

const OPEN: StreamState = StreamState { finished: false, alive_until_ms: FAR, keep_until_ms: FAR };
const FINISHED: StreamState = StreamState { finished: true, alive_until_ms: 0, keep_until_ms: FAR };

/// Holds a store of events to its contract. It has to keep at least four events of a stream. Leaves nothing behind.
///
/// # Errors
/// The first promise that was not kept.
pub async fn check_event_store(store: &dyn EventStore) -> Result<(), TestError> {
    let session = fresh()?;
    let stream = StreamKey::new(session.clone(), "1.a-_");
    ensure(read(store, &stream, 0).await?.is_none(), "a stream was there before its first append")?;
    append(store, &stream, &[], OPEN).await?;
    let page = known(store, &stream, 0).await?;
    ensure(page == EventPage::new(Vec::new(), OPEN), "a stream without events is not known as one")?;
    let events = [event(1)?, event(2)?, EventRecord::release(3, Duration::from_millis(7))];
    append(store, &stream, &events, OPEN).await?;
    ensure(known(store, &stream, 0).await?.events == events, "events came back changed or out of order")?;
    ensure(known(store, &stream, 2).await?.events == events[2..], "a reader got what it has, or not what it lacks")?;
    let page = done("read", store.read(&stream, 0, 1, Duration::ZERO).await)?;
    ensure(
        page.is_some_and(|page| page.events == events[..1]),
        "not the oldest came first, or more than was asked for",
    )?;
    // An append whose end was not seen is repeated, with what came meanwhile.
    append(store, &stream, &[event(2)?, EventRecord::release(3, Duration::ZERO), event(4)?], OPEN).await?;
    let all = [&events[..], &[event(4)?]].concat();
    ensure(known(store, &stream, 0).await?.events == all, "a repeated append has changed what was there")?;
    strangers(store, &stream, &all).await?;
    goes_on(store, &session).await?;
    append(store, &stream, &[], FINISHED).await?;
    append(store, &stream, &[], OPEN).await?;
    ensure(known(store, &stream, 4).await?.state.finished, "a stream that was finished goes on")?;
    ensure(known(store, &stream, 3).await?.events == [event(4)?], "what a finished stream said is gone at once")?;
    forgets(store, &stream).await
}

fn event(number: u64) -> Result<EventRecord, TestError> {
    let text = format!(r#"{{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":{{"n":{number}}}}}"#);
    Ok(EventRecord::message(number, done("a message", RawJson::from_bytes(text.into()))?))
}

async fn append(
    store: &dyn EventStore,
    stream: &StreamKey,
    events: &[EventRecord],
    state: StreamState,
) -> Result<(), TestError> {
    done("append", store.append(stream, events, state).await)
}

async fn read(store: &dyn EventStore, stream: &StreamKey, after: u64) -> Result<Option<EventPage>, TestError> {
    done("read", store.read(stream, after, 100, Duration::ZERO).await)
}

async fn known(store: &dyn EventStore, stream: &StreamKey, after: u64) -> Result<EventPage, TestError> {
    read(store, stream, after).await?.ok_or_else(|| TestError::new("a stream that was written is not known"))
}

async fn strangers(store: &dyn EventStore, stream: &StreamKey, all: &[EventRecord]) -> Result<(), TestError> {
    let elsewhere = StreamKey::new(fresh()?, stream.stream.clone());
    ensure(read(store, &elsewhere, 0).await?.is_none(), "a stream is known in a session that is not its own")?;
    append(store, &elsewhere, &[event(9)?], OPEN).await?;
    ensure(known(store, stream, 0).await?.events == all, "a stream of another session got into this one")?;
    done("remove_session", store.remove_session(&elsewhere.session).await)?;
    ensure(read(store, &elsewhere, 0).await?.is_none(), "a stream is there after its session")?;
    ensure(known(store, stream, 0).await?.events == all, "with a session another one's streams went")
}

/// A reader that is ahead of the writer gets what comes.
async fn goes_on(store: &dyn EventStore, session: &str) -> Result<(), TestError> {
    let stream = StreamKey::new(session, "2");
    append(store, &stream, &[event(1)?], OPEN).await?;
    let reading = async {
        loop {
            let page = done("read", store.read(&stream, 1, 100, Duration::from_secs(1)).await)?;
            match page {
                None => return Err(TestError::new("a stream that is written is not known any more")),
                Some(page) if page.events.is_empty() => tokio::time::sleep(Duration::from_millis(10)).await,
                Some(page) => return Ok(page),
            }
        }
    };
    let second = [event(2)?];
    let (page, appended) =
        both(soon("an event that is appended", reading), append(store, &stream, &second, FINISHED)).await;
    appended?;
    ensure(page? == EventPage::new(second.to_vec(), FINISHED), "what a reader waited for came changed")
}

async fn forgets(store: &dyn EventStore, stream: &StreamKey) -> Result<(), TestError> {
    let brief = StreamKey::new(stream.session.clone(), "brief");
    append(store, &brief, &[event(1)?], StreamState { keep_until_ms: 5, ..FINISHED }).await?;
    done("remove_expired", store.remove_expired(5).await)?;
    ensure(read(store, &brief, 0).await?.is_none(), "a stream that may be forgotten is still there")?;
    ensure(read(store, stream, 0).await?.is_some(), "a stream was forgotten before its time")?;
    done("remove_session", store.remove_session(&stream.session).await)?;
    ensure(read(store, stream, 0).await?.is_none(), "a stream is there after its session")
}
