//! The sample server: every feature of the engine once, through its public API.
//!
//! Read `tools.rs` first, then `asking.rs` for tools that ask the client something,
//! and `background.rs` for those that run as tasks. Most names are those that the
//! official conformance suite calls; nothing else here knows of it.

mod asking;
mod background;
mod fixture;
mod prompts;
mod resources;
mod skills;
mod tools;
mod waiting;

pub use fixture::server;
