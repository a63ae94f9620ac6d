//! That a list is in order, and complete, page by page.
//!
//! Why here: a position in a list is handed to clients, who come back with it when the list is another.
//! Invariants: numbers are compared as numbers and ids as bytes, whatever a database does with text.

use std::sync::Arc;

use super::samples::{AMPLE, changed, owner, record};
use super::{Checked, TestError, done, ensure};
use crate::record::{TaskId, TaskRecord};
use crate::store::TaskStore;

/// In order. Two numbers that are one as floating point, numbers that are in another order as text, and ids whose order
/// depends on a language.
const SORTED: [(u64, &str); 12] = [
    (0, "task_z"),
    (9, "task_9"),
    (10, "task_1"),
    (99, "task_0"),
    (100, "task_-"),
    (100, "task_2"),
    (100, "task_B"),
    (100, "task_Ba"),
    (100, "task__"),
    (100, "task_a"),
    (9_007_199_254_740_992, "task_y"),
    (9_007_199_254_740_993, "task_x"),
];

async fn filled<S: TaskStore>(store: &S) -> Result<Vec<TaskRecord>, TestError> {
    let ann = owner("ann");
    let sorted: Vec<TaskRecord> = SORTED.iter().map(|(created_at, id)| record(ann, id, *created_at)).collect();
    // Seven is prime to their number, so this is all of them, in no order.
    for index in (0..sorted.len()).map(|index| index * 7 % sorted.len()) {
        if let Some(record) = sorted.get(index) {
            done("insert", store.insert(record, AMPLE).await)?;
        }
        let other = record(owner("bob"), &format!("other_{index}"), 100);
        done("insert", store.insert(&other, AMPLE).await)?;
    }
    Ok(sorted)
}

pub(super) async fn ordered<S: TaskStore>(store: Arc<S>) -> Checked {
    let sorted = filled(&*store).await?;
    let listed = done("list", store.list(owner("ann"), None, 100).await)?;
    same(&listed, &sorted)?;
    let none = done("list", store.list(owner("nobody"), None, 100).await)?;
    ensure(none.is_empty(), || "somebody without tasks has some".to_owned())
}

pub(super) async fn paged<S: TaskStore>(store: Arc<S>) -> Checked {
    let ann = owner("ann");
    let sorted = filled(&*store).await?;
    for limit in [1, 2, 5, 7, 11, 12, 13] {
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let page = done("list", store.list(ann, after, limit).await)?;
            ensure(page.len() <= limit, || format!("a page of {limit} holds {}", page.len()))?;
            let Some(last) = page.last() else { break };
            after = Some((last.created_at, last.id.clone()));
            seen.extend(page);
            ensure(seen.len() <= sorted.len(), || format!("pages of {limit} have no end"))?;
        }
        same(&seen, &sorted)?;
    }
    // A position need not be that of a task, and need not be one of this owner.
    for (after, rest) in
        [((100, "task_C"), 4), ((100, "other_3"), 8), ((99, "zzz"), 8), ((11, ""), 9), ((u64::MAX, ""), 0)]
    {
        let page = done("list", store.list(ann, Some((after.0, TaskId::from(after.1))), 100).await)?;
        same(&page, sorted.get(sorted.len() - rest..).unwrap_or_default())?;
    }
    Ok(())
}

pub(super) async fn changing<S: TaskStore>(store: Arc<S>) -> Checked {
    let ann = owner("ann");
    let (mut sorted, mut seen) = (filled(&*store).await?, Vec::new());
    let mut after = None;
    for round in 0..SORTED.len() {
        let page = done("list", store.list(ann, after, 2).await)?;
        let Some(last) = page.last() else { break };
        after = Some((last.created_at, last.id.clone()));
        seen.extend(page.iter().map(|record| record.id.clone()));
        // Everything changes, what was seen and what was not, and a task comes where the list has been.
        for record in &mut sorted {
            let next = changed(record, 5_000);
            done("save", store.save(&next, record.version).await)?;
            *record = next;
        }
        done("insert", store.insert(&record(ann, &format!("early_{round}"), 0), AMPLE).await)?;
        done("forget", store.forget(owner("bob")).await)?;
    }
    let wanted: Vec<TaskId> = sorted.iter().map(|record| record.id.clone()).collect();
    ensure(seen == wanted, || format!("{seen:?} were listed instead of {wanted:?}"))
}

fn same(listed: &[TaskRecord], wanted: &[TaskRecord]) -> Checked {
    let names = |records: &[TaskRecord]| -> Vec<_> {
        records.iter().map(|record| (record.created_at, record.id.as_str().to_owned())).collect()
    };
    ensure(listed == wanted, || format!("{:?} were listed instead of {:?}", names(listed), names(wanted)))
}
