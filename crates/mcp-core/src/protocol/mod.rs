//! The rules of the protocol as pure functions.
//!
//! Why here: what can be decided without waiting is decided where it can be tested as a table.
//! Invariants: nothing below this module awaits, spawns or reads a clock; `now` is a parameter.

pub(crate) mod admit;
pub(crate) mod answers;
pub(crate) mod digest;
pub(crate) mod few;
pub(crate) mod finish;
pub(crate) mod page;
pub(crate) mod rejection;
pub mod schema;
pub(crate) mod seal;
