//! The file itself: what is in it after it was opened anew, and what is refused.

use mcp_core::Principal;
use mcp_wire::RawJson;
use redb::{ReadableDatabase as _, ReadableTable as _, TableDefinition};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::record::{OpenQuestion, Parked, TaskState};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const AMPLE: Room = Room::new(100, 100, 1 << 20);
const LATER: u64 = 4_000_000_000_000;
type Stored = (&'static [u8; 32], u64, u64, u64, u64, &'static [u8]);
/// As in `tables`: what is written here is what a file of form 1 holds.
const TASKS: TableDefinition<'_, &str, Stored> = TableDefinition::new("tasks");
const FORMS: TableDefinition<'_, &str, u64> = TableDefinition::new("mcp-tasks");

fn owner(name: &str) -> OwnerKey {
    Principal::new("test", "", name).key()
}

fn record(id: &str, state: TaskState) -> TaskRecord {
    TaskRecord {
        id: id.into(),
        owner: owner("ann"),
        version: 1,
        created_at: 1_790_000_000_000,
        updated_at: 1_790_000_000_000,
        ttl: LATER,
        poll_interval: 1_000,
        tool: "tool".into(),
        arguments: json!({ "text": "hello" }).into(),
        issued: Vec::new(),
        state,
    }
}

