//! The tables of the file: what stands in them, and what each change does to them.
//!
//! Why here: blocking and single-threaded, so that a change can be read from top to bottom.
//! Invariants: what is compared, counted or swept stands beside the record, so that a record nobody can read any more is
//! still its owner's, counted, and gone when its time is over; every task stands in the tables of ids and of owners or in none, and
//! in both tables of jobs as long as it stands in one.

use std::collections::HashMap;
use std::ops::Bound;

use mcp_core::OwnerKey;
use redb::{
    Database, Error, ReadableDatabase, ReadableTable, Table, TableDefinition, TableHandle as _, WriteTransaction,
};

use super::Found;
use super::writer::{Change, Done};
use crate::record::{TaskEvent, TaskId, TaskRecord, TaskState};
use crate::store::{Room, StoreError};

/// The form of the tables below.
pub(super) const FORM: u64 = 1;

/// The form, under this one name.
const FORMS: TableDefinition<'_, &str, u64> = TableDefinition::new("mcp-tasks");
const FORM_KEY: &str = "form";

/// Owner, version, creation, when it may be forgotten, bytes, and the record as JSON.
type Stored = (&'static [u8; 32], u64, u64, u64, u64, &'static [u8]);

/// Tasks by id.
const TASKS: TableDefinition<'_, &str, Stored> = TableDefinition::new("tasks");
/// Ids by owner and creation.
const OWNED: TableDefinition<'_, (&[u8; 32], u64, &str), ()> = TableDefinition::new("owned");
/// Ids by provider and job.
const JOBS: TableDefinition<'_, (&str, &str, &str), ()> = TableDefinition::new("jobs");
/// Provider and job by id.
const JOB_OF: TableDefinition<'_, &str, (&str, &str)> = TableDefinition::new("job_of");

/// A record as it is stored.
pub(super) struct Row {
    id: TaskId,
    owner: OwnerKey,
    version: u64,
    created_at: u64,
    forgettable_at: u64,
    bytes: u64,
    job: Option<(String, String)>,
    json: Vec<u8>,
}

impl Row {
    /// # Errors
    /// When the record cannot be written as JSON.
    pub(super) fn of(record: &TaskRecord) -> Result<Self, StoreError> {
        let json = serde_json::to_vec(record).map_err(|error| StoreError::Unavailable(error.into()))?;
        Ok(Self {
            id: record.id.clone(),
            owner: record.owner,
            version: record.version,
            created_at: record.created_at,
            forgettable_at: record.forgettable_at(),
            bytes: record.bytes() as u64,
            job: record.job().map(|(provider, job)| (provider.to_owned(), job.to_owned())),
            json,
        })
    }

    fn stored(&self) -> (&[u8; 32], u64, u64, u64, u64, &[u8]) {
        (self.owner.as_bytes(), self.version, self.created_at, self.forgettable_at, self.bytes, &self.json)
    }
}

/// What there is, counted when the file was opened and kept true by every change.
#[derive(Debug, Default)]
pub(super) struct Totals {
    by_owner: HashMap<[u8; 32], usize>,
    tasks: usize,
    bytes: u64,
}

