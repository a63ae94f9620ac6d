//! Where tasks are kept: the trait, and what a store may refuse.
//!
//! Why here: a store holds records and nothing that lives, so that it can be a table of any database.
//! Invariants: no method takes a closure or a handle; a record that was stored is found by its owner and by nobody else.

use async_trait::async_trait;
use mcp_core::OwnerKey;

use crate::record::{TaskId, TaskRecord};

/// Keeps tasks.
///
/// `testing::store_contract` (feature `testing`) holds an implementation to what is said here. A method that fails must
/// have changed nothing, or be safe to repeat. Every method may be dropped half-way.
#[async_trait]
pub trait TaskStore: Send + Sync + 'static {
    /// Adds a task. When this returns, [`Self::load`] finds it, in every process that shares the store, and after a crash if
    /// the store survives one. Checks of `room` and the insertion are one step, and an id is given to one task: a second
    /// one changes nothing, whoever its owner is.
    ///
    /// # Errors
    /// [`StoreError::OwnerFull`] or [`StoreError::Full`] when there is no room for it, [`StoreError::Unavailable`], as well
    /// when its id is taken.
    async fn insert(&self, record: &TaskRecord, room: Room) -> Result<(), StoreError>;

    /// The task with this id, if it is this owner's. A foreign one is not there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn load(&self, owner: OwnerKey, id: &str) -> Result<Option<TaskRecord>, StoreError>;

    /// Replaces the task, if its stored version is `expected` and its owner is the record's: comparing and replacing are one
    /// step. Lasting as [`Self::insert`] is. There is always room for it. Id, owner and creation of a task never change.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn save(&self, record: &TaskRecord, expected: u64) -> Result<Saved, StoreError>;

    /// At most `limit` tasks of an owner, ordered by creation and id, that come after `after`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn list(
        &self,
        owner: OwnerKey,
        after: Option<(u64, TaskId)>,
        limit: usize,
    ) -> Result<Vec<TaskRecord>, StoreError>;

    /// The tasks that [stand in](TaskRecord::job) this job now, whoever their owners are, in any order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn of_job(&self, provider: &str, job: &str) -> Result<Vec<TaskRecord>, StoreError>;

    /// Forgets every task of an owner.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn forget(&self, owner: OwnerKey) -> Result<(), StoreError>;

    /// Forgets what [is forgettable](TaskRecord::is_forgettable) at `now`, in milliseconds since the Unix epoch; returns how
    /// many tasks that were.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn sweep(&self, now: u64) -> Result<usize, StoreError>;
}

/// How much a store may hold after an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Room {
    /// Tasks of one owner.
    pub per_owner: usize,
    /// Tasks in all.
    pub total: usize,
    /// [Bytes](TaskRecord::bytes) in all. Only insertions are refused for it: what a task comes to is always kept.
    pub bytes: usize,
}

impl Room {
    /// Room for so much.
    #[must_use]
    pub const fn new(per_owner: usize, total: usize, bytes: usize) -> Self {
        Self { per_owner, total, bytes }
    }
}

/// What became of a [`TaskStore::save`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "whoever saves must treat both")]
pub enum Saved {
    /// It is stored.
    Stored,
    /// Somebody else was first, or the task is gone; nothing was stored.
    Conflict,
}

/// Why a store did not do as it was told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The owner has as many tasks as one may have.
    #[error("the owner has too many tasks")]
    OwnerFull,
    /// There are as many tasks, or bytes of them, as there may be.
    #[error("there are too many tasks")]
    Full,
    /// The store does not work.
    #[error("the store of tasks is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Two tasks were given one id, which random ids never are.
    pub(crate) fn taken() -> Self {
        Self::Unavailable("there is a task with this id".into())
    }
}
