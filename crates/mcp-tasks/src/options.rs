//! Every choice about tasks, with its default.
//!
//! Why here: one struct, so that no bound hides in the code that enforces it.

use std::time::Duration;

/// Bounds and choices; change single fields of [`TaskOptions::default`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskOptions {
    /// How long a task is kept, from its creation on, unless its tool says otherwise. Default 1 hour. Beyond: a task that has
    /// not ended fails; a minute later it is forgotten.
    pub ttl: Duration,
    /// The longest time that a client can ask for. Default 1 hour. Beyond: it gets this.
    pub max_ttl: Duration,
    /// How often clients are told to ask for the state of a task. Default 1 second.
    pub poll_interval: Duration,
    /// Tasks of one owner, ended ones included. Default 100. Beyond: a call that can do without runs in place, others are
    /// refused with -32603.
    pub per_owner: usize,
    /// Tasks in all. Default 10,000. Beyond: as `per_owner`.
    pub total: usize,
    /// Bytes of arguments, answers and results in all. Default 256 MiB. Beyond: as `per_owner`.
    pub bytes: usize,
    /// Questions that one task may ask in its life. Default 50. Beyond: it fails. Rounds are bounded by
    /// [`Limits::rounds`](mcp_core::Limits::rounds).
    pub questions: usize,
    /// Bytes that a call may keep between its questions. Default 64 KiB. Beyond: it fails.
    pub memory_bytes: usize,
    /// Tasks on a page of `tasks/list`. Default 50.
    pub page: usize,
    /// How long `tasks/result` waits for a task to end. Default 5 minutes. Beyond: -32603; the client may ask again.
    pub result_wait: Duration,
    /// When calls of clients with a handshake become tasks. Default: on request.
    pub legacy: LegacyTasks,
}

/// When a call of 2025-11-25 becomes a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LegacyTasks {
    /// When the call says so by its `task` parameter, as the specification has it.
    #[default]
    OnRequest,
    /// As well when the client declared `tasks` in its handshake and the tool makes tasks.
    OnNegotiation,
}

impl Default for TaskOptions {
    fn default() -> Self {
        let hour = Duration::from_secs(60 * 60);
        Self {
            ttl: hour,
            max_ttl: hour,
            poll_interval: Duration::from_secs(1),
            per_owner: 100,
            total: 10_000,
            bytes: 256 * 1024 * 1024,
            questions: 50,
            memory_bytes: 64 * 1024,
            page: 50,
            result_wait: Duration::from_secs(300),
            legacy: LegacyTasks::OnRequest,
        }
    }
}
