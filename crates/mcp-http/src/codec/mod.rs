//! What HTTP adds to the protocol, as pure functions: events, mirrored headers, negotiation, origins.
//!
//! Why here: both halves of the shell and the fuzzers share it, and none of it needs a socket to be tested.
//! Invariants: nothing here awaits, spawns, reads a clock or panics on a peer's input.

pub mod accept;
#[cfg(feature = "server")]
pub mod forwarded;
pub mod mirror;
pub mod origin;
pub mod sse;
#[cfg(feature = "server")]
pub mod status;
