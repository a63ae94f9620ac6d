//! That tasks are found by their owners, as they are, until they are gone.
//!
//! Why here: what one caller sees of another's tasks is decided in the store and nowhere else.
//! Invariants: every way to a task is tried by somebody who must not have it.

use std::sync::Arc;

use super::samples::{AMPLE, THEN, changed, of_every_state, owner, record};
use super::{Checked, TestError, done, ensure};
use crate::record::{TaskId, TaskRecord};
use crate::store::{Saved, StoreError, TaskStore};

/// Ids that a careless store takes for each other.
const ODD: [&str; 16] = [
    "a",
    "A",
    "a ",
    " a",
    "aa",
    "a%",
    "a_",
    "%61",
    "a/../b",
    "'; drop table tasks; --",
    "\"}{[",
    "\u{e4}",
    "a\u{308}",
    "\u{1F980}",
    "task_-",
    "task__",
];

pub(super) async fn whole<S: TaskStore>(store: Arc<S>) -> Checked {
    let ann = owner("ann");
    for wanted in of_every_state(ann) {
        done("insert", store.insert(&wanted, AMPLE).await)?;
        is_found(&*store, &wanted).await?;
        let next = changed(&wanted, 2_000);
        ensure(done("save", store.save(&next, wanted.version).await)? == Saved::Stored, || {
            format!("{} was not replaced", wanted.id)
        })?;
        is_found(&*store, &next).await?;
    }
    Ok(())
}

pub(super) async fn odd_ids<S: TaskStore>(store: Arc<S>) -> Checked {
    let ann = owner("ann");
    let long = "l".repeat(1_000);
    let records: Vec<TaskRecord> = ODD.iter().chain([&long.as_str()]).map(|id| record(ann, id, THEN)).collect();
    for wanted in &records {
        is_missing(&*store, wanted).await?;
        done("insert", store.insert(wanted, AMPLE).await)?;
    }
    for wanted in &records {
        is_found(&*store, wanted).await?;
    }
    // Clients can ask for anything.
    for unknown in ["", "b", "\u{0}", "a\u{0}", "%", "_", "task_%", "\u{FFFD}", &"a".repeat(100_000)] {
        is_missing(&*store, &record(ann, unknown, THEN)).await?;
    }
    Ok(())
}

pub(super) async fn taken<S: TaskStore>(store: Arc<S>) -> Checked {
    let (ann, bob) = (owner("ann"), owner("bob"));
    let first = record(ann, "task_1", THEN);
    done("insert", store.insert(&first, AMPLE).await)?;
    for second in [record(bob, "task_1", THEN + 1), changed(&first, 7)] {
        match store.insert(&second, AMPLE).await {
            Err(StoreError::Unavailable(_)) => {}
            Err(error) => return Err(TestError::new(format!("a second task with the id was refused because {error}"))),
            Ok(()) => return Err(TestError::new("a second task with the id was inserted")),
        }
        is_found(&*store, &first).await?;
        is_missing(&*store, &record(bob, "task_1", THEN)).await?;
    }
    let listed = done("list", store.list(bob, None, 10).await)?;
    ensure(listed.is_empty(), || "the owner of a refused task has one".to_owned())
}

pub(super) async fn isolated<S: TaskStore>(store: Arc<S>) -> Checked {
    let (ann, bob) = (owner("ann"), owner("bob"));
    let of_ann = record(ann, "task_1", THEN);
    done("insert", store.insert(&of_ann, AMPLE).await)?;
    done("insert", store.insert(&record(bob, "task_2", THEN), AMPLE).await)?;
    let wanted = TaskRecord { owner: bob, ..of_ann.clone() };
    is_missing(&*store, &wanted).await?;
    let stolen = changed(&wanted, 9);
    ensure(done("save", store.save(&stolen, of_ann.version).await)? == Saved::Conflict, || {
        "somebody else's task was replaced".to_owned()
    })?;
    let after = Some((THEN, TaskId::from("task_0")));
    for after in [None, after] {
        let listed = done("list", store.list(bob, after, 10).await)?;
        ensure(listed.iter().all(|record| record.owner == bob), || "somebody else's task was listed".to_owned())?;
    }
    done("forget", store.forget(bob).await)?;
    is_found(&*store, &of_ann).await
}

