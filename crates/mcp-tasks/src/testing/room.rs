//! That a store holds what there is room for, and no more.
//!
//! Why here: room is all that keeps one caller from filling the store for everybody.
//! Invariants: every bound is tried at its edge, alone and by many at a time.

use std::sync::Arc;

use super::records::is_missing;
use super::samples::{AMPLE, THEN, heavy, owner, record};
use super::{Checked, TestError, abandoned, done, ensure, together};
use crate::record::TaskRecord;
use crate::store::{Room, Saved, StoreError, TaskStore};

/// A bound that many come up against at a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    PerOwner,
    Total,
    Bytes,
}

pub(super) const KINDS: [Kind; 3] = [Kind::PerOwner, Kind::Total, Kind::Bytes];

pub(super) async fn bounded<S: TaskStore>(store: Arc<S>) -> Checked {
    let (ann, bob) = (owner("ann"), owner("bob"));
    let room = Room::new(2, 3, AMPLE.bytes);
    for id in ["task_1", "task_2"] {
        done("insert", store.insert(&record(ann, id, THEN), room).await)?;
    }
    refused(&*store, &record(ann, "task_3", THEN), room, "the owner's room").await?;
    done("insert", store.insert(&record(bob, "task_4", THEN), room).await)?;
    refused(&*store, &record(bob, "task_5", THEN), room, "the room of all").await?;
    let wider = Room::new(2, 4, AMPLE.bytes);
    done("insert", store.insert(&record(bob, "task_5", THEN), wider).await)?;
    refused(&*store, &record(owner("eve"), "task_6", THEN), Room::new(0, 100, AMPLE.bytes), "the owner's room").await
}

pub(super) async fn weighed<S: TaskStore>(store: Arc<S>) -> Checked {
    let ann = owner("ann");
    let room = |bytes| Room::new(100, 100, bytes);
    let (one, two) = (heavy(ann, "task_1", 600), heavy(ann, "task_2", 400));
    done("insert", store.insert(&one, room(600)).await)?;
    refused(&*store, &two, room(999), "the room of all").await?;
    done("insert", store.insert(&two, room(1_000)).await)?;
    let grown = TaskRecord { version: 2, ..heavy(ann, "task_2", 5_000) };
    let saved = done("save", store.save(&grown, 1).await)?;
    ensure(saved == Saved::Stored, || "a task could not grow beyond the room".to_owned())?;
    let three = heavy(ann, "task_3", 100);
    refused(&*store, &three, room(5_699), "the room of all").await?;
    let shrunk = TaskRecord { version: 3, ..heavy(ann, "task_2", 300) };
    let saved = done("save", store.save(&shrunk, 2).await)?;
    ensure(saved == Saved::Stored, || "a task was not replaced".to_owned())?;
    refused(&*store, &three, room(999), "the room of all").await?;
    done("insert after a task shrank", store.insert(&three, room(1_000)).await)
}

pub(super) async fn regained<S: TaskStore>(store: Arc<S>) -> Checked {
    let (ann, bob) = (owner("ann"), owner("bob"));
    let room = Room::new(2, 2, 1_000);
    let fill = async |of| {
        for id in ["task_1", "task_2"] {
            done("insert", store.insert(&heavy(of, id, 500), room).await)?;
        }
        refused(&*store, &heavy(of, "task_3", 500), room, "the room").await
    };
    fill(ann).await?;
    done("forget", store.forget(ann).await)?;
    fill(bob).await?;
    let swept = done("sweep", store.sweep(record(bob, "task_1", THEN).forgettable_at()).await)?;
    ensure(swept == 2, || format!("{swept} tasks were swept instead of 2"))?;
    fill(bob).await
}

pub(super) async fn contested<S: TaskStore>(store: Arc<S>, kind: Kind) -> Checked {
    const MANY: usize = 32;
    const ROOM: usize = 5;
    let room = match kind {
        Kind::PerOwner => Room::new(ROOM, MANY, AMPLE.bytes),
        Kind::Total => Room::new(MANY, ROOM, AMPLE.bytes),
        Kind::Bytes => Room::new(MANY, MANY, ROOM * 100),
    };
    let owner_of = |number: usize| match kind {
        Kind::PerOwner => owner("ann"),
        Kind::Total | Kind::Bytes => owner(&number.to_string()),
    };
    let insertions = (0..MANY).map(|number| {
        let (store, record) = (Arc::clone(&store), heavy(owner_of(number), &format!("task_{number}"), 100));
        async move { store.insert(&record, room).await }
    });
    let mut inserted = 0;
    for outcome in together(insertions).await? {
        match outcome {
            Ok(()) => inserted += 1,
            Err(StoreError::OwnerFull | StoreError::Full) => {}
            Err(error) => return done("insert", Err(error)),
        }
    }
    let mut there = 0;
    for number in 0..MANY {
        let found = store.load(owner_of(number), &format!("task_{number}")).await;
        there += usize::from(done("load", found)?.is_some());
    }
    ensure(inserted == ROOM && there == ROOM, || {
        format!("of {MANY} that came at once, {inserted} were inserted and {there} are there; there is room for {ROOM}")
    })
}

pub(super) async fn dropped<S: TaskStore>(store: Arc<S>) -> Checked {
    const ROOM: usize = 5;
    let ann = owner("ann");
    let room = Room::new(ROOM, 100, AMPLE.bytes);
    let dropped: Vec<TaskRecord> = (0..3).map(|number| record(ann, &format!("dropped_{number}"), THEN)).collect();
    for record in &dropped {
        abandoned(store.insert(record, room)).await;
    }
    let mut inserted = Vec::new();
    for number in 0..=ROOM {
        let record = record(ann, &format!("task_{number}"), THEN);
        match store.insert(&record, room).await {
            Ok(()) => inserted.push(record),
            Err(StoreError::OwnerFull) => break,
            Err(error) => return done("insert", Err(error)),
        }
    }
    let listed = done("list", store.list(ann, None, 100).await)?;
    ensure(listed.len() == ROOM, || format!("{} tasks are listed where there is room for {ROOM}", listed.len()))?;
    ensure(inserted.iter().all(|record| listed.contains(record)), || "an inserted task is not listed".to_owned())?;
    ensure(listed.iter().all(|record| inserted.contains(record) || dropped.contains(record)), || {
        "a task is listed that nobody inserted".to_owned()
    })
}

async fn refused<S: TaskStore>(store: &S, record: &TaskRecord, room: Room, what: &str) -> Checked {
    match store.insert(record, room).await {
        Ok(()) => Err(TestError::new(format!("{:?} was inserted beyond {what}", record.id))),
        Err(StoreError::OwnerFull | StoreError::Full) => is_missing(store, record).await,
        Err(error) => done("insert", Err(error)),
    }
}
