//! The parts that wait: exchanges, peers, calls, sessions and change notices.
//!
//! Why here: everything asynchronous of the engine, on top of the pure rules in `protocol`.
//! Invariants: whoever owns an exchange owns the request's life; no queue is unbounded; no lock is held over an await.

pub(crate) mod bus;
pub(crate) mod call;
pub(crate) mod elsewhere;
pub(crate) mod exchange;
pub(crate) mod hub;
pub(crate) mod peer;
pub(crate) mod rounds;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod visits;
pub(crate) mod worker;
