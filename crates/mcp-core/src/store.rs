//! What several processes have to share to serve the same sessions: four traits, and a version of each in memory.
//!
//! Why here: a balancer brings the requests of one session to any of several copies of a server; what a copy cannot know by
//! itself goes through these traits and through nothing else.
//! Invariants: what travels are records that serialize to JSON, never a closure or a handle; a method does one atomic thing;
//! every method may fail, and whoever calls it waits for a bounded time.
//!
//! - [`SessionStore`] knows which sessions there are, whose they are and what they were told to remember.
//! - [`EventStore`] keeps what streams said, for clients that come back somewhere else.
//! - [`AnswerRoute`] brings what concerns work under way to the process that does it: answers, cancellations, the end.
//! - [`NoticeBus`] tells other processes that something changed.
//!
//! The versions in memory serve several servers of one process, and tests. A version on an engine of your own is held to its
//! contract by the checks in `mcp_core::testing` (feature `testing`). Keep records as the JSON that `serde_json` makes of
//! them: they hold numbers of any size, which other formats and `serde_json::Value` would round.

mod bus;
mod event;
mod route;
mod session;

pub(crate) use bus::Changes;
pub use bus::{ChangeRecord, MemoryBus, NoticeBus, NoticeBusError, NoticeRecord};
pub use event::{
    EventBounds, EventPage, EventRecord, EventStore, EventStoreError, MemoryEvents, StreamKey, StreamState,
};
pub use route::{AnswerRoute, AnswerRouteError, Errand, ErrandKind, MemoryRoute, Recipient};
pub use session::{MemorySessions, SessionChange, SessionRecord, SessionStore, SessionStoreError};

/// Why an engine behind a store did not do what it was asked.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
