//! The tasks of a server: found by their owners, changed one event at a time.
//!
//! Why here: every way to a task, of clients and of the program itself, goes through the same look-up and the same change.
//! Invariants: a foreign task and an unknown one are the same; a change is stored before anybody hears of it.
//! Spec: tasks extension draft, "Task Polling"; 2025-11-25 basic/utilities/tasks, "Task Isolation and Access Control"

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use mcp_core::{OwnerKey, Server};
use mcp_wire::{ErrorCode, Method, RawJson, Revision, RpcError};

use crate::live::Live;
use crate::memory::MemoryTaskStore;
use crate::options::TaskOptions;
use crate::provider::TaskProvider;
use crate::record::{Applied, AskLimits, OpenQuestion, TaskEvent, TaskRecord};
use crate::shape;
use crate::store::{Room, Saved, StoreError, TaskStore};

/// Tasks, as an extension of a server: see [`ServerBuilder::extension`](mcp_core::ServerBuilder::extension). Cheap to clone.
///
/// ```
/// # use mcp_core::{NoArguments, Server, TaskOffer, Tool};
/// # use mcp_tasks::Tasks;
/// let tool = Tool::typed("index", |_: NoArguments, _context| async { Ok("done") }).task(TaskOffer::optional());
/// let server = Server::builder("desk", "1.0.0").extension(Tasks::new()).tool(tool).build()?;
/// # drop(server);
/// # Ok::<(), mcp_core::RegistrationError>(())
/// ```
#[derive(Clone)]
pub struct Tasks(Arc<Inner>);

struct Inner {
    options: TaskOptions,
    store: Arc<dyn TaskStore>,
    live: Arc<Live>,
    providers: HashMap<String, Arc<dyn TaskProvider>>,
    /// When what is over was last looked for, in milliseconds since the Unix epoch.
    swept: AtomicU64,
    /// Sessions whose end somebody waits for.
    sessions: Mutex<HashSet<OwnerKey>>,
}

/// Puts [`Tasks`] together.
#[must_use = "a builder does nothing until it builds"]
pub struct TasksBuilder {
    options: TaskOptions,
    store: Option<Arc<dyn TaskStore>>,
    providers: HashMap<String, Arc<dyn TaskProvider>>,
}

/// How often what is over is looked for, in milliseconds.
const SWEEP: u64 = 60_000;

/// How often a change is tried again that somebody else was faster than. Each time somebody got further.
const TRIES: usize = 64;

/// Why a task was not changed.
#[derive(Debug)]
pub(crate) enum ChangeError {
    /// There is none, or it is somebody else's.
    Unknown,
    /// It has ended.
    Ended(Box<TaskRecord>),
    /// The store does not work.
    Store(StoreError),
}

impl ChangeError {
    pub(crate) fn into_rpc(self) -> RpcError {
        match self {
            Self::Unknown => unknown(),
            Self::Ended(_) => RpcError::invalid_params("the task has ended"),
            Self::Store(error) => refused(&error),
        }
    }
}

/// One answer for an id that names nothing and one that names what is somebody else's.
fn unknown() -> RpcError {
    RpcError::invalid_params("there is no such task")
}

/// What a client is told of a store that did not do as it was told.
pub(crate) fn refused(error: &StoreError) -> RpcError {
    let text = match error {
        StoreError::OwnerFull => "there are as many tasks as one caller may have; try again when one is forgotten",
        StoreError::Full => "there are too many tasks; try again later",
        StoreError::Unavailable(cause) => {
            tracing::error!(%cause, "the store of tasks is unavailable");
            "tasks are unavailable; try again later"
        }
    };
    RpcError::new(ErrorCode::INTERNAL_ERROR, text)
}

impl Tasks {
    /// Tasks in memory, with every default.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Begins with every default.
    pub fn builder() -> TasksBuilder {
        TasksBuilder { options: TaskOptions::default(), store: None, providers: HashMap::new() }
    }

    /// How many tasks of this process run or are waited for.
    #[must_use]
    pub fn live(&self) -> usize {
        self.0.live.len()
    }

    pub(crate) fn options(&self) -> &TaskOptions {
        &self.0.options
    }

    pub(crate) fn store(&self) -> &dyn TaskStore {
        &*self.0.store
    }

    pub(crate) fn lives(&self) -> &Arc<Live> {
        &self.0.live
    }

    pub(crate) fn provider(&self, name: &str) -> Option<&Arc<dyn TaskProvider>> {
        self.0.providers.get(name)
    }

    /// Adds a task, and forgets those whose time has long been over.
    pub(crate) async fn insert(&self, record: &TaskRecord) -> Result<(), StoreError> {
        let options = &self.0.options;
        let room = Room::new(options.per_owner, options.total, options.bytes);
        let now = record.created_at;
        let swept = self.0.swept.load(Ordering::Relaxed);
        if now >= swept.saturating_add(SWEEP) && self.takes_turn(swept, now) {
            self.0.live.close_channels();
            self.0.store.sweep(now).await?;
        }
        match self.0.store.insert(record, room).await {
            Err(StoreError::OwnerFull | StoreError::Full) => {
                // Before anybody is refused, what is over goes.
                self.0.store.sweep(now).await?;
                self.0.store.insert(record, room).await
            }
            other => other,
        }
    }

