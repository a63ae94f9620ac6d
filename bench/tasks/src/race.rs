//! Calls that end around their window's edge while clients leave: every outcome is settled exactly once.
//!
//! Why here: where a call changes its owner, an outcome could be lost, told twice, or kept by a record that nobody ends.
//! Invariants: the same number of calls is the same calls; what is counted is all there was, told or not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use mcp_core::testing::TestClient;
use mcp_core::{OwnerKey, Principal, RequestContext, Server, TaskOffer, Tool};
use mcp_tasks::{MemoryTaskStore, Room, Saved, StoreError, TaskId, TaskRecord, TaskState, TaskStore, Tasks};
use mcp_wire::Revision;
use serde_json::json;
use tokio::task::JoinSet;

use crate::{Outcome, capabilities, options, say};

/// How long a call stays in place.
const WINDOW: Duration = Duration::from_millis(10);
/// How far from the window's end handlers end, at most.
const EDGE: u64 = 2_000;
/// Calls at a time.
const WAVE: usize = 100;
/// Looks for the end of a wave, a millisecond each.
const PATIENCE: usize = 20_000;

pub(crate) fn run(calls: usize) -> Outcome<()> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let counts = builder.enable_all().start_paused(true).build()?.block_on(race(calls))?;
    say(&format!("one thread, paused clock:  {counts}"))?;
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let counts = builder.worker_threads(2).enable_all().build()?.block_on(race(calls))?;
    say(&format!("two threads, real clock:   {counts}"))?;
    say(&format!("race: {} calls, every outcome settled once, no record left", calls * 2))?;
    Ok(())
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    marker: usize,
    microseconds: u64,
    heeds: bool,
}

/// What there was, all in all.
#[derive(Debug, Default)]
struct Counts {
    calls: usize,
    in_place: usize,
    told_of_task: usize,
    left: usize,
    completed: usize,
    cancelled: usize,
    finished: u64,
    cut_short: u64,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { calls, in_place, told_of_task, left, completed, cancelled, finished, cut_short } = self;
        write!(
            f,
            "{calls} calls: {in_place} answered in place, {told_of_task} with a task, {left} clients left; records: \
             {completed} completed, {cancelled} cancelled, 0 others; handlers: {finished} finished, {cut_short} cut short; \
             live at the end: 0"
        )
    }
}

/// What became of the runs of the handler.
#[derive(Debug, Default)]
struct Runs {
    started: AtomicU64,
    finished: AtomicU64,
    cut_short: AtomicU64,
}

impl Runs {
    fn all(&self) -> (u64, u64, u64) {
        let load = |number: &AtomicU64| number.load(Ordering::SeqCst);
        (load(&self.started), load(&self.finished), load(&self.cut_short))
    }
}

/// One run: finished, or cut short when it is dropped before.
struct Run(Arc<Runs>, bool);

