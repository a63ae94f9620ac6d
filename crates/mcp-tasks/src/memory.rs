//! Tasks kept in memory: for a server of one process whose tasks may end with it.
//!
//! Why here: the default, and the smallest thing that keeps the contract.
//! Invariants: what is counted is what is there; nothing of one owner is found by another.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use mcp_core::OwnerKey;

use crate::record::{TaskId, TaskRecord};
use crate::store::{Room, Saved, StoreError, TaskStore};

/// Keeps tasks in memory.
#[derive(Default)]
pub struct MemoryTaskStore(Mutex<Table>);

#[derive(Default)]
struct Table {
    by_id: HashMap<TaskId, Box<TaskRecord>>,
    by_owner: HashMap<OwnerKey, BTreeSet<(u64, TaskId)>>,
    /// By provider and job.
    by_job: HashMap<(Box<str>, Box<str>), HashSet<TaskId>>,
    bytes: usize,
}

impl MemoryTaskStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many tasks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table().by_id.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl TaskStore for MemoryTaskStore {
    async fn insert(&self, record: &TaskRecord, room: Room) -> Result<(), StoreError> {
        let mut table = self.table();
        if table.by_id.contains_key(&record.id) {
            return Err(StoreError::taken());
        }
        let own = table.by_owner.get(&record.owner).map_or(0, BTreeSet::len);
        if own >= room.per_owner {
            return Err(StoreError::OwnerFull);
        }
        let bytes = table.bytes.saturating_add(record.bytes());
        if table.by_id.len() >= room.total || bytes > room.bytes {
            return Err(StoreError::Full);
        }
        table.bytes = bytes;
        table.by_owner.entry(record.owner).or_default().insert((record.created_at, record.id.clone()));
        table.stands_in(record);
        table.by_id.insert(record.id.clone(), Box::new(record.clone()));
        Ok(())
    }

    async fn load(&self, owner: OwnerKey, id: &str) -> Result<Option<TaskRecord>, StoreError> {
        Ok(self.table().by_id.get(id).filter(|record| record.owner == owner).map(|record| (**record).clone()))
    }

    async fn save(&self, record: &TaskRecord, expected: u64) -> Result<Saved, StoreError> {
        let mut table = self.table();
        let Some(stored) = table.by_id.get_mut(&record.id) else { return Ok(Saved::Conflict) };
        if stored.version != expected || stored.owner != record.owner {
            return Ok(Saved::Conflict);
        }
        let before = std::mem::replace(&mut **stored, record.clone());
        table.bytes = table.bytes.saturating_sub(before.bytes()).saturating_add(record.bytes());
        if before.job() != record.job() {
            table.leaves(&before);
            table.stands_in(record);
        }
        Ok(Saved::Stored)
    }

    async fn list(
        &self,
        owner: OwnerKey,
        after: Option<(u64, TaskId)>,
        limit: usize,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let table = self.table();
        let Some(own) = table.by_owner.get(&owner) else { return Ok(Vec::new()) };
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let page = own.range((after, Bound::Unbounded)).take(limit);
        Ok(page.filter_map(|(_, id)| table.by_id.get(id)).map(|record| (**record).clone()).collect())
    }

    async fn of_job(&self, provider: &str, job: &str) -> Result<Vec<TaskRecord>, StoreError> {
        let table = self.table();
        let ids = table.by_job.get(&(provider.into(), job.into())).into_iter().flatten();
        Ok(ids.filter_map(|id| table.by_id.get(id)).map(|record| (**record).clone()).collect())
    }

    async fn forget(&self, owner: OwnerKey) -> Result<(), StoreError> {
        let mut table = self.table();
        for (_, id) in table.by_owner.remove(&owner).unwrap_or_default() {
            table.remove(&id);
        }
        Ok(())
    }

    async fn sweep(&self, now: u64) -> Result<usize, StoreError> {
        let mut table = self.table();
        let over: Vec<_> = table.by_id.values().filter(|record| record.is_forgettable(now)).cloned().collect();
        for record in &over {
            table.remove(&record.id);
            if let Some(own) = table.by_owner.get_mut(&record.owner) {
                own.remove(&(record.created_at, record.id.clone()));
                if own.is_empty() {
                    table.by_owner.remove(&record.owner);
                }
            }
        }
        if !over.is_empty() {
            table.by_id.shrink_to_fit();
        }
        Ok(over.len())
    }
}

impl Table {
    fn remove(&mut self, id: &TaskId) {
        if let Some(record) = self.by_id.remove(id) {
            self.bytes = self.bytes.saturating_sub(record.bytes());
            self.leaves(&record);
        }
    }

    fn stands_in(&mut self, record: &TaskRecord) {
        if let Some((provider, job)) = record.job() {
            self.by_job.entry((provider.into(), job.into())).or_default().insert(record.id.clone());
        }
    }

    fn leaves(&mut self, record: &TaskRecord) {
        let Some((provider, job)) = record.job() else { return };
        if let Entry::Occupied(mut standing) = self.by_job.entry((provider.into(), job.into())) {
            standing.get_mut().remove(&record.id);
            if standing.get().is_empty() {
                standing.remove();
            }
        }
    }
}

impl fmt::Debug for MemoryTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTaskStore").field("tasks", &self.len()).finish()
    }
}