impl Totals {
    fn add(&mut self, owner: [u8; 32], bytes: u64) {
        *self.by_owner.entry(owner).or_default() += 1;
        self.tasks += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn remove(&mut self, owner: [u8; 32], bytes: u64) {
        if let Some(own) = self.by_owner.get_mut(&owner) {
            *own -= 1;
            if *own == 0 {
                self.by_owner.remove(&owner);
            }
        }
        self.tasks = self.tasks.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Counts what is in the file.
    pub(super) fn count(database: &Database) -> Result<Self, Error> {
        let transaction = database.begin_read()?;
        let mut totals = Self::default();
        for entry in transaction.open_table(TASKS)?.iter()? {
            let (_, stored) = entry?;
            let (owner, _, _, _, bytes, _) = stored.value();
            totals.add(*owner, bytes);
        }
        Ok(totals)
    }
}

/// What kind of file it is.
pub(super) enum Schema {
    /// There is nothing in it.
    None,
    /// Tasks, in this form.
    Known(u64),
    /// Somebody else's tables.
    Foreign,
}

pub(super) fn schema(database: &Database) -> Result<Schema, Error> {
    let transaction = database.begin_read()?;
    let mut tables = transaction.list_tables()?.peekable();
    if tables.peek().is_none() && transaction.list_multimap_tables()?.next().is_none() {
        return Ok(Schema::None);
    }
    if !tables.any(|table| table.name() == FORMS.name()) {
        return Ok(Schema::Foreign);
    }
    let form = transaction.open_table(FORMS)?.get(FORM_KEY)?;
    Ok(form.map_or(Schema::Foreign, |form| Schema::Known(form.value())))
}

/// Makes the tables where there are none, and fails what ran when the last process ended.
pub(super) fn take_over(database: &Database, now: u64) -> Result<(Found, Totals), Error> {
    let transaction = database.begin_write()?;
    let mut found = Found::default();
    transaction.open_table(FORMS)?.insert(FORM_KEY, FORM)?;
    {
        let mut tables = Tables::open(&transaction)?;
        let mut lost = Vec::new();
        for entry in tables.tasks.iter()? {
            let (id, stored) = entry?;
            found.tasks += 1;
            let Some(mut record) = read(id.value(), stored.value()) else {
                found.unreadable += 1;
                continue;
            };
            if record.state == TaskState::Working && record.apply(TaskEvent::Lost, now, None).is_ok() {
                lost.push(record);
            }
        }
        found.lost = lost.len();
        for record in lost {
            let row = Row::of(&record).map_err(|error| Error::Corrupted(error.to_string()))?;
            tables.tasks.insert(row.id.as_str(), row.stored())?;
        }
    }
    transaction.commit()?;
    Ok((found, Totals::count(database)?))
}

pub(super) fn load(database: &Database, owner: OwnerKey, id: &str) -> Result<Option<TaskRecord>, Error> {
    let tasks = database.begin_read()?.open_table(TASKS)?;
    let stored = tasks.get(id)?;
    Ok(stored.and_then(|stored| if stored.value().0 == owner.as_bytes() { read(id, stored.value()) } else { None }))
}

pub(super) fn list(
    database: &Database,
    owner: OwnerKey,
    after: Option<&(u64, TaskId)>,
    limit: usize,
) -> Result<Vec<TaskRecord>, Error> {
    let transaction = database.begin_read()?;
    let (owned, tasks) = (transaction.open_table(OWNED)?, transaction.open_table(TASKS)?);
    let from = match after {
        Some((created_at, id)) => Bound::Excluded((owner.as_bytes(), *created_at, id.as_str())),
        None => Bound::Included((owner.as_bytes(), 0, "")),
    };
    let mut records = Vec::new();
    for entry in owned.range::<(&[u8; 32], u64, &str)>((from, Bound::Unbounded))? {
        let (key, _) = entry?;
        let (of, _, id) = key.value();
        if records.len() >= limit || of != owner.as_bytes() {
            break;
        }
        if let Some(stored) = tasks.get(id)? {
            records.extend(read(id, stored.value()));
        }
    }
    Ok(records)
}

pub(super) fn of_job(database: &Database, provider: &str, job: &str) -> Result<Vec<TaskRecord>, Error> {
    let transaction = database.begin_read()?;
    let (jobs, tasks) = (transaction.open_table(JOBS)?, transaction.open_table(TASKS)?);
    let mut records = Vec::new();
    for entry in jobs.range((provider, job, "")..)? {
        let (key, ()) = {
            let (key, value) = entry?;
            (key, value.value())
        };
        let (of, standing, id) = key.value();
        if (of, standing) != (provider, job) {
            break;
        }
        if let Some(stored) = tasks.get(id)? {
            records.extend(read(id, stored.value()));
        }
    }
    Ok(records)
}

/// Makes changes in their order, all of them or none. `totals` are those before and, unless it fails, those after.
pub(super) fn make<'a>(
    database: &Database,
    changes: impl Iterator<Item = &'a Change>,
    totals: &mut Totals,
) -> Result<Vec<Result<Done, StoreError>>, Error> {
    let mut transaction = database.begin_write()?;
    // What makes a commit wait for the disk; it is the default, and too important to be left to one.
    transaction.set_durability(redb::Durability::Immediate)?;
    let mut tables = Tables::open(&transaction)?;
    let mut done = Vec::new();
    let mut is_changed = false;
    for change in changes {
        let made = tables.make(change, totals)?;
        is_changed |= matches!(made, Ok(Done::Stored | Done::Gone(1..)));
        done.push(made);
    }
    drop(tables);
    if is_changed {
        transaction.commit()?;
    } else {
        transaction.abort()?;
    }
    Ok(done)
}

/// The tables, to be changed.
struct Tables<'a> {
    tasks: Table<'a, &'static str, Stored>,
    owned: Table<'a, (&'static [u8; 32], u64, &'static str), ()>,
    jobs: Table<'a, (&'static str, &'static str, &'static str), ()>,
    job_of: Table<'a, &'static str, (&'static str, &'static str)>,
}

impl<'a> Tables<'a> {
    fn open(transaction: &'a WriteTransaction) -> Result<Self, Error> {
        Ok(Self {
            tasks: transaction.open_table(TASKS)?,
            owned: transaction.open_table(OWNED)?,
            jobs: transaction.open_table(JOBS)?,
            job_of: transaction.open_table(JOB_OF)?,
        })
    }