    fn takes_turn(&self, swept: u64, now: u64) -> bool {
        self.0.swept.compare_exchange(swept, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The task as it is now.
    pub(crate) async fn current(&self, owner: OwnerKey, id: &str, server: &Server) -> Result<TaskRecord, ChangeError> {
        for _ in 0..TRIES {
            let now = now(server);
            let mut record = self.loaded(owner, id, now).await?;
            let version = record.version;
            if !record.expire(now) {
                return Ok(record);
            }
            if self.saved(&record, version, server).await? {
                self.0.live.stop(&record.id);
                return Ok(record);
            }
        }
        Err(contended())
    }

    /// Lets something happen to a task; returns it as it is after.
    pub(crate) async fn change(
        &self,
        owner: OwnerKey,
        id: &str,
        event: &TaskEvent,
        server: &Server,
    ) -> Result<TaskRecord, ChangeError> {
        for _ in 0..TRIES {
            let now = now(server);
            let mut record = self.loaded(owner, id, now).await?;
            let version = record.version;
            record.expire(now);
            if record.version != version {
                if self.saved(&record, version, server).await? {
                    self.0.live.stop(&record.id);
                    return Err(ChangeError::Ended(Box::new(record)));
                }
                continue;
            }
            match record.apply(event.clone(), now, Some(self.ask_limits())) {
                Err(_) => return Err(ChangeError::Ended(Box::new(record))),
                Ok(Applied::Unchanged) => return Ok(record),
                Ok(Applied::Changed | Applied::Resumed(_)) => {}
            }
            if self.saved(&record, version, server).await? {
                return Ok(record);
            }
        }
        Err(contended())
    }

    pub(crate) fn ask_limits(&self) -> AskLimits {
        AskLimits { keys: self.0.options.questions, memory_bytes: self.0.options.memory_bytes }
    }

    async fn loaded(&self, owner: OwnerKey, id: &str, now: u64) -> Result<TaskRecord, ChangeError> {
        let found = self.0.store.load(owner, id).await.map_err(ChangeError::Store)?;
        // A store may keep for longer what is over for everybody else.
        found.filter(|record| !record.is_forgettable(now)).ok_or(ChangeError::Unknown)
    }

    /// Stores a change and tells of it; `false` when somebody else was faster.
    pub(crate) async fn saved(&self, record: &TaskRecord, expected: u64, server: &Server) -> Result<bool, ChangeError> {
        match self.0.store.save(record, expected).await.map_err(ChangeError::Store)? {
            Saved::Conflict => Ok(false),
            Saved::Stored => {
                self.told(record, None, server);
                Ok(true)
            }
        }
    }

    /// Tells of a task as it is now. `open` are the questions of a job outside.
    pub(crate) fn told(&self, record: &TaskRecord, open: Option<&[OpenQuestion]>, server: &Server) {
        self.0.live.changed(&record.id);
        let name = record.id.as_str();
        let notification = Method::Tasks.as_str();
        if server.is_listened_to(notification, name) {
            // Whoever listens reads what the newest revision would say.
            match RawJson::from_serialize(&shape::detailed(record, Revision::NEWEST.rules(), open)) {
                Ok(params) => server.named_changed(notification, name, &params),
                Err(error) => tracing::error!(%error, "a task could not be told of"),
            }
        }
        if let Some(session) = self.0.live.channel(&record.id, record.is_ended()) {
            match RawJson::from_serialize(&shape::detailed(record, session.rules(), open)) {
                Ok(params) => session.tell(Method::TaskStatus.as_str(), name, params),
                Err(error) => tracing::error!(%error, "a task could not be told of"),
            }
        }
    }

    /// Whether somebody has to be set to wait for the end of this owner's session.
    pub(crate) fn watches(&self, owner: OwnerKey) -> bool {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(owner)
    }

    /// The session has ended, and with it everything of its owner.
    pub(crate) async fn session_ended(&self, owner: OwnerKey) {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&owner);
        if let Err(error) = self.0.store.forget(owner).await {
            tracing::warn!(%error, "the tasks of a session that ended could not be forgotten");
        }
    }
}

/// Milliseconds since the Unix epoch.
pub(crate) fn now(server: &Server) -> u64 {
    let now = server.now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn contended() -> ChangeError {
    ChangeError::Store(StoreError::Unavailable("a task changed faster than it could be read".into()))
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl TasksBuilder {
    /// Replaces the bounds and choices.
    pub fn options(mut self, options: TaskOptions) -> Self {
        self.options = options;
        self
    }

    /// Keeps tasks in this store. Default: in memory.
    pub fn store(mut self, store: Arc<dyn TaskStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Adds a job system under a name. A name that is there already is replaced.
    pub fn provider(mut self, name: impl Into<String>, provider: impl TaskProvider) -> Self {
        self.providers.insert(name.into(), Arc::new(provider));
        self
    }

    /// The tasks.
    #[must_use]
    pub fn build(self) -> Tasks {
        Tasks(Arc::new(Inner {
            options: self.options,
            store: self.store.unwrap_or_else(|| Arc::new(MemoryTaskStore::new())),
            live: Arc::new(Live::default()),
            providers: self.providers,
            swept: AtomicU64::new(0),
            sessions: Mutex::default(),
        }))
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("live", &self.live()).finish_non_exhaustive()
    }
}

impl fmt::Debug for TasksBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TasksBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}
