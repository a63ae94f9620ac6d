//! Which sessions there are: records with versions, and the store that processes share.
//!
//! Why here: a session opened at one process has to be found, checked for its owner and ended at every other.
//! Invariants: a record changes only from the version that was read; nothing of a session that has ended comes back.
//! Spec: 2025-11-25 basic/transports, "Session Management"

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use mcp_wire::capability::ClientCapabilities;
use mcp_wire::types::LoggingLevel;
use mcp_wire::{RawJson, Revision};
use serde::{Deserialize, Serialize};

use super::Cause;
use crate::OwnerKey;
use crate::resource::compare_addresses;

/// What processes share of a session.
///
/// The id is all that a caller needs besides the owner's proof of identity: treat it as a secret.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionRecord {
    /// Names the session; at most 64 letters, digits, `-` and `_`.
    pub id: String,
    /// 1 when it is created, and 1 more with each [change](Self::changed).
    pub version: u64,
    /// Whose it is.
    pub owner: OwnerKey,
    /// What the handshake agreed on.
    #[serde(with = "revision_text")]
    pub revision: Revision,
    /// What the client declared in the handshake.
    #[serde(default)]
    pub capabilities: ClientCapabilities,
    /// The client's name and version.
    #[serde(default)]
    pub client_info: Option<RawJson>,
    /// The least severe log messages that the client wants.
    pub log_level: LoggingLevel,
    /// Addresses of the resources that the client wants to hear of.
    #[serde(default)]
    pub subscriptions: BTreeSet<String>,
    /// When it was created, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// When a message of it last came, to within a minute.
    pub used_ms: u64,
    /// When it is over if nothing more comes.
    pub expires_ms: u64,
}

/// One thing that a client had its session remember.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionChange {
    /// Log messages from this level on.
    LogLevel(LoggingLevel),
    /// To be told of changes of the resource with this address.
    Subscribed(String),
    /// Not to be told of them any more.
    Unsubscribed(String),
}

impl SessionRecord {
    /// The record of a new session that remembers nothing yet and is over at `expires_ms`.
    #[must_use]
    pub fn new(id: impl Into<String>, owner: OwnerKey, revision: Revision, now_ms: u64, expires_ms: u64) -> Self {
        Self {
            id: id.into(),
            version: 1,
            owner,
            revision,
            capabilities: ClientCapabilities::default(),
            client_info: None,
            log_level: LoggingLevel::Info,
            subscriptions: BTreeSet::new(),
            created_ms: now_ms,
            used_ms: now_ms,
            expires_ms,
        }
    }

    /// The next version of the record, with these changes made in order. An address is the same however its scheme is written.
    #[must_use]
    pub fn changed(&self, changes: &[SessionChange]) -> Self {
        let mut next = self.clone();
        next.version += 1;
        for change in changes {
            match change {
                SessionChange::LogLevel(level) => next.log_level = *level,
                // Another process may know the address by another spelling.
                SessionChange::Subscribed(uri) => {
                    if !next.subscriptions.iter().any(|known| compare_addresses(known, uri).is_eq()) {
                        next.subscriptions.insert(uri.clone());
                    }
                }
                SessionChange::Unsubscribed(uri) => {
                    next.subscriptions.retain(|known| compare_addresses(known, uri).is_ne());
                }
            }
        }
        next
    }

    /// Whether the session was idle for too long.
    #[must_use]
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_ms <= now_ms
    }
}

impl fmt::Debug for SessionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The id is a secret of the owner.
        f.debug_struct("SessionRecord")
            .field("version", &self.version)
            .field("owner", &self.owner)
            .field("revision", &self.revision)
            .field("log_level", &self.log_level)
            .field("subscriptions", &self.subscriptions)
            .field("used_ms", &self.used_ms)
            .field("expires_ms", &self.expires_ms)
            .finish_non_exhaustive()
    }
}

/// Why a session store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionStoreError {
    /// There is a session with this id already.
    #[error("there is a session with this id already")]
    Exists,
    /// There is no session with this id, or not any more.
    #[error("there is no such session")]
    Missing,
    /// The record was changed since it was read.
    #[error("the session's record was changed meanwhile")]
    Conflict,
    /// There is no room for another session.
    #[error("{limit} sessions are already open")]
    Full {
        /// The limit in force.
        limit: usize,
    },
    /// The engine behind the store failed.
    #[error("the session store is not available")]
    Unavailable(#[source] Cause),
}

/// The sessions that several processes serve.
///
/// What one process has written, every process reads from then on: a store whose copies lag behind has to read from the one
/// that is written. Each method is atomic by itself and safe to call from all processes at once. A store that forgets
/// everything ends every session: clients open new ones.
#[async_trait]
pub trait SessionStore: Send + Sync + 'static {
    /// Adds a session.
    ///
    /// # Errors
    /// `Exists` if the id is taken, `Full`, or `Unavailable`; nothing has changed then, as far as the store can tell.
    async fn create(&self, record: &SessionRecord) -> Result<(), SessionStoreError>;

    /// The newest version of a record; `None` if there is no such session. One that is expired may be there or not.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn load(&self, id: &str) -> Result<Option<SessionRecord>, SessionStoreError>;

    /// Puts `record` in the place of the version before it: of two that were made from the same version, one wins.
    ///
    /// # Errors
    /// `Conflict` if the stored version is not `record.version - 1`, `Missing` if there is none, or `Unavailable`.
    async fn replace(&self, record: &SessionRecord) -> Result<(), SessionStoreError>;

    /// Moves both times forward, never back, without a new version; whether there is such a session.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn touch(&self, id: &str, used_ms: u64, expires_ms: u64) -> Result<bool, SessionStoreError>;

    /// Ends a session; whether there was one. Of several that try at once, one is told so.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn remove(&self, id: &str) -> Result<bool, SessionStoreError>;

    /// Ends the sessions that are expired at `now_ms`, and returns how many those were. Every process calls this each minute;
    /// a store that forgets what is expired by itself has nothing to do.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn remove_expired(&self, now_ms: u64) -> Result<usize, SessionStoreError>;
}