    fn make(&mut self, change: &Change, totals: &mut Totals) -> Result<Result<Done, StoreError>, Error> {
        match change {
            Change::Insert { row, room } => self.insert(row, *room, totals),
            Change::Save { row, expected } => self.save(row, *expected, totals).map(Ok),
            Change::Forget(owner) => self.forget(*owner, totals).map(Ok),
            Change::Sweep(now) => self.sweep(*now, totals).map(Ok),
        }
    }

    fn insert(&mut self, row: &Row, room: Room, totals: &mut Totals) -> Result<Result<Done, StoreError>, Error> {
        if self.tasks.get(row.id.as_str())?.is_some() {
            return Ok(Err(StoreError::taken()));
        }
        let own = totals.by_owner.get(row.owner.as_bytes()).copied().unwrap_or(0);
        if own >= room.per_owner {
            return Ok(Err(StoreError::OwnerFull));
        }
        if totals.tasks >= room.total || totals.bytes.saturating_add(row.bytes) > room.bytes as u64 {
            return Ok(Err(StoreError::Full));
        }
        self.tasks.insert(row.id.as_str(), row.stored())?;
        self.owned.insert((row.owner.as_bytes(), row.created_at, row.id.as_str()), ())?;
        self.stands_in(row.id.as_str(), row.job.as_ref())?;
        totals.add(*row.owner.as_bytes(), row.bytes);
        Ok(Ok(Done::Stored))
    }

    fn save(&mut self, row: &Row, expected: u64, totals: &mut Totals) -> Result<Done, Error> {
        let before = {
            let Some(stored) = self.tasks.get(row.id.as_str())? else { return Ok(Done::Conflict) };
            let (owner, version, _, _, bytes, _) = stored.value();
            if version != expected || owner != row.owner.as_bytes() {
                return Ok(Done::Conflict);
            }
            bytes
        };
        self.tasks.insert(row.id.as_str(), row.stored())?;
        self.stands_in(row.id.as_str(), row.job.as_ref())?;
        totals.bytes = totals.bytes.saturating_sub(before).saturating_add(row.bytes);
        Ok(Done::Stored)
    }

    /// Notes which job a task stands in from now on, if in any.
    fn stands_in(&mut self, id: &str, now: Option<&(String, String)>) -> Result<(), Error> {
        if let Some(before) = self.job_of.remove(id)? {
            let (provider, job) = before.value();
            self.jobs.remove((provider, job, id))?;
        }
        if let Some((provider, job)) = now {
            self.job_of.insert(id, (provider.as_str(), job.as_str()))?;
            self.jobs.insert((provider.as_str(), job.as_str(), id), ())?;
        }
        Ok(())
    }

    fn forget(&mut self, owner: OwnerKey, totals: &mut Totals) -> Result<Done, Error> {
        let owner = owner.as_bytes();
        let mut over = Vec::new();
        for entry in self.owned.range::<(&[u8; 32], u64, &str)>((owner, 0, "")..)? {
            let (key, _) = entry?;
            let (of, created_at, id) = key.value();
            if of != owner {
                break;
            }
            over.push((id.to_owned(), *of, created_at));
        }
        self.remove(over, totals)
    }

    fn sweep(&mut self, now: u64, totals: &mut Totals) -> Result<Done, Error> {
        let mut over = Vec::new();
        for entry in self.tasks.iter()? {
            let (id, stored) = entry?;
            let (owner, _, created_at, forgettable_at, ..) = stored.value();
            if now >= forgettable_at {
                over.push((id.value().to_owned(), *owner, created_at));
            }
        }
        self.remove(over, totals)
    }

    fn remove(&mut self, over: Vec<(String, [u8; 32], u64)>, totals: &mut Totals) -> Result<Done, Error> {
        let number = over.len();
        for (id, owner, created_at) in over {
            self.owned.remove((&owner, created_at, &*id))?;
            if let Some(stored) = self.tasks.remove(&*id)? {
                totals.remove(owner, stored.value().4);
            }
            self.stands_in(&id, None)?;
        }
        Ok(Done::Gone(number))
    }
}

/// The record, if this version can read it. Neither it nor its id is told: they are secrets.
fn read(id: &str, stored: (&[u8; 32], u64, u64, u64, u64, &[u8])) -> Option<TaskRecord> {
    let (owner, version, created_at, _, _, json) = stored;
    match serde_json::from_slice::<TaskRecord>(json) {
        Ok(record) => {
            let is_whole = record.id.as_str() == id
                && record.owner.as_bytes() == owner
                && record.version == version
                && record.created_at == created_at;
            if !is_whole {
                tracing::error!(created_at, "a stored task is not the one it stands under, and is passed over");
            }
            is_whole.then_some(record)
        }
        Err(error) => {
            tracing::error!(%error, created_at, "a stored task cannot be read, and is passed over");
            None
        }
    }
}
