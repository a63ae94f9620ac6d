//! What the tests of a store of one's own need: everything that a [`TaskStore`] promises, as one check.
//!
//! Why here: what is wrong with a store shows under load, after a crash or to somebody else's eyes, long after it was written.
//! This module comes with the feature `testing`, which adds no dependency; put it into `[dev-dependencies]`:
//!
//! ```toml
//! [dev-dependencies]
//! mcp-tasks = { path = "../mcp/crates/mcp-tasks", features = ["testing"] }
//! ```
//!
//! Invariants: nothing here panics or waits on a clock; a failure begins with the sentence that does not hold.
//!
//! ```
//! use mcp_tasks::MemoryTaskStore;
//! use mcp_tasks::testing::{TestError, store_contract};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), TestError> {
//! store_contract(async || MemoryTaskStore::new()).await
//! # }
//! ```

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

pub use mcp_core::testing::TestError;

use crate::store::TaskStore;

mod jobs;
mod lists;
mod records;
mod room;
mod samples;
mod versions;

type Checked = Result<(), TestError>;

/// Holds a store to what [`TaskStore`] promises. `make` makes an empty one, a few dozen times.
///
/// Some checks let many changes meet. On a runtime with several threads they meet in earnest; on one with a single thread
/// they do so wherever the store awaits. Nothing is checked of crashes: that what was acknowledged outlives them is for the
/// store's own tests.
///
/// # Errors
/// The first promise that does not hold, and what was seen instead.
pub async fn store_contract<S: TaskStore>(make: impl AsyncFn() -> S) -> Checked {
    let store = async || Arc::new(make().await);
    promise("what was inserted is found, as it was", records::whole(store().await)).await?;
    promise("ids that differ at all are different ids", records::odd_ids(store().await)).await?;
    promise("a task is there for its owner and for nobody else", records::isolated(store().await)).await?;
    promise("an id is given to one task", records::taken(store().await)).await?;
    promise("a task that was forgotten is gone, and no other", records::forgotten(store().await)).await?;
    promise("a sweep removes what is forgettable, and nothing else", records::swept(store().await)).await?;
    promise("an insertion is refused when there is no room", room::bounded(store().await)).await?;
    promise("bytes are those of the tasks as they are now", room::weighed(store().await)).await?;
    promise("there is room again when tasks are gone", room::regained(store().await)).await?;
    for kind in room::KINDS {
        promise("checks of the room and the insertion are one step", room::contested(store().await, kind)).await?;
    }
    promise("a task is replaced if its version is the expected one", versions::compared(store().await)).await?;
    promise("comparing and replacing are one step", versions::contested(store().await)).await?;
    promise("a change may be dropped half-way", versions::dropped(store().await)).await?;
    promise("an insertion may be dropped half-way", room::dropped(store().await)).await?;
    promise("tasks are listed by creation and id", lists::ordered(store().await)).await?;
    promise("a page follows what it comes after", lists::paged(store().await)).await?;
    promise("what stays is listed once, whatever changes meanwhile", lists::changing(store().await)).await?;
    promise("the tasks of a job are those that stand in it", jobs::found(store().await)).await
}

async fn promise(sentence: &str, check: impl Future<Output = Checked>) -> Checked {
    check.await.map_err(|error| TestError::new(format!("{sentence}: {error}")))
}

/// An error unless it holds.
fn ensure(holds: bool, text: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(TestError::new(text())) }
}

/// What a method did that had no reason to fail.
fn done<T>(what: &str, outcome: Result<T, crate::StoreError>) -> Result<T, TestError> {
    outcome.map_err(|error| TestError::new(format!("{what} failed: {error}")))
}

/// Lets futures run beside each other; what they come to, in any order.
async fn together<T: Send + 'static>(
    futures: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Result<Vec<T>, TestError> {
    let mut running = tokio::task::JoinSet::new();
    for future in futures {
        #[expect(clippy::disallowed_methods, reason = "ends with the set, which this function owns")]
        running.spawn(future);
    }
    let mut outcomes = Vec::new();
    while let Some(outcome) = running.join_next().await {
        outcomes.push(outcome.map_err(|error| TestError::new(format!("a method ended badly: {error}")))?);
    }
    Ok(outcomes)
}

/// Polls a future once and drops it.
async fn abandoned(future: impl Future) {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _ = future.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}
