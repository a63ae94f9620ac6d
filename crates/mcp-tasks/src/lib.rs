//! Tasks for the Model Context Protocol: calls of tools that go on in the background.
//!
//! [`Tasks`] is an extension of a server. It brings the core tasks of 2025-11-25 and the extension
//! `io.modelcontextprotocol/tasks` of 2026-07-28, over every carrier, and leaves every tool as it was written: a tool says
//! with a [`TaskOffer`](mcp_core::TaskOffer) that its calls may become tasks, and asks its client by the same
//! [`RequestContext::ask`](mcp_core::RequestContext::ask) as ever.
//!
//! ```
//! use mcp_core::{NoArguments, Server, TaskOffer, Tool};
//! use mcp_tasks::Tasks;
//!
//! # fn main() -> Result<(), mcp_core::RegistrationError> {
//! let index = Tool::typed("index", |_: NoArguments, context| async move {
//!     // Takes its time; a client that cannot be given a task waits for it.
//!     context.progress(1.0, None, Some("half way"));
//!     Ok("indexed")
//! });
//! let server = Server::builder("desk", "1.0.0")
//!     .extension(Tasks::new())
//!     .tool(index.task(TaskOffer::optional()))
//!     .build()?;
//! # drop(server);
//! # Ok(())
//! # }
//! ```
//!
//! Where nobody authenticates, all callers of the newer form are one owner, and only the id protects a task: 144 random
//! bits that whoever created the task was told. Core tasks of anonymous callers belong to their session and end with it.

#[cfg(feature = "durable")]
mod durable;
mod executor;
mod jobs;
mod live;
mod memory;
mod methods;
mod mode;
mod options;
mod provider;
mod record;
mod shape;
mod store;
mod tasks;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(feature = "durable")]
pub use durable::{DurableTaskStore, Found, OpenError};
pub use jobs::JobError;
pub use memory::MemoryTaskStore;
pub use methods::ID;
pub use options::{LegacyTasks, TaskOptions};
pub use provider::{JobState, ProviderError, TaskProvider};
pub use record::{OpenQuestion, Parked, TaskId, TaskRecord, TaskState};
pub use store::{Room, Saved, StoreError, TaskStore};
pub use tasks::{Tasks, TasksBuilder};

// The page's code is compiled and run with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
