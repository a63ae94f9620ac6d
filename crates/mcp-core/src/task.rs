//! What a tool says of itself as a task: whether its calls may go on in the background, and from when on.
//!
//! Why here: authors say it where they write the tool; what comes of it is up to the extension that runs calls.
//! Invariants: says nothing of what a client can do; a server without such an extension runs every call in place.

use std::time::Duration;

use mcp_wire::types::TaskSupport;

/// Whether calls of a tool may become tasks, and from when on: see [`Tool::task`](crate::Tool::task).
///
/// ```
/// # use std::time::Duration;
/// # use mcp_core::{NoArguments, TaskOffer, Tool};
/// let tool = Tool::typed("index", |_: NoArguments, _context| async { Ok("done") })
///     .task(TaskOffer::optional().after(Duration::from_millis(250)));
/// # drop(tool);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an offer counts once a tool makes it"]
pub struct TaskOffer {
    support: TaskSupport,
    start: TaskStart,
    ttl: Option<Duration>,
    poll_interval: Option<Duration>,
}

/// From when on a call is a task, for a client that can be given one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "whoever runs calls must treat every case")]
pub enum TaskStart {
    /// From the beginning: the task is there first, and what the tool asks is asked within it.
    AtOnce,
    /// From the end of this window on, if the call has not ended by then. What the tool asks before that is asked of the
    /// call.
    After(Duration),
    /// From when the tool says so: [`RequestContext::become_task`](crate::RequestContext::become_task).
    WhenAsked,
}

impl TaskStart {
    /// How long a call stays in place unless its tool says otherwise.
    pub const WINDOW: Duration = Duration::from_millis(100);
}

impl TaskOffer {
    /// Calls may become tasks; a client that cannot be given one waits. Starts after [`TaskStart::WINDOW`].
    pub fn optional() -> Self {
        Self {
            support: TaskSupport::Optional,
            start: TaskStart::After(TaskStart::WINDOW),
            ttl: None,
            poll_interval: None,
        }
    }

    /// Calls are refused to a client that cannot be given a task. Starts after [`TaskStart::WINDOW`].
    pub fn required() -> Self {
        Self { support: TaskSupport::Required, ..Self::optional() }
    }

    /// Every call is a task from the beginning.
    pub fn at_once(self) -> Self {
        Self { start: TaskStart::AtOnce, ..self }
    }

    /// A call becomes a task when it has run for `window`.
    pub fn after(self, window: Duration) -> Self {
        Self { start: TaskStart::After(window), ..self }
    }

    /// A call becomes a task when its handler says so.
    pub fn when_asked(self) -> Self {
        Self { start: TaskStart::WhenAsked, ..self }
    }

    /// How long its tasks are kept, from their creation on. Default: what the extension has.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// How often clients should ask for the state of its tasks. Default: what the extension has.
    pub fn poll_interval(self, interval: Duration) -> Self {
        Self { poll_interval: Some(interval), ..self }
    }

    /// Whether calls may become tasks.
    #[must_use]
    pub fn support(&self) -> TaskSupport {
        self.support
    }

    /// From when on.
    #[must_use]
    pub fn start(&self) -> TaskStart {
        self.start
    }

    /// How long its tasks are kept, if the tool says so.
    #[must_use]
    pub fn lifetime(&self) -> Option<Duration> {
        self.ttl
    }

    /// How often clients should ask, if the tool says so.
    #[must_use]
    pub fn polling(&self) -> Option<Duration> {
        self.poll_interval
    }
}
