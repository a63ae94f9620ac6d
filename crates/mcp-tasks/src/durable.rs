//! Tasks kept in a file: for a server of one process whose tasks outlive it.
//!
//! Why here: what a crash leaves is only worth something to clients who were told of it, so every change is on the disk
//! before anybody hears of it.
//! Invariants: a change that was acknowledged was flushed before; no call of a runtime waits for a disk; a task that ran
//! when its process ended has failed before the first look-up.

mod tables;
mod writer;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use mcp_core::OwnerKey;
use redb::{Database, DatabaseError, StorageError};
use tokio::sync::{Semaphore, mpsc, oneshot};

use self::tables::{Row, Schema};
use self::writer::{Change, Done, Work};
use crate::record::{TaskId, TaskRecord};
use crate::store::{Room, Saved, StoreError, TaskStore};

/// Keeps tasks in a file, which one process has open at a time.
///
/// Changes are made by one thread, each flushed to the disk (`fsync`) before its method returns; those that come while it
/// flushes share the next flush. Look-ups read the file on the runtime's blocking threads, at most 16 at a time, and wait
/// for no change. Every method needs a tokio runtime.
///
/// A record that this version cannot read is reported to `tracing`, is not there for anybody, and stays in the file until
/// its time is over. When the disk fails, the changes of that moment and everything after them are
/// [`StoreError::Unavailable`] until the program opens the file anew.
///
/// The file holds what clients sent and got: on Unix it is made so that its user alone reads it. It grows to what it once
/// had to hold, and no further.
pub struct DurableTaskStore {
    database: Arc<Database>,
    /// `None` once the store is dropped, which ends the writer.
    changes: Option<mpsc::Sender<Work>>,
    writer: Option<JoinHandle<()>>,
    readers: Arc<Semaphore>,
    found: Found,
}

/// What was in a file when it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Tasks, all in all.
    pub tasks: usize,
    /// Those of them that ran when the process ended, and have failed now.
    pub lost: usize,
    /// Those of them that this version cannot read.
    pub unreadable: usize,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another store has it open, in this process or another.
    #[error("the file of tasks is open already")]
    InUse,
    /// It is there and was not made by a store of tasks.
    #[error("the file is none of tasks")]
    Foreign,
    /// It was made by a newer version.
    #[error("the file of tasks has the form {found}, and {known} is the newest that is known here")]
    Newer {
        /// The form of the file.
        found: u64,
        /// The newest form that this version knows.
        known: u64,
    },
    /// It is not as it was written.
    #[error("the file of tasks is damaged")]
    Damaged(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It cannot be made, read or written.
    #[error("the file of tasks cannot be used")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// How many look-ups read the file at a time. Beyond: they wait.
const READERS: usize = 16;

/// How many changes wait for the writer. Beyond: whoever changes waits for a place.
const QUEUE: usize = 256;

/// Bytes of the file that are kept in memory.
const CACHE: usize = 16 * 1024 * 1024;

/// What every file of the database begins with.
const MAGIC: &[u8; 4] = b"redb";

impl DurableTaskStore {
    /// Opens the file, or makes it, and fails what ran when its last process ended. Reads the whole file, and blocks
    /// meanwhile: call it before anything is served.
    ///
    /// # Errors
    /// The file is in use, is no file of tasks or one of a newer version, or does not work.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        if is_foreign(path).map_err(storage)? {
            return Err(OpenError::Foreign);
        }
        create(path).map_err(storage)?;
        let database = caught(|| {
            let mut builder = Database::builder();
            builder.set_cache_size(CACHE).set_check_integrity_on_open(true);
            builder.create(path).map_err(unopened)
        })?;
        let (found, totals) = caught(|| match tables::schema(&database).map_err(unreadable)? {
            Schema::Foreign => Err(OpenError::Foreign),
            Schema::Known(found) if found > tables::FORM => Err(OpenError::Newer { found, known: tables::FORM }),
            Schema::None | Schema::Known(_) => tables::take_over(&database, now()).map_err(unreadable),
        })?;
        let database = Arc::new(database);
        let (changes, queue) = mpsc::channel(QUEUE);
        let writer = writer::start(Arc::clone(&database), queue, totals).map_err(storage)?;
        let readers = Arc::new(Semaphore::new(READERS));
        Ok(Self { database, changes: Some(changes), writer: Some(writer), readers, found })
    }

    /// What was in the file when it was opened.
    #[must_use]
    pub fn found(&self) -> Found {
        self.found
    }

    async fn change(&self, change: Change) -> Result<Done, StoreError> {
        let (reply, done) = oneshot::channel();
        if let Some(changes) = &self.changes {
            // A writer that is gone lets go of the reply as well.
            let _ = changes.send(Work { change, reply }).await;
        }
        done.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the writer of tasks has ended".into())))
    }

    async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Database) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let unavailable = |error: Box<dyn std::error::Error + Send + Sync>| StoreError::Unavailable(error);
        let permit = Arc::clone(&self.readers).acquire_owned().await.map_err(|error| unavailable(error.into()))?;
        let database = Arc::clone(&self.database);
        #[expect(
            clippy::disallowed_methods,
            reason = "a look into the file ends by itself, and a permit bounds how many"
        )]
        let looked = tokio::task::spawn_blocking(move || {
            let found = look(&database);
            drop(permit);
            found
        });
        looked.await.map_err(|error| unavailable(error.into()))?.map_err(|error| unavailable(error.into()))
    }
}

