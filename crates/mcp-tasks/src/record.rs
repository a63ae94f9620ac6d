//! A task as it is stored: its facts, its states, and which event leads from one to the next.
//!
//! Why here: what may happen to a task is decided without a clock, a store or a runtime, and is the same for all of them.
//! Invariants: an ended task never changes again; every change raises the version, so that who comes late is told; a key of
//! a question means one question for the whole life of its task.
//! Spec: 2025-11-25 basic/utilities/tasks, "Task Lifecycle"; tasks extension draft, "Task Status"

use std::fmt;
use std::sync::Arc;

use mcp_core::{Asked, HandlerError, OwnerKey, Question};
use mcp_wire::{ErrorCode, RawJson, Revision, RpcError};
use serde::{Deserialize, Serialize};

/// A task.
///
/// A record holds no secret but what arguments, answers and results hold, and its id, which is all that protects a task on
/// a server that does not authenticate: keep stores as you keep those.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskRecord {
    /// Finds the task; nobody can guess it.
    pub id: TaskId,
    /// Who may know of it.
    pub owner: OwnerKey,
    /// How often it has changed. A store keeps the change of who saw the newest version.
    pub version: u64,
    /// Milliseconds since the Unix epoch.
    pub created_at: u64,
    /// Milliseconds since the Unix epoch; the last change of its state.
    pub updated_at: u64,
    /// Milliseconds from its creation for which it is kept.
    pub ttl: u64,
    /// Milliseconds after which asking for it again makes sense.
    pub poll_interval: u64,
    /// The tool that it runs.
    pub tool: Box<str>,
    /// The arguments of the call, as long as it may have to be run again; an empty object after.
    pub arguments: RawJson,
    /// The keys of all questions so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issued: Vec<Box<str>>,
    /// Where it stands.
    pub state: TaskState,
}

/// The id of a task: `task_` and 24 letters, digits, `-` and `_` that hold 144 random bits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct TaskId(Arc<str>);

impl TaskId {
    /// An id that nobody has seen.
    ///
    /// # Errors
    /// When the operating system has no randomness.
    pub(crate) fn random() -> Result<Self, RpcError> {
        let random = mcp_core::random_id().map_err(|error| {
            tracing::error!(%error, "no random id could be made");
            RpcError::internal()
        })?;
        Ok(Self(format!("task_{random}").into()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for TaskId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl From<String> for TaskId {
    fn from(id: String) -> Self {
        Self(id.into())
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.as_str().to_owned()
    }
}

impl std::borrow::Borrow<str> for TaskId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a task stands, with what belongs to that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskState {
    /// Its call runs, in the process that began it.
    Working,
    /// It runs in a job system outside: see [`TaskProvider`](crate::TaskProvider).
    Elsewhere {
        /// The name under which the provider was added.
        provider: Box<str>,
        /// What the provider calls the job.
        job: Box<str>,
    },
    /// Its call needs answers and runs nowhere.
    InputRequired(Box<Parked>),
    /// Its call ended with a result.
    Completed {
        /// A `CallToolResult` in the words of the newest revision, `_meta` included.
        result: RawJson,
        /// Whether the result says that the tool failed.
        is_error: bool,
    },
    /// Its call ended with an error.
    Failed {
        /// The error.
        error: RpcError,
    },
    /// It was cancelled.
    Cancelled,
}

/// A call that waits for answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Parked {
    /// What the engine needs to run the call again.
    pub memory: RawJson,
    /// Questions without an answer.
    pub open: Vec<OpenQuestion>,
    /// Answers that came, each under the key of its handler.
    pub answers: Vec<(Box<str>, RawJson)>,
}

/// A question without an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenQuestion {
    /// The key that clients see.
    pub key: Box<str>,
    /// The key that the handler asked under; the same unless that was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_as: Option<Box<str>>,
    /// The method that asks.
    pub method: Box<str>,
    /// Its parameters.
    pub params: RawJson,
}

impl OpenQuestion {
    /// A question of a job outside, which is asked of its client as a handler would ask it. The key means this question for
    /// the whole life of the job.
    ///
    /// # Errors
    /// When the question is none that can be asked, such as a form whose schema is no flat object.
    pub fn new<Q: Question>(key: impl Into<Box<str>>, question: &Q) -> Result<Self, HandlerError> {
        let params = question.params(Revision::NEWEST)?;
        Ok(Self { key: key.into(), asked_as: None, method: Q::METHOD.into(), params })
    }
}

/// Something that happens to a task.
#[derive(Clone, Debug)]
pub(crate) enum TaskEvent {
    /// Its call asks.
    Asks(Asked),
    /// Answers came, by the keys that clients see. Those to nothing that is open are ignored.
    Answered(Vec<(String, RawJson)>),
    /// Its call ended with a result.
    Finished { result: RawJson, is_error: bool },
    /// Its call goes on in a job system outside.
    HandedOver { provider: String, job: String },
    /// Its call ended with an error.
    Failed(RpcError),
    /// Its owner wants it no more, or can have it no more.
    Cancelled,
    /// Its time is over.
    Expired,
    /// The process that ran its call ended.
    Lost,
}

/// What an event changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Applied {
    /// Nothing, and nothing has to be stored.
    Unchanged,
    /// The record.
    Changed,
    /// The record, whose call has every answer now and has to be run again.
    Resumed(Box<Parked>),
}

/// The event came too late: the task has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended;

/// How much a task may ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskLimits {
    pub(crate) keys: usize,
    pub(crate) memory_bytes: usize,
}