fn parked() -> TaskState {
    let open = OpenQuestion {
        key: "name".into(),
        asked_as: None,
        method: "elicitation/create".into(),
        params: RawJson::EMPTY_OBJECT,
    };
    TaskState::InputRequired(Box::new(Parked {
        memory: RawJson::EMPTY_OBJECT,
        open: vec![open],
        answers: vec![("age".into(), RawJson::NULL)],
    }))
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn refused(path: &Path) -> OpenError {
    DurableTaskStore::open(path).unwrap_err()
}

#[tokio::test]
async fn what_parked_or_ended_is_as_it_was_after_opening_anew_and_what_ran_has_failed() -> Outcome {
    let folder = folder();
    let path = folder.path().join("tasks.redb");
    let kept = [
        record("task_1", parked()),
        record("task_2", TaskState::Elsewhere { provider: "queue".into(), job: "7".into() }),
        record("task_3", TaskState::Completed { result: json!({ "content": [] }).into(), is_error: false }),
        record("task_4", TaskState::Cancelled),
    ];
    let ran = record("task_5", TaskState::Working);
    let store = DurableTaskStore::open(&path)?;
    assert_eq!(store.found(), Found::default());
    for record in kept.iter().chain([&ran]) {
        store.insert(record, AMPLE).await?;
    }
    drop(store);

    let store = DurableTaskStore::open(&path)?;
    assert_eq!(store.found(), Found { tasks: 5, lost: 1, unreadable: 0 });
    for record in &kept {
        assert_eq!(store.load(record.owner, record.id.as_str()).await?.as_ref(), Some(record));
    }
    let lost = store.load(ran.owner, "task_5").await?.ok_or("the task that ran is gone")?;
    let TaskState::Failed { error } = &lost.state else { panic!("{:?}", lost.state) };
    assert_eq!((&*error.message, lost.version), ("the server ended while the task ran", 2));
    assert!(lost.updated_at > ran.updated_at && lost.arguments == RawJson::EMPTY_OBJECT);
    // A worker that has not heard of it comes too late.
    assert_eq!(store.save(&TaskRecord { version: 2, ..ran }, 1).await?, Saved::Conflict);
    drop(store);
    assert_eq!(DurableTaskStore::open(&path)?.found(), Found { tasks: 5, lost: 0, unreadable: 0 });
    Ok(())
}

#[tokio::test]
async fn room_is_counted_over_an_opening() -> Outcome {
    let folder = folder();
    let path = folder.path().join("tasks.redb");
    let store = DurableTaskStore::open(&path)?;
    let (one, two) = (record("task_1", parked()), record("task_2", parked()));
    store.insert(&one, AMPLE).await?;
    drop(store);
    let store = DurableTaskStore::open(&path)?;
    let bytes = one.bytes() + two.bytes();
    assert!(matches!(store.insert(&two, Room::new(1, 100, bytes)).await, Err(StoreError::OwnerFull)));
    assert!(matches!(store.insert(&two, Room::new(100, 1, bytes)).await, Err(StoreError::Full)));
    assert!(matches!(store.insert(&two, Room::new(100, 100, bytes - 1)).await, Err(StoreError::Full)));
    store.insert(&two, Room::new(2, 2, bytes)).await?;
    Ok(())
}

#[test]
fn a_file_of_something_else_is_refused_and_left_as_it_is() {
    let folder = folder();
    for content in ["{}", "SQLite format 3\0", "red", "r"] {
        let path = folder.path().join("other");
        std::fs::write(&path, content).unwrap();
        assert!(matches!(refused(&path), OpenError::Foreign), "{content}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
    assert!(matches!(refused(folder.path()), OpenError::Storage(_)), "a folder is no file");
    assert!(matches!(refused(&folder.path().join("none/tasks.redb")), OpenError::Storage(_)));
}

#[test]
fn a_database_of_somebody_else_is_refused() -> Outcome {
    let folder = folder();
    let path = folder.path().join("other.redb");
    let database = Database::create(&path)?;
    let transaction = database.begin_write()?;
    transaction.open_table(TableDefinition::<&str, &str>::new("tasks"))?.insert("a", "b")?;
    transaction.commit()?;
    drop(database);
    assert!(matches!(refused(&path), OpenError::Foreign));
    let database = Database::open(&path)?;
    let tables: Vec<_> = database.begin_read()?.list_tables()?.collect();
    assert_eq!(tables.len(), 1, "nothing was added");
    Ok(())
}

#[test]
fn a_file_of_a_newer_form_is_refused() -> Outcome {
    let folder = folder();
    let path = folder.path().join("tasks.redb");
    drop(DurableTaskStore::open(&path)?);
    write(&path, |transaction| {
        transaction.open_table(FORMS)?.insert("form", 2)?;
        Ok(())
    })?;
    assert!(matches!(refused(&path), OpenError::Newer { found: 2, known: 1 }));
    Ok(())
}

#[test]
fn a_damaged_file_is_an_error_and_no_panic() -> Outcome {
    let folder = folder();
    let path = folder.path().join("tasks.redb");
    drop(DurableTaskStore::open(&path)?);
    let whole = std::fs::read(&path)?;
    std::fs::write(&path, whole.get(..whole.len() / 2).unwrap_or_default())?;
    assert!(matches!(refused(&path), OpenError::Damaged(_) | OpenError::Storage(_)));
    let mut changed = whole;
    // Behind the header, which has a spare half.
    for byte in changed.iter_mut().skip(512) {
        *byte ^= 0x55;
    }
    std::fs::write(&path, changed)?;
    assert!(matches!(refused(&path), OpenError::Damaged(_) | OpenError::Storage(_)));
    Ok(())
}

#[tokio::test]
async fn a_file_is_open_once_at_a_time() -> Outcome {
    let folder = folder();
    let path = folder.path().join("tasks.redb");
    let store = DurableTaskStore::open(&path)?;
    assert!(matches!(refused(&path), OpenError::InUse));
    store.insert(&record("task_1", parked()), AMPLE).await?;
    drop(store);
    assert_eq!(DurableTaskStore::open(&path)?.found().tasks, 1);
    Ok(())
}

#[cfg(unix)]
#[test]
fn only_its_user_reads_the_file() -> Outcome {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let path = folder.path().join("tasks.redb");
    drop(DurableTaskStore::open(&path)?);
    assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
    Ok(())
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_passed_over_and_goes_when_its_time_is_over() -> Outcome {
    let folder = folder();
    let path = folder.path().join("tasks.redb");
    let store = DurableTaskStore::open(&path)?;
    let records: Vec<_> = (0..4).map(|number| record(&format!("task_{number}"), parked())).collect();
    for record in &records {
        store.insert(record, AMPLE).await?;
    }
    drop(store);
    // A state of a later version, no JSON at all, and the record of another task.
    let paused = serde_json::to_string(&records[0])?.replace("input_required", "paused");
    let contents = [paused.into_bytes(), vec![0xff, 0], serde_json::to_vec(&records[3])?];
    write(&path, |transaction| {
        let mut tasks = transaction.open_table(TASKS)?;
        for (record, json) in records.iter().zip(&contents) {
            let row = tasks.get(record.id.as_str())?.map(|row| {
                let (owner, version, created_at, forgettable_at, bytes, _) = row.value();
                (*owner, version, created_at, forgettable_at, bytes)
            });
            let (owner, version, created_at, forgettable_at, bytes) = row.ok_or("a row is missing")?;
            tasks.insert(record.id.as_str(), (&owner, version, created_at, forgettable_at, bytes, &**json))?;
        }
        Ok(())
    })?;

    let store = DurableTaskStore::open(&path)?;
    assert_eq!(store.found(), Found { tasks: 4, lost: 0, unreadable: 3 });
    for record in &records[..3] {
        assert_eq!(store.load(record.owner, record.id.as_str()).await?, None);
    }
    let listed = store.list(owner("ann"), None, 1).await?;
    assert_eq!(listed, records[3..], "a page is filled with what can be read");
    let full = store.insert(&record("task_5", parked()), Room::new(4, 100, 1 << 20)).await;
    assert!(matches!(full, Err(StoreError::OwnerFull)), "what cannot be read takes its room");
    assert_eq!(store.sweep(records[0].forgettable_at()).await?, 4);
    Ok(())
}

#[tokio::test]
async fn changes_that_wait_together_are_all_answered() -> Outcome {
    let folder = folder();
    let store = Arc::new(DurableTaskStore::open(folder.path().join("tasks.redb"))?);
    let mut running = tokio::task::JoinSet::new();
    for number in 0..1_000_u32 {
        let (store, record) = (Arc::clone(&store), record(&format!("task_{number}"), TaskState::Cancelled));
        #[expect(clippy::disallowed_methods, reason = "ends with the set, which the test owns")]
        running.spawn(async move { store.insert(&record, Room::new(600, 1_000, 1 << 20)).await });
    }
    let (mut inserted, mut refused) = (0, 0);
    while let Some(outcome) = running.join_next().await {
        match outcome? {
            Ok(()) => inserted += 1,
            Err(StoreError::OwnerFull) => refused += 1,
            Err(error) => return Err(error.into()),
        }
    }
    assert_eq!((inserted, refused), (600, 400));
    assert_eq!(store.list(owner("ann"), None, 1_000).await?.len(), 600);
    Ok(())
}

/// Changes a file behind the store's back.
fn write(path: &Path, change: impl FnOnce(&redb::WriteTransaction) -> Outcome) -> Outcome {
    let database = Database::open(path)?;
    let transaction = database.begin_write()?;
    change(&transaction)?;
    transaction.commit()?;
    Ok(())
}
