//! The contract of a [`SessionStore`].
//!
//! Why here: see the module above.

use mcp_wire::types::LoggingLevel;
use mcp_wire::{RawJson, Revision};

use super::{TestError, both, done, ensure, fresh};
use crate::Principal;
use crate::store::{SessionChange, SessionRecord, SessionStore, SessionStoreError};

/// A moment that no clock of a test reaches.
const FAR: u64 = 4_000_000_000_000;

/// Holds a store of sessions to its contract. Leaves nothing behind.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use mcp_core::store::MemorySessions;
/// use mcp_core::testing::check_session_store;
///
/// check_session_store(&MemorySessions::new(100)).await?;
/// # Ok::<_, mcp_core::testing::TestError>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The first promise that was not kept.
pub async fn check_session_store(store: &dyn SessionStore) -> Result<(), TestError> {
    let first = record(FAR)?;
    ensure(load(store, &first.id).await?.is_none(), "a session was there before it was created")?;
    ensure(!done("touch", store.touch(&first.id, 1, 1).await)?, "a session that is not there was touched")?;
    ensure(
        matches!(store.replace(&first.changed(&[])).await, Err(SessionStoreError::Missing)),
        "replacing the record of a session that is not there is not Missing",
    )?;
    done("create", store.create(&first).await)?;
    ensure(load(store, &first.id).await?.as_ref() == Some(&first), "a record came back changed")?;
    let mut other = first.clone();
    other.owner = Principal::new("test", "", "other").key();
    ensure(matches!(store.create(&other).await, Err(SessionStoreError::Exists)), "one id was given to two sessions")?;
    ensure(load(store, &first.id).await?.as_ref() == Some(&first), "a refused session has replaced the one before")?;
    versions(store, &first).await?;
    times(store, &first.id).await?;
    ends(store, &first).await
}

fn record(expires_ms: u64) -> Result<SessionRecord, TestError> {
    let owner = Principal::new("test", "https://issuer.example", "ann").key();
    let mut record = SessionRecord::new(fresh()?, owner, Revision::NEWEST_LEGACY, 10, expires_ms);
    // Digits that a store may not round.
    let info = r#"{"name":"n","version":"1","x":123456789012345678901234567890,"y":"\u2028\ud83d\ude00"}"#;
    record.client_info = RawJson::from_bytes(info.into()).ok();
    record.subscriptions.insert("test://a".to_owned());
    Ok(record)
}

async fn load(store: &dyn SessionStore, id: &str) -> Result<Option<SessionRecord>, TestError> {
    done("load", store.load(id).await)
}

async fn versions(store: &dyn SessionStore, first: &SessionRecord) -> Result<(), TestError> {
    let second = first.changed(&[SessionChange::LogLevel(LoggingLevel::Error)]);
    done("replace", store.replace(&second).await)?;
    ensure(load(store, &first.id).await?.as_ref() == Some(&second), "a record was not replaced")?;
    let late = first.changed(&[SessionChange::LogLevel(LoggingLevel::Debug)]);
    ensure(
        matches!(store.replace(&late).await, Err(SessionStoreError::Conflict)),
        "a change of a version that is not the newest is no Conflict",
    )?;
    let early = second.changed(&[]).changed(&[]);
    ensure(matches!(store.replace(&early).await, Err(SessionStoreError::Conflict)), "a version was left out")?;
    ensure(load(store, &first.id).await?.as_ref() == Some(&second), "a refused change was made")?;
    // Two that were made from the same version: one wins, and its record is the one that is there.
    let one = second.changed(&[SessionChange::Subscribed("test://one".to_owned())]);
    let two = second.changed(&[SessionChange::Subscribed("test://two".to_owned())]);
    let (first_outcome, second_outcome) = both(store.replace(&one), store.replace(&two)).await;
    let winner = match (first_outcome, second_outcome) {
        (Ok(()), Err(SessionStoreError::Conflict)) => one,
        (Err(SessionStoreError::Conflict), Ok(())) => two,
        other => return Err(TestError::new(format!("of two changes of one version not one has won: {other:?}"))),
    };
    ensure(load(store, &first.id).await?.as_ref() == Some(&winner), "the record is not that of the change that won")
}

async fn times(store: &dyn SessionStore, id: &str) -> Result<(), TestError> {
    let before = load(store, id).await?;
    ensure(done("touch", store.touch(id, 20, FAR + 1).await)?, "a session that is there could not be touched")?;
    ensure(done("touch", store.touch(id, 15, FAR).await)?, "a session that is there could not be touched")?;
    let expected = before.map(|mut record| {
        (record.used_ms, record.expires_ms) = (20, FAR + 1);
        record
    });
    ensure(load(store, id).await? == expected, "touching moves both times forward, and nothing else")
}

async fn ends(store: &dyn SessionStore, first: &SessionRecord) -> Result<(), TestError> {
    let (one, other) = both(store.remove(&first.id), store.remove(&first.id)).await;
    let told = (done("remove", one)?, done("remove", other)?);
    ensure(matches!(told, (true, false) | (false, true)), "of two that end a session, not one was told that it did")?;
    ensure(load(store, &first.id).await?.is_none(), "a session is there after its end")?;
    ensure(
        matches!(store.replace(&first.changed(&[])).await, Err(SessionStoreError::Missing)),
        "a session came back after its end",
    )?;
    ensure(!done("touch", store.touch(&first.id, 30, FAR).await)?, "a session came back after its end")?;
    let (over, living) = (record(5)?, record(FAR)?);
    done("create", store.create(&over).await)?;
    done("create", store.create(&living).await)?;
    done("remove_expired", store.remove_expired(5).await)?;
    ensure(load(store, &over.id).await?.is_none(), "a session that is expired is still there")?;
    ensure(load(store, &living.id).await?.is_some(), "a session that is not expired has ended")?;
    ensure(done("remove", store.remove(&living.id).await)?, "a session could not be ended")
}
