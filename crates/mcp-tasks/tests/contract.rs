//! The stores of this crate keep the contract, and stores that break it are found out.
#![expect(clippy::unwrap_used, reason = "a test ends as soon as something is not as it must be")]

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use mcp_core::OwnerKey;
use mcp_tasks::testing::store_contract;
use mcp_tasks::{DurableTaskStore, MemoryTaskStore, Room, Saved, StoreError, TaskId, TaskRecord, TaskStore};

#[tokio::test]
async fn the_store_in_memory_keeps_the_contract() {
    store_contract(async || MemoryTaskStore::new()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_in_memory_keeps_the_contract_on_two_threads() {
    store_contract(async || MemoryTaskStore::new()).await.unwrap();
}

#[tokio::test]
async fn the_store_in_a_file_keeps_the_contract() {
    keeps_the_contract_in_files().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_in_a_file_keeps_the_contract_on_two_threads() {
    keeps_the_contract_in_files().await;
}

async fn keeps_the_contract_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let number = std::sync::atomic::AtomicUsize::new(0);
    let make = async || {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        DurableTaskStore::open(folder.path().join(format!("{number}.redb"))).unwrap()
    };
    store_contract(make).await.unwrap();
}

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    ForgetsTheOwner,
    IgnoresVersions,
    ComparesBeforeItReplaces,
    ChecksRoomBeforeItInserts,
    ChecksTotalBeforeItInserts,
    KeepsWhatItRefuses,
    TakesIdsTwice,
    TakesLettersForEachOther,
    ListsUnordered,
    RepeatsTheLastOfAPage,
    CountsPages,
    ForgetsEverybody,
    SweepsEarly,
    NeverSweeps,
    ShortensResults,
    BringsTasksBack,
    LosesJobs,
    TakesJobsForEachOther,
}

/// A store in memory with one fault.
struct Broken {
    inner: MemoryTaskStore,
    owners: Mutex<HashMap<String, OwnerKey>>,
    fault: Fault,
}

impl Broken {
    fn with(fault: Fault) -> Self {
        Self { inner: MemoryTaskStore::new(), owners: Mutex::default(), fault }
    }

    fn owner(&self, id: &str, claimed: OwnerKey) -> OwnerKey {
        self.owners.lock().unwrap().get(id).copied().unwrap_or(claimed)
    }
}

const AMPLE: Room = Room::new(usize::MAX, usize::MAX, usize::MAX);

#[async_trait]
impl TaskStore for Broken {
    async fn insert(&self, record: &TaskRecord, room: Room) -> Result<(), StoreError> {
        let mut record = record.clone();
        match self.fault {
            Fault::TakesLettersForEachOther => record.id = TaskId::from(record.id.as_str().to_lowercase()),
            Fault::ChecksRoomBeforeItInserts => {
                let own = self.inner.list(record.owner, None, usize::MAX).await?.len();
                tokio::task::yield_now().await;
                if own >= room.per_owner {
                    return Err(StoreError::OwnerFull);
                }
                return self.inner.insert(&record, Room::new(usize::MAX, room.total, room.bytes)).await;
            }
            Fault::ChecksTotalBeforeItInserts => {
                let all = self.inner.len();
                tokio::task::yield_now().await;
                if all >= room.total {
                    return Err(StoreError::Full);
                }
                return self.inner.insert(&record, Room::new(room.per_owner, usize::MAX, room.bytes)).await;
            }
            Fault::TakesIdsTwice if self.owners.lock().unwrap().contains_key(record.id.as_str()) => return Ok(()),
            Fault::KeepsWhatItRefuses => {
                let refused = self.inner.insert(&record, room).await;
                if matches!(refused, Err(StoreError::Full | StoreError::OwnerFull)) {
                    self.inner.insert(&record, AMPLE).await?;
                }
                return refused;
            }
            _ => {}
        }
        self.inner.insert(&record, room).await?;
        self.owners.lock().unwrap().insert(record.id.as_str().to_owned(), record.owner);
        Ok(())
    }

    async fn load(&self, owner: OwnerKey, id: &str) -> Result<Option<TaskRecord>, StoreError> {
        match self.fault {
            Fault::ForgetsTheOwner => self.inner.load(self.owner(id, owner), id).await,
            Fault::TakesLettersForEachOther => self.inner.load(owner, &id.to_lowercase()).await,
            _ => self.inner.load(owner, id).await,
        }
    }

    async fn save(&self, record: &TaskRecord, expected: u64) -> Result<Saved, StoreError> {
        match self.fault {
            Fault::IgnoresVersions => {
                let Some(current) = self.inner.load(record.owner, record.id.as_str()).await? else {
                    return Ok(Saved::Conflict);
                };
                self.inner.save(record, current.version).await
            }
            Fault::ComparesBeforeItReplaces => {
                let current = self.inner.load(record.owner, record.id.as_str()).await?;
                tokio::task::yield_now().await;
                if current.is_none_or(|current| current.version != expected) {
                    return Ok(Saved::Conflict);
                }
                let Some(now) = self.inner.load(record.owner, record.id.as_str()).await? else {
                    return Ok(Saved::Conflict);
                };
                self.inner.save(record, now.version).await
            }
            Fault::ShortensResults => {
                let mut record = record.clone();
                record.issued.truncate(1);
                self.inner.save(&record, expected).await
            }
            Fault::BringsTasksBack if self.inner.load(record.owner, record.id.as_str()).await?.is_none() => {
                if self.owners.lock().unwrap().get(record.id.as_str()) == Some(&record.owner) {
                    self.inner.insert(record, AMPLE).await?;
                    return Ok(Saved::Stored);
                }
                Ok(Saved::Conflict)
            }
            _ => self.inner.save(record, expected).await,
        }
    }

    async fn list(
        &self,
        owner: OwnerKey,
        after: Option<(u64, TaskId)>,
        limit: usize,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        match self.fault {
            Fault::ListsUnordered => {
                let mut listed = self.inner.list(owner, after, limit).await?;
                listed.reverse();
                Ok(listed)
            }
            Fault::RepeatsTheLastOfAPage => {
                let all = self.inner.list(owner, None, usize::MAX).await?;
                let from = |record: &TaskRecord| match &after {
                    Some((created_at, id)) => (record.created_at, &record.id) >= (*created_at, id),
                    None => true,
                };
                Ok(all.into_iter().filter(from).take(limit).collect())
            }
            Fault::CountsPages => {
                // A position that is turned into a number of tasks: what is inserted before it moves it.
                let all = self.inner.list(owner, None, usize::MAX).await?;
                let skipped = match &after {
                    Some((created_at, id)) => {
                        let is_before = |record: &&TaskRecord| {
                            (record.created_at, &record.id) <= (*created_at, id)
                                && !record.id.as_str().starts_with("early")
                        };
                        all.iter().filter(is_before).count()
                    }
                    None => 0,
                };
                Ok(all.into_iter().skip(skipped).take(limit).collect())
            }
            _ => self.inner.list(owner, after, limit).await,
        }
    }

    async fn of_job(&self, provider: &str, job: &str) -> Result<Vec<TaskRecord>, StoreError> {
        match self.fault {
            Fault::LosesJobs => Ok(Vec::new()),
            Fault::TakesJobsForEachOther => self.inner.of_job(provider, job.trim_end()).await,
            _ => self.inner.of_job(provider, job).await,
        }
    }

    async fn forget(&self, owner: OwnerKey) -> Result<(), StoreError> {
        if self.fault == Fault::ForgetsEverybody {
            self.inner.sweep(u64::MAX).await?;
        }
        self.inner.forget(owner).await
    }

    async fn sweep(&self, now: u64) -> Result<usize, StoreError> {
        match self.fault {
            Fault::SweepsEarly => self.inner.sweep(now + 1).await,
            Fault::NeverSweeps => Ok(0),
            _ => self.inner.sweep(now).await,
        }
    }
}

#[tokio::test]
async fn a_store_that_breaks_its_contract_is_told_which_sentence() {
    let found = [
        (Fault::ForgetsTheOwner, "a task is there for its owner and for nobody else"),
        (Fault::IgnoresVersions, "a task is replaced if its version is the expected one"),
        (Fault::ComparesBeforeItReplaces, "comparing and replacing are one step"),
        (Fault::ChecksRoomBeforeItInserts, "checks of the room and the insertion are one step"),
        (Fault::ChecksTotalBeforeItInserts, "checks of the room and the insertion are one step"),
        (Fault::KeepsWhatItRefuses, "an insertion is refused when there is no room"),
        (Fault::TakesIdsTwice, "an id is given to one task"),
        (Fault::TakesLettersForEachOther, "ids that differ at all are different ids"),
        (Fault::ListsUnordered, "tasks are listed by creation and id"),
        (Fault::RepeatsTheLastOfAPage, "a page follows what it comes after"),
        (Fault::CountsPages, "what stays is listed once, whatever changes meanwhile"),
        (Fault::ForgetsEverybody, "a task is there for its owner and for nobody else"),
        (Fault::SweepsEarly, "a sweep removes what is forgettable, and nothing else"),
        (Fault::NeverSweeps, "a sweep removes what is forgettable, and nothing else"),
        (Fault::ShortensResults, "what was inserted is found, as it was"),
        (Fault::BringsTasksBack, "a task that was forgotten is gone, and no other"),
        (Fault::LosesJobs, "the tasks of a job are those that stand in it"),
        (Fault::TakesJobsForEachOther, "the tasks of a job are those that stand in it"),
    ];
    for (fault, sentence) in found {
        let error = store_contract(async || Broken::with(fault)).await.unwrap_err().to_string();
        assert!(error.starts_with(sentence), "{fault:?}: {error}");
    }
    store_contract(async || Broken::with(Fault::None)).await.unwrap();
}
