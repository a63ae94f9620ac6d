//! The thread that makes changes, as many with one flush as wait for it.
//!
//! Why here: a flush takes as long for a hundred changes as for one, and a blocking thread must not be a runtime's.
//! Invariants: a change is answered after its flush; when one of a batch fails, none of it was made; the thread ends with
//! its queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use mcp_core::OwnerKey;
use redb::Database;
use tokio::sync::{mpsc, oneshot};

use super::tables::{self, Row, Totals};
use crate::store::{Room, StoreError};

/// A change, and who waits for it.
pub(super) struct Work {
    pub(super) change: Change,
    pub(super) reply: oneshot::Sender<Result<Done, StoreError>>,
}

/// What is to be changed.
pub(super) enum Change {
    Insert { row: Row, room: Room },
    Save { row: Row, expected: u64 },
    Forget(OwnerKey),
    Sweep(u64),
}

/// What was changed.
#[derive(Debug)]
pub(super) enum Done {
    Stored,
    Conflict,
    /// So many tasks were removed.
    Gone(usize),
}

/// Changes that share a flush, at most.
const BATCH: usize = 128;

/// Starts the thread. It ends when nobody can send changes any more.
pub(super) fn start(
    database: Arc<Database>,
    queue: mpsc::Receiver<Work>,
    totals: Totals,
) -> std::io::Result<JoinHandle<()>> {
    Builder::new().name("mcp-tasks writer".to_owned()).spawn(move || run(&database, queue, Some(totals)))
}

fn run(database: &Database, mut queue: mpsc::Receiver<Work>, mut totals: Option<Totals>) {
    while let Some(first) = queue.blocking_recv() {
        let mut batch = vec![first];
        while batch.len() < BATCH
            && let Ok(next) = queue.try_recv()
        {
            batch.push(next);
        }
        // What nobody waits for any more is not begun.
        batch.retain(|work| !work.reply.is_closed());
        let done = catch_unwind(AssertUnwindSafe(|| make(database, &batch, &mut totals)));
        let done = done.unwrap_or_else(|_| Err("a change panicked".into()));
        match done {
            Ok(done) => {
                for (work, done) in batch.into_iter().zip(done) {
                    // Whoever has gone meanwhile finds the change made.
                    let _ = work.reply.send(done);
                }
            }
            Err(error) => {
                tracing::error!(%error, changes = batch.len(), "changes of tasks could not be stored");
                totals = None;
                let error: Arc<dyn std::error::Error + Send + Sync> = error.into();
                for work in batch {
                    let _ = work.reply.send(Err(StoreError::Unavailable(Box::new(Arc::clone(&error)))));
                }
            }
        }
    }
}

type Made = Result<Vec<Result<Done, StoreError>>, Box<dyn std::error::Error + Send + Sync>>;

/// After a failure nobody knows what the totals are, so they are counted anew.
fn make(database: &Database, batch: &[Work], totals: &mut Option<Totals>) -> Made {
    let mut counted = match totals.take() {
        Some(totals) => totals,
        None => Totals::count(database)?,
    };
    let done = tables::make(database, batch.iter().map(|work| &work.change), &mut counted)?;
    *totals = Some(counted);
    Ok(done)
}