impl Run {
    fn start(runs: &Arc<Runs>) -> Self {
        runs.started.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(runs), false)
    }

    fn finish(mut self) {
        self.1 = true;
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let ended = if self.1 { &self.0.finished } else { &self.0.cut_short };
        ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// A store that counts how often each task was ended.
#[derive(Default)]
struct Counting {
    inner: MemoryTaskStore,
    ended: Mutex<HashMap<TaskId, u32>>,
}

impl Counting {
    fn ended(&self) -> MutexGuard<'_, HashMap<TaskId, u32>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl TaskStore for Counting {
    async fn insert(&self, record: &TaskRecord, room: Room) -> Result<(), StoreError> {
        // Something to wait for, as every store outside the process has.
        tokio::task::yield_now().await;
        self.inner.insert(record, room).await?;
        self.ended().insert(record.id.clone(), u32::from(record.is_ended()));
        Ok(())
    }

    async fn load(&self, owner: OwnerKey, id: &str) -> Result<Option<TaskRecord>, StoreError> {
        self.inner.load(owner, id).await
    }

    async fn save(&self, record: &TaskRecord, expected: u64) -> Result<Saved, StoreError> {
        tokio::task::yield_now().await;
        let saved = self.inner.save(record, expected).await?;
        if saved == Saved::Stored && record.is_ended() {
            *self.ended().entry(record.id.clone()).or_default() += 1;
        }
        Ok(saved)
    }

    async fn list(
        &self,
        owner: OwnerKey,
        after: Option<(u64, TaskId)>,
        limit: usize,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        self.inner.list(owner, after, limit).await
    }

    async fn of_job(&self, provider: &str, job: &str) -> Result<Vec<TaskRecord>, StoreError> {
        self.inner.of_job(provider, job).await
    }

    async fn forget(&self, owner: OwnerKey) -> Result<(), StoreError> {
        self.inner.forget(owner).await
    }

    async fn sweep(&self, now: u64) -> Result<usize, StoreError> {
        self.inner.sweep(now).await
    }
}

/// What a client saw of its call.
enum Seen {
    InPlace,
    Task(String),
    Left,
}

async fn race(calls: usize) -> Outcome<Counts> {
    let (runs, store) = (Arc::new(Runs::default()), Arc::new(Counting::default()));
    let tasks = Tasks::builder().options(options(calls)).store(Arc::clone(&store) as Arc<dyn TaskStore>).build();
    let server = Server::builder("race", "1.0.0").extension(tasks.clone()).tool(tool(&runs)).build()?;
    let principal = Principal::new("fixed", "", "ann");
    let owner = principal.key();
    let client = Arc::new(TestClient::connect(&server, Revision::NEWEST, capabilities(), principal).await?);
    let mut counts = Counts::default();
    let mut random = Random(calls as u64);
    while counts.calls < calls {
        let mut wave = JoinSet::new();
        for marker in counts.calls..calls.min(counts.calls + WAVE) {
            let microseconds = micros(WINDOW) - EDGE + random.below(2 * EDGE + 1);
            let arguments = json!({ "marker": marker, "microseconds": microseconds, "heeds": random.below(2) == 0 });
            // A quarter leaves at any moment, a quarter around the edge as well.
            let patience = match random.below(4) {
                0 => Some(random.below(2 * micros(WINDOW))),
                1 => Some(micros(WINDOW) - EDGE + random.below(2 * EDGE + 1)),
                _ => None,
            };
            let patience = patience.map(Duration::from_micros);
            let client = Arc::clone(&client);
            #[expect(clippy::disallowed_methods, reason = "ends with the set, which this function owns")]
            wave.spawn(async move { (marker, call(&client, arguments, patience).await) });
        }
        let mut seen = HashMap::new();
        while let Some(ended) = wave.join_next().await {
            let (marker, outcome) = ended?;
            seen.insert(marker, outcome?);
        }
        quiet(&runs, &store, &tasks).await?;
        settled(&seen, &store, owner, &mut counts).await?;
        counts.calls += seen.len();
        store.forget(owner).await?;
        store.ended().clear();
    }
    let (started, finished, cut_short) = runs.all();
    (counts.finished, counts.cut_short) = (finished, cut_short);
    ensure(started == finished + cut_short, || format!("{started} handlers started: {counts}"))?;
    let outcomes = counts.in_place + counts.completed;
    ensure(outcomes as u64 <= finished, || format!("{outcomes} outcomes of {finished} handlers that finished"))?;
    ensure(tasks.live() == 0, || format!("{} tasks live on", tasks.live()))?;
    Ok(counts)
}

fn tool(runs: &Arc<Runs>) -> Tool {
    let runs = Arc::clone(runs);
    let tool = Tool::typed("edge", move |arguments: Arguments, context: RequestContext| {
        let run = Run::start(&runs);
        async move {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_micros(arguments.microseconds)) => run.finish(),
                () = context.cancelled(), if arguments.heeds => {}
            }
            Ok(arguments.marker.to_string())
        }
    });
    tool.task(TaskOffer::optional().after(WINDOW))
}

