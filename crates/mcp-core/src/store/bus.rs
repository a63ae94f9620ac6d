//! Tells other processes that something changed.
//!
//! Why here: whoever subscribed at one process wants to know what changed at any.
//! Invariants: changes are levels: what waits is a set, as bounded as what a server can name, and what does not fit becomes
//! one mark that stands for everything.
//! Spec: 2026-07-28 basic/patterns/subscriptions, "Notification Delivery"

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::Cause;

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeRecord {
    /// Anything may have changed: more was said than could be kept.
    Everything,
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The resource with this address.
    Resource(String),
    /// Something of a kind that an extension brought, by its notification.
    Extension(String),
}

/// A change, and the process where it happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NoticeRecord {
    /// The process.
    pub from: String,
    /// The change.
    pub change: ChangeRecord,
}

impl NoticeRecord {
    /// A change at the process `from`.
    #[must_use]
    pub fn new(from: impl Into<String>, change: ChangeRecord) -> Self {
        Self { from: from.into(), change }
    }
}

/// Why a bus did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoticeBusError {
    /// The process has not joined, or the bus has forgotten it.
    #[error("the process has not joined")]
    NoProcess,
    /// The engine behind the bus failed.
    #[error("the notice bus is not available")]
    Unavailable(#[source] Cause),
}

/// The way of change notices between processes.
///
/// Order and number mean nothing: two equal changes may arrive as one, and one as two. A bus may lose changes, which costs
/// clients the notice and nothing else; one that knows it has lost some says [`ChangeRecord::Everything`].
#[async_trait]
pub trait NoticeBus: Send + Sync + 'static {
    /// From now on changes at other processes wait for `process`. Joining twice is joining once. Names are as those of an
    /// [`AnswerRoute`](super::AnswerRoute).
    ///
    /// # Errors
    /// `Unavailable`.
    async fn join(&self, process: &str) -> Result<(), NoticeBusError>;

    /// Tells every other process that has joined, without waiting for any. A bus that cannot leave the sender out brings them
    /// back: they are ignored there.
    ///
    /// # Errors
    /// `Unavailable`; the sender tries again.
    async fn publish(&self, from: &str, changes: &[ChangeRecord]) -> Result<(), NoticeBusError>;

    /// What waits for `process`; waits for something to come. Only the process itself fetches, one call at a time.
    ///
    /// # Errors
    /// `NoProcess` where it has to join again; `Unavailable`.
    async fn receive(&self, process: &str) -> Result<Vec<NoticeRecord>, NoticeBusError>;

    /// The process fetches nothing more.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn leave(&self, process: &str) -> Result<(), NoticeBusError>;
}

/// The most changes that wait anywhere.
const MOST_CHANGES: usize = 1_000;

/// A bounded set of changes.
#[derive(Debug, Default)]
pub(crate) struct Changes(BTreeSet<ChangeRecord>);

impl Changes {
    pub(crate) fn add(&mut self, change: ChangeRecord) {
        if self.0.contains(&ChangeRecord::Everything) {
            return;
        }
        if change == ChangeRecord::Everything || (self.0.len() >= MOST_CHANGES && !self.0.contains(&change)) {
            self.0 = BTreeSet::from([ChangeRecord::Everything]);
        } else {
            self.0.insert(change);
        }
    }

    /// All of them; none are left.
    pub(crate) fn take(&mut self) -> Vec<ChangeRecord> {
        std::mem::take(&mut self.0).into_iter().collect()
    }
}

/// A bus in memory, for servers of one process.
#[derive(Debug, Default)]
pub struct MemoryBus {
    members: Mutex<HashMap<String, Arc<Member>>>,
}

#[derive(Debug, Default)]
struct Member {
    /// By the process where they happened.
    waiting: Mutex<HashMap<String, Changes>>,
    arrived: Notify,
}

impl MemoryBus {
    /// A bus without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn members(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Member>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<String, Changes>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl NoticeBus for MemoryBus {
    async fn join(&self, process: &str) -> Result<(), NoticeBusError> {
        self.members().entry(process.to_owned()).or_default();
        Ok(())
    }

    async fn publish(&self, from: &str, changes: &[ChangeRecord]) -> Result<(), NoticeBusError> {
        for (_, member) in self.members().iter().filter(|(process, _)| *process != from) {
            let mut waiting = member.waiting();
            let waiting = waiting.entry(from.to_owned()).or_default();
            for change in changes {
                waiting.add(change.clone());
            }
            member.arrived.notify_one();
        }
        Ok(())
    }

    async fn receive(&self, process: &str) -> Result<Vec<NoticeRecord>, NoticeBusError> {
        let member = self.members().get(process).cloned().ok_or(NoticeBusError::NoProcess)?;
        loop {
            let waiting = std::mem::take(&mut *member.waiting());
            let notices = waiting.into_iter().flat_map(|(from, mut changes)| {
                changes.take().into_iter().map(move |change| NoticeRecord::new(from.clone(), change))
            });
            let notices: Vec<_> = notices.collect();
            if !notices.is_empty() {
                return Ok(notices);
            }
            member.arrived.notified().await;
        }
    }

    async fn leave(&self, process: &str) -> Result<(), NoticeBusError> {
        self.members().remove(process);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_becomes_one_mark_for_everything() {
        let mut changes = Changes::default();
        for number in 0..MOST_CHANGES {
            changes.add(ChangeRecord::Resource(format!("test://{number}")));
            changes.add(ChangeRecord::Resource("test://0".to_owned()));
        }
        assert_eq!(changes.0.len(), MOST_CHANGES);
        changes.add(ChangeRecord::Tools);
        changes.add(ChangeRecord::Prompts);
        assert_eq!(changes.take(), [ChangeRecord::Everything]);
        changes.add(ChangeRecord::Tools);
        assert_eq!(changes.take(), [ChangeRecord::Tools]);
        assert_eq!(changes.take(), []);
    }
}