#[async_trait]
impl TaskStore for DurableTaskStore {
    async fn insert(&self, record: &TaskRecord, room: Room) -> Result<(), StoreError> {
        let row = Row::of(record)?;
        self.change(Change::Insert { row, room }).await.map(drop)
    }

    async fn load(&self, owner: OwnerKey, id: &str) -> Result<Option<TaskRecord>, StoreError> {
        let id = id.to_owned();
        self.read(move |database| tables::load(database, owner, &id)).await
    }

    async fn save(&self, record: &TaskRecord, expected: u64) -> Result<Saved, StoreError> {
        let row = Row::of(record)?;
        Ok(match self.change(Change::Save { row, expected }).await? {
            Done::Conflict => Saved::Conflict,
            Done::Stored | Done::Gone(_) => Saved::Stored,
        })
    }

    async fn list(
        &self,
        owner: OwnerKey,
        after: Option<(u64, TaskId)>,
        limit: usize,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        self.read(move |database| tables::list(database, owner, after.as_ref(), limit)).await
    }

    async fn of_job(&self, provider: &str, job: &str) -> Result<Vec<TaskRecord>, StoreError> {
        let (provider, job) = (provider.to_owned(), job.to_owned());
        self.read(move |database| tables::of_job(database, &provider, &job)).await
    }

    async fn forget(&self, owner: OwnerKey) -> Result<(), StoreError> {
        self.change(Change::Forget(owner)).await.map(drop)
    }

    async fn sweep(&self, now: u64) -> Result<usize, StoreError> {
        Ok(match self.change(Change::Sweep(now)).await? {
            Done::Gone(number) => number,
            Done::Stored | Done::Conflict => 0,
        })
    }
}

impl Drop for DurableTaskStore {
    /// Waits for the change that is being made, so that the file can be opened anew.
    fn drop(&mut self) {
        self.changes = None;
        if let Some(writer) = self.writer.take() {
            // A panic of the writer was reported when it happened.
            let _ = writer.join();
        }
    }
}

impl fmt::Debug for DurableTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableTaskStore").field("found", &self.found).finish_non_exhaustive()
    }
}

/// Whether there is a file with something else in it.
fn is_foreign(path: &Path) -> std::io::Result<bool> {
    let mut begin = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(MAGIC.len() as u64).read_to_end(&mut begin)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(!begin.is_empty() && begin != MAGIC)
}

/// Makes an empty file, if there is none, that lasts and that nobody else reads.
fn create(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(file) => file.sync_all()?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(error),
    }
    // Its name is on the disk when the folder is.
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// What the database makes of a damaged file may be a panic.
fn caught<T>(work: impl FnOnce() -> Result<T, OpenError>) -> Result<T, OpenError> {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    done.unwrap_or_else(|_| Err(OpenError::Damaged("reading it panicked".into())))
}

fn storage(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> OpenError {
    OpenError::Storage(error.into())
}

fn unopened(error: DatabaseError) -> OpenError {
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => OpenError::InUse,
        DatabaseError::Storage(StorageError::Corrupted(_)) => OpenError::Damaged(error.into()),
        error => storage(error),
    }
}

fn unreadable(error: redb::Error) -> OpenError {
    match error {
        redb::Error::Corrupted(_) => OpenError::Damaged(error.into()),
        redb::Error::TableTypeMismatch { .. } => OpenError::Foreign,
        error => storage(error),
    }
}

/// Milliseconds since the Unix epoch.
fn now() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "there is no server yet whose clock could be asked")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