/// How long an ended or expired task can still be found after its time, so that who asks late is told what became of it.
const AFTERLIFE: u64 = 60_000;

impl TaskRecord {
    /// Whether nothing can happen to it any more.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        match self.state {
            TaskState::Working | TaskState::Elsewhere { .. } | TaskState::InputRequired(_) => false,
            TaskState::Completed { .. } | TaskState::Failed { .. } | TaskState::Cancelled => true,
        }
    }

    /// The provider and the job that the task stands in, as long as it runs in a job system outside.
    #[must_use]
    pub fn job(&self) -> Option<(&str, &str)> {
        match &self.state {
            TaskState::Elsewhere { provider, job } => Some((provider, job)),
            _ => None,
        }
    }

    /// When its time is over, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn expires_at(&self) -> u64 {
        self.created_at.saturating_add(self.ttl)
    }

    /// From when on a store may forget it, in milliseconds since the Unix epoch: its time has been over for a minute.
    #[must_use]
    pub fn forgettable_at(&self) -> u64 {
        self.expires_at().saturating_add(AFTERLIFE)
    }

    /// Whether a store may forget it at `now`.
    #[must_use]
    pub fn is_forgettable(&self, now: u64) -> bool {
        now >= self.forgettable_at()
    }

    /// Bytes of what a client had a hand in, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let state = match &self.state {
            TaskState::Working | TaskState::Elsewhere { .. } | TaskState::Cancelled => 0,
            TaskState::InputRequired(parked) => {
                let open: usize = parked.open.iter().map(|each| each.params.as_bytes().len()).sum();
                let answers: usize = parked.answers.iter().map(|(_, answer)| answer.as_bytes().len()).sum();
                parked.memory.as_bytes().len().saturating_add(open).saturating_add(answers)
            }
            TaskState::Completed { result, .. } => result.as_bytes().len(),
            TaskState::Failed { error } => error.message.len(),
        };
        self.arguments.as_bytes().len().saturating_add(state)
    }

    /// What became of it by `now`, if its time is over and nobody has noted that yet.
    pub(crate) fn expire(&mut self, now: u64) -> bool {
        !self.is_ended() && now >= self.expires_at() && self.apply(TaskEvent::Expired, now, None).is_ok()
    }

    /// Lets something happen. `limits` bound what [`TaskEvent::Asks`] may ask.
    ///
    /// # Errors
    /// When the task has ended; nothing has changed then.
    pub(crate) fn apply(&mut self, event: TaskEvent, now: u64, limits: Option<AskLimits>) -> Result<Applied, Ended> {
        if self.is_ended() {
            return Err(Ended);
        }
        let applied = match event {
            TaskEvent::Asks(asked) => self.park(asked, limits),
            TaskEvent::Answered(answers) => {
                let applied = self.answer(answers);
                if applied == Applied::Unchanged {
                    return Ok(applied);
                }
                applied
            }
            TaskEvent::Finished { result, is_error } => self.end(TaskState::Completed { result, is_error }),
            TaskEvent::HandedOver { provider, job } => {
                self.state = TaskState::Elsewhere { provider: provider.into(), job: job.into() };
                Applied::Changed
            }
            TaskEvent::Failed(error) => self.end(TaskState::Failed { error }),
            TaskEvent::Cancelled => self.end(TaskState::Cancelled),
            TaskEvent::Expired => self.fail("the task did not end within its lifetime"),
            TaskEvent::Lost => self.fail("the server ended while the task ran"),
        };
        self.version += 1;
        self.updated_at = now.max(self.updated_at);
        Ok(applied)
    }

    fn end(&mut self, state: TaskState) -> Applied {
        self.state = state;
        self.arguments = RawJson::EMPTY_OBJECT;
        self.issued = Vec::new();
        Applied::Changed
    }

    fn fail(&mut self, reason: &'static str) -> Applied {
        self.end(TaskState::Failed { error: RpcError::new(ErrorCode::INTERNAL_ERROR, reason) })
    }

    fn park(&mut self, asked: Asked, limits: Option<AskLimits>) -> Applied {
        if asked.questions.is_empty() {
            return self.fail("the tool waits for answers and asks nothing");
        }
        if let Some(limits) = limits {
            if self.issued.len().saturating_add(asked.questions.len()) > limits.keys {
                return self.fail("the tool asks more questions than a task may");
            }
            if asked.memory.as_bytes().len() > limits.memory_bytes {
                return self.fail("the tool keeps more between its questions than a task may");
            }
        }
        let mut open = Vec::with_capacity(asked.questions.len());
        for question in asked.questions {
            let key = self.issue(&question.key);
            let asked_as = (*key != *question.key).then(|| question.key.into());
            open.push(OpenQuestion { key, asked_as, method: question.method.into(), params: owned(&question.params) });
        }
        self.issued.shrink_to_fit();
        self.state = TaskState::InputRequired(Box::new(Parked { memory: asked.memory, open, answers: Vec::new() }));
        Applied::Changed
    }

    /// The key that clients see: the handler's, or the first variation of it that was never used.
    fn issue(&mut self, key: &str) -> Box<str> {
        let is_taken = |wanted: &str| self.issued.iter().any(|each| **each == *wanted);
        let mut wanted = key.to_owned();
        let mut number = 2_usize;
        while is_taken(&wanted) {
            wanted = format!("{key}#{number}");
            number += 1;
        }
        let wanted: Box<str> = wanted.into();
        self.issued.push(wanted.clone());
        wanted
    }

    fn answer(&mut self, answers: Vec<(String, RawJson)>) -> Applied {
        let TaskState::InputRequired(parked) = &mut self.state else { return Applied::Unchanged };
        let mut applied = Applied::Unchanged;
        for (key, answer) in answers {
            let Some(index) = parked.open.iter().position(|open| *open.key == *key) else { continue };
            let open = parked.open.remove(index);
            parked.answers.push((open.asked_as.unwrap_or(open.key), owned(&answer)));
            applied = Applied::Changed;
        }
        if !parked.open.is_empty() {
            return applied;
        }
        match std::mem::replace(&mut self.state, TaskState::Working) {
            TaskState::InputRequired(parked) => Applied::Resumed(parked),
            _ => applied,
        }
    }
}

/// A copy of its own: a slice of a received body would keep the whole body alive for as long as the task.
pub(crate) fn owned(value: &RawJson) -> RawJson {
    RawJson::from_bytes(value.as_bytes().to_vec().into()).unwrap_or_else(|_| value.clone())
}

#[cfg(test)]
mod tests;
