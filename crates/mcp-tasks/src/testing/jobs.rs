//! That the tasks of a job are found by it, as long as they stand in it.
//!
//! Why here: a notice of a job that finds no task is a client that waits for nothing.
//! Invariants: every way into a job and out of it is tried.

use std::sync::Arc;

use mcp_core::OwnerKey;

use super::samples::{AMPLE, THEN, changed, owner, record};
use super::{Checked, done, ensure};
use crate::record::{TaskRecord, TaskState};
use crate::store::{Saved, TaskStore};

/// The job that is looked for, and others that a careless store takes for it.
const JOBS: [(&str, &str); 7] = [
    ("queue", "7"),
    ("queue", "7 "),
    ("queue", "77"),
    ("queue7", ""),
    ("", "queue7"),
    ("QUEUE", "7"),
    ("queue", "\u{0}7"),
];

fn at(owner: OwnerKey, id: &str, (provider, job): (&str, &str)) -> TaskRecord {
    let state = TaskState::Elsewhere { provider: provider.into(), job: job.into() };
    TaskRecord { state, ..record(owner, id, THEN) }
}

pub(super) async fn found<S: TaskStore>(store: Arc<S>) -> Checked {
    let (ann, bob) = (owner("ann"), owner("bob"));
    for (number, job) in JOBS.into_iter().enumerate() {
        done("insert", store.insert(&at(ann, &format!("task_{number}"), job), AMPLE).await)?;
    }
    for (number, job) in JOBS.into_iter().enumerate() {
        stand(&*store, job, &[&format!("task_{number}")]).await?;
    }
    let [job, ..] = JOBS;
    stand(&*store, ("queue", "8"), &[]).await?;
    // One job may be the task of several callers.
    done("insert", store.insert(&at(bob, "task_b", job), AMPLE).await)?;
    stand(&*store, job, &["task_0", "task_b"]).await?;
    // In by a change, out by another.
    let late = record(ann, "task_late", THEN);
    done("insert", store.insert(&late, AMPLE).await)?;
    let standing = TaskRecord { version: late.version + 1, ..at(ann, "task_late", job) };
    saved(&*store, &standing, late.version).await?;
    stand(&*store, job, &["task_0", "task_b", "task_late"]).await?;
    let touched = changed(&standing, 9);
    saved(&*store, &touched, standing.version).await?;
    stand(&*store, job, &["task_0", "task_b", "task_late"]).await?;
    let ended = TaskRecord { state: TaskState::Cancelled, ..changed(&touched, 10) };
    saved(&*store, &ended, touched.version).await?;
    stand(&*store, job, &["task_0", "task_b"]).await?;
    // Gone with its owner, and gone with its time.
    done("forget", store.forget(bob).await)?;
    stand(&*store, job, &["task_0"]).await?;
    done("sweep", store.sweep(ended.forgettable_at()).await)?;
    for job in JOBS {
        stand(&*store, job, &[]).await?;
    }
    Ok(())
}

async fn saved<S: TaskStore>(store: &S, record: &TaskRecord, expected: u64) -> Checked {
    let saved = done("save", store.save(record, expected).await)?;
    ensure(saved == Saved::Stored, || format!("{} was not replaced", record.id))
}

async fn stand<S: TaskStore>(store: &S, (provider, job): (&str, &str), wanted: &[&str]) -> Checked {
    let records = done("of_job", store.of_job(provider, job).await)?;
    let mut ids: Vec<&str> = records.iter().map(|record| record.id.as_str()).collect();
    ids.sort_unstable();
    ensure(ids == wanted, || format!("{ids:?} stand in {job:?} of {provider:?} instead of {wanted:?}"))?;
    for record in &records {
        ensure(record.job() == Some((provider, job)), || format!("{} stands in another job", record.id))?;
    }
    Ok(())
}
