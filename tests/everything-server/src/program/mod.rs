//! What makes a program of the server: flags, log, signals, and what is read again while it runs.
//!
//! Why here: none of it is the server's, all of it is needed to run one.

pub(crate) mod log;
pub(crate) mod options;
pub(crate) mod probe;
pub(crate) mod reload;
pub(crate) mod signals;