/// Sessions in memory, for servers of one process.
#[derive(Debug)]
pub struct MemorySessions {
    limit: usize,
    records: Mutex<HashMap<String, SessionRecord>>,
}

impl MemorySessions {
    /// An empty store for at most `limit` sessions.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, records: Mutex::default() }
    }

    fn records(&self) -> std::sync::MutexGuard<'_, HashMap<String, SessionRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SessionStore for MemorySessions {
    async fn create(&self, record: &SessionRecord) -> Result<(), SessionStoreError> {
        let mut records = self.records();
        if records.contains_key(&record.id) {
            return Err(SessionStoreError::Exists);
        }
        if records.len() >= self.limit {
            return Err(SessionStoreError::Full { limit: self.limit });
        }
        records.insert(record.id.clone(), record.clone());
        Ok(())
    }

    async fn load(&self, id: &str) -> Result<Option<SessionRecord>, SessionStoreError> {
        Ok(self.records().get(id).cloned())
    }

    async fn replace(&self, record: &SessionRecord) -> Result<(), SessionStoreError> {
        let mut records = self.records();
        let known = records.get_mut(&record.id).ok_or(SessionStoreError::Missing)?;
        if known.version.checked_add(1) != Some(record.version) {
            return Err(SessionStoreError::Conflict);
        }
        *known = record.clone();
        Ok(())
    }

    async fn touch(&self, id: &str, used_ms: u64, expires_ms: u64) -> Result<bool, SessionStoreError> {
        let mut records = self.records();
        let Some(known) = records.get_mut(id) else { return Ok(false) };
        known.used_ms = known.used_ms.max(used_ms);
        known.expires_ms = known.expires_ms.max(expires_ms);
        Ok(true)
    }

    async fn remove(&self, id: &str) -> Result<bool, SessionStoreError> {
        Ok(self.records().remove(id).is_some())
    }

    async fn remove_expired(&self, now_ms: u64) -> Result<usize, SessionStoreError> {
        let mut records = self.records();
        let before = records.len();
        records.retain(|_, record| !record.is_expired(now_ms));
        Ok(before - records.len())
    }
}

/// A revision as the protocol writes it.
mod revision_text {
    use mcp_wire::Revision;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
    pub(super) fn serialize<S: Serializer>(revision: &Revision, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(revision.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Revision, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Principal;

    fn record() -> SessionRecord {
        SessionRecord::new("id", Principal::anonymous().key(), Revision::NEWEST_LEGACY, 1, 2)
    }

    fn change() -> impl Strategy<Value = SessionChange> {
        prop_oneof![
            (0..LoggingLevel::ALL.len()).prop_map(|index| SessionChange::LogLevel(LoggingLevel::ALL[index])),
            "[a-c]".prop_map(SessionChange::Subscribed),
            "[a-c]".prop_map(SessionChange::Unsubscribed),
        ]
    }

    /// Makes changes as a process does: read, change, replace, and again from the start when somebody was faster.
    async fn make(store: &MemorySessions, stale: Option<SessionRecord>, changes: &[SessionChange]) {
        let mut read = stale;
        loop {
            let known = match read.take() {
                Some(known) => known,
                None => store.load("id").await.unwrap().unwrap(),
            };
            match store.replace(&known.changed(changes)).await {
                Ok(()) => return,
                Err(SessionStoreError::Conflict) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    proptest! {
        /// The last word on each thing counts, whoever said it, and no version is given out twice.
        #[test]
        fn changes_from_stale_records_lose_nothing(steps in proptest::collection::vec((any::<bool>(), change()), 0..20)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (last, model) = runtime.block_on(async {
                let (store, mut model) = (MemorySessions::new(1), record());
                store.create(&record()).await.unwrap();
                for (stale, change) in &steps {
                    make(&store, stale.then(record), std::slice::from_ref(change)).await;
                    model = model.changed(std::slice::from_ref(change));
                }
                (store.load("id").await.unwrap().unwrap(), model)
            });
            prop_assert_eq!(&last, &model);
            prop_assert_eq!(last.version, 1 + steps.len() as u64);
        }

        #[test]
        fn a_record_survives_its_journey_as_json(changes in proptest::collection::vec(change(), 0..5), info in any::<i64>()) {
            let mut record = record().changed(&changes);
            record.client_info = RawJson::from_serialize(&serde_json::json!({ "name": "n", "version": info })).ok();
            let text = serde_json::to_string(&record).unwrap();
            prop_assert_eq!(serde_json::from_str::<SessionRecord>(&text).unwrap(), record);
        }
    }

    #[test]
    fn debug_output_holds_no_id() {
        let printed = format!("{:?}", SessionRecord { id: "secret".to_owned(), ..record() });
        assert!(printed.contains("version") && !printed.contains("secret"), "{printed}");
    }

    #[tokio::test]
    async fn a_full_store_takes_no_more() {
        let store = MemorySessions::new(1);
        store.create(&record()).await.unwrap();
        let another = SessionRecord { id: "other".to_owned(), ..record() };
        assert!(matches!(store.create(&another).await, Err(SessionStoreError::Full { limit: 1 })));
    }
}
