//! That of several changes of one version exactly one is kept.
//!
//! Why here: it is all that keeps a late worker from bringing an ended task back to life.
//! Invariants: what is kept is the whole change of the one who was told so.

use std::sync::Arc;

use super::records::{is_found, is_missing};
use super::samples::{AMPLE, THEN, changed, owner, record};
use super::{Checked, TestError, abandoned, done, ensure, together};
use crate::record::{TaskRecord, TaskState};
use crate::store::{Saved, TaskStore};

pub(super) async fn compared<S: TaskStore>(store: Arc<S>) -> Checked {
    let first = record(owner("ann"), "task_1", THEN);
    let saved = done("save", store.save(&first, 0).await)?;
    ensure(saved == Saved::Conflict, || "a task was replaced that was not there".to_owned())?;
    is_missing(&*store, &first).await?;
    done("insert", store.insert(&first, AMPLE).await)?;
    let ended = TaskRecord { state: TaskState::Cancelled, ..changed(&first, 2) };
    ensure(done("save", store.save(&ended, 1).await)? == Saved::Stored, || "the task was not replaced".to_owned())?;
    for expected in [0, 1, 3, u64::MAX] {
        let late = TaskRecord { version: expected.wrapping_add(1), ..changed(&first, 3) };
        ensure(done("save", store.save(&late, expected).await)? == Saved::Conflict, || {
            format!("version 2 was replaced by who expected version {expected}")
        })?;
        is_found(&*store, &ended).await?;
    }
    let next = changed(&ended, 4);
    ensure(done("save", store.save(&next, 2).await)? == Saved::Stored, || "the task was not replaced".to_owned())?;
    is_found(&*store, &next).await
}

pub(super) async fn contested<S: TaskStore>(store: Arc<S>) -> Checked {
    const WRITERS: u64 = 8;
    let mut current = record(owner("ann"), "task_1", THEN);
    done("insert", store.insert(&current, AMPLE).await)?;
    for round in 0..16 {
        let writers = (0..WRITERS).map(|mark| {
            let (store, next, expected) = (Arc::clone(&store), changed(&current, mark), current.version);
            async move { (store.save(&next, expected).await, next) }
        });
        let mut kept = Vec::new();
        for (saved, next) in together(writers).await? {
            if done("save", saved)? == Saved::Stored {
                kept.push(next);
            }
        }
        let number = kept.len();
        let Some(next) = kept.pop().filter(|_| number == 1) else {
            return Err(TestError::new(format!(
                "of {WRITERS} changes of one version {number} were kept, in round {round}"
            )));
        };
        is_found(&*store, &next).await?;
        current = next;
    }
    Ok(())
}

pub(super) async fn dropped<S: TaskStore>(store: Arc<S>) -> Checked {
    let first = record(owner("ann"), "task_1", THEN);
    done("insert", store.insert(&first, AMPLE).await)?;
    for round in 0..8 {
        let before = found(&*store, &first).await?;
        let dropped = changed(&before, 1_000 + round);
        abandoned(store.save(&dropped, before.version)).await;
        // The dropped change may still come in between, but only once.
        let kept = async {
            for _ in 0..2 {
                let current = found(&*store, &first).await?;
                ensure(current == before || current == dropped, || "a dropped change was made in part".to_owned())?;
                let next = changed(&current, round);
                if done("save", store.save(&next, current.version).await)? == Saved::Stored {
                    return Ok(next);
                }
            }
            Err(TestError::new("nothing can be changed after a dropped change"))
        };
        is_found(&*store, &kept.await?).await?;
    }
    Ok(())
}

async fn found<S: TaskStore>(store: &S, record: &TaskRecord) -> Result<TaskRecord, TestError> {
    let found = done("load", store.load(record.owner, record.id.as_str()).await)?;
    found.ok_or_else(|| TestError::new("a dropped change removed the task"))
}