async fn call(client: &TestClient, arguments: serde_json::Value, patience: Option<Duration>) -> Outcome<Seen> {
    let marker = arguments["marker"].to_string();
    let request = client.round("tools/call", json!({ "name": "edge", "arguments": arguments }));
    let reply = match patience {
        Some(patience) => match tokio::time::timeout(patience, request).await {
            Ok(reply) => reply?,
            Err(_) => return Ok(Seen::Left),
        },
        None => request.await?,
    };
    let result = reply.result()?;
    if result["resultType"] == "task" {
        let id = result["taskId"].as_str().ok_or("a task without an id")?;
        return Ok(Seen::Task(id.to_owned()));
    }
    ensure(result["content"][0]["text"] == marker.as_str(), || format!("call {marker} was answered {result}"))?;
    Ok(Seen::InPlace)
}

/// Waits until every handler has ended and every record with it.
async fn quiet(runs: &Runs, store: &Counting, tasks: &Tasks) -> Outcome<()> {
    for _ in 0..PATIENCE {
        let (started, finished, cut_short) = runs.all();
        let is_open = store.ended().values().any(|times| *times == 0);
        if started == finished + cut_short && !is_open && tasks.live() == 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let open = store.ended().values().filter(|times| **times == 0).count();
    Err(format!("{:?}, {open} records nobody ends, {} tasks live", runs.all(), tasks.live()).into())
}

/// Holds what clients saw against what is stored.
async fn settled(seen: &HashMap<usize, Seen>, store: &Counting, owner: OwnerKey, counts: &mut Counts) -> Outcome<()> {
    for (id, times) in &*store.ended() {
        ensure(*times == 1, || format!("{id} was ended {times} times"))?;
    }
    let mut told: HashMap<usize, usize> = HashMap::new();
    let mut by_id = HashMap::new();
    for record in store.list(owner, None, usize::MAX).await? {
        let completed = match &record.state {
            TaskState::Completed { result, .. } => {
                let result: serde_json::Value = result.parse()?;
                let marker: usize = result["content"][0]["text"].as_str().ok_or("a result without a text")?.parse()?;
                *told.entry(marker).or_default() += 1;
                counts.completed += 1;
                Some(marker)
            }
            TaskState::Cancelled => {
                counts.cancelled += 1;
                None
            }
            other => return Err(format!("a record is left as {other:?}").into()),
        };
        by_id.insert(record.id.as_str().to_owned(), completed);
    }
    for (marker, outcome) in seen {
        let times = told.remove(marker).unwrap_or_default();
        let is_right = match outcome {
            Seen::InPlace => times == 0,
            Seen::Task(id) => times == 1 && by_id.get(id) == Some(&Some(*marker)),
            Seen::Left => times <= 1,
        };
        match outcome {
            Seen::InPlace => counts.in_place += 1,
            Seen::Task(_) => counts.told_of_task += 1,
            Seen::Left => counts.left += 1,
        }
        ensure(is_right, || format!("the outcome of call {marker} is in {times} records"))?;
    }
    ensure(told.is_empty(), || format!("{told:?} belong to no call"))
}

fn ensure(holds: bool, text: impl FnOnce() -> String) -> Outcome<()> {
    if holds { Ok(()) } else { Err(text().into()) }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Knuth's generator, whose upper bits will do.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: usize = 2_000;

    #[tokio::test(start_paused = true)]
    async fn every_outcome_is_settled_once_on_one_thread() {
        let counts = race(CALLS).await.unwrap();
        let all = [counts.in_place, counts.told_of_task, counts.left];
        assert!(all.iter().all(|number| *number > 100) && counts.cancelled > 0, "the calls do not race: {counts}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_outcome_is_settled_once_on_two_threads() {
        let counts = race(CALLS).await.unwrap();
        assert_eq!(counts.in_place + counts.told_of_task + counts.left, CALLS);
    }
}
