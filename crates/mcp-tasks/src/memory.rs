//! Tasks kept in memory: for a server of one process whose tasks may end with it.
//!
//! Why here: the default, and the smallest thing that keeps the contract.
//! Invariants: what is counted is what is there; nothing of one owner is found by another.

use std::collections::{BTreeSet, HashMap};
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
        let before = stored.bytes();
        (**stored).clone_from(record);
        table.bytes = table.bytes.saturating_sub(before).saturating_add(record.bytes());
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
        }
    }
}

impl fmt::Debug for MemoryTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTaskStore").field("tasks", &self.len()).finish()
    }
}