pub(super) async fn forgotten<S: TaskStore>(store: Arc<S>) -> Checked {
    let (ann, bob) = (owner("ann"), owner("bob"));
    let (one, two) = (record(ann, "task_1", THEN), record(ann, "task_2", THEN + 1));
    let other = record(bob, "task_3", THEN);
    for record in [&one, &two, &other] {
        done("insert", store.insert(record, AMPLE).await)?;
    }
    done("forget", store.forget(ann).await)?;
    for gone in [&one, &two] {
        is_missing(&*store, gone).await?;
        let saved = done("save", store.save(&changed(gone, 3), gone.version).await)?;
        ensure(saved == Saved::Conflict, || "a change brought a forgotten task back".to_owned())?;
        is_missing(&*store, gone).await?;
    }
    let listed = done("list", store.list(ann, None, 10).await)?;
    ensure(listed.is_empty(), || "a forgotten task is listed".to_owned())?;
    is_found(&*store, &other).await?;
    done("forget", store.forget(owner("nobody")).await)?;
    is_found(&*store, &other).await
}

pub(super) async fn swept<S: TaskStore>(store: Arc<S>) -> Checked {
    let (ann, bob) = (owner("ann"), owner("bob"));
    let sooner = record(ann, "task_1", THEN);
    let later = TaskRecord { ttl: sooner.ttl + 1, ..record(bob, "task_2", THEN) };
    let never = TaskRecord { ttl: u64::MAX, ..record(ann, "task_3", THEN) };
    for record in [&sooner, &later, &never] {
        done("insert", store.insert(record, AMPLE).await)?;
    }
    let over = sooner.forgettable_at();
    for (now, wanted) in [(over - 1, 0), (over, 1), (over, 0), (over + 1, 1), (THEN * 2, 0)] {
        let number = done("sweep", store.sweep(now).await)?;
        ensure(number == wanted, || format!("{number} tasks were swept instead of {wanted}"))?;
    }
    is_missing(&*store, &sooner).await?;
    is_missing(&*store, &later).await?;
    is_found(&*store, &never).await?;
    let listed = done("list", store.list(ann, None, 10).await)?;
    ensure(listed.len() == 1, || "a swept task is listed".to_owned())
}

/// Its owner finds the task, by its id and in the list.
pub(super) async fn is_found<S: TaskStore>(store: &S, wanted: &TaskRecord) -> Checked {
    let found = done("load", store.load(wanted.owner, wanted.id.as_str()).await)?;
    ensure(found.as_ref() == Some(wanted), || match &found {
        Some(found) => format!("{:?} has changed: {}", wanted.id, difference(found, wanted)),
        None => format!("{:?} is not there", wanted.id),
    })?;
    let listed = done("list", store.list(wanted.owner, None, 1_000).await)?;
    ensure(listed.contains(wanted), || format!("{:?} is not listed as it is", wanted.id))
}

/// The owner of the record does not find it.
pub(super) async fn is_missing<S: TaskStore>(store: &S, record: &TaskRecord) -> Checked {
    let found = done("load", store.load(record.owner, record.id.as_str()).await)?;
    ensure(found.is_none(), || format!("{:?} is there", record.id.as_str().chars().take(80).collect::<String>()))
}

fn difference(found: &TaskRecord, wanted: &TaskRecord) -> String {
    let (found, wanted) = (format!("{found:?}"), format!("{wanted:?}"));
    let same = found.chars().zip(wanted.chars()).take_while(|(one, other)| one == other).count();
    let from = same.saturating_sub(40);
    let part = |text: &str| text.chars().skip(from).take(80).collect::<String>();
    format!("it has \"{}\" instead of \"{}\"", part(&found), part(&wanted))
}
