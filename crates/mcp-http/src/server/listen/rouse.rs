//! Rouses a sleeping worker now and then, so that sockets and timers are watched while a handler blocks another.
//!
//! Why here: the worker that watches them is the one that runs what they bring; if that blocks its thread while the other
//! workers sleep, nobody watches, and every connection would wait for one handler. A worker that is given something to do
//! watches when it has done it.
//! Invariants: the thread ends with the listener, and there is none where the runtime has a single worker.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

/// How long others wait at most for a handler that blocks its thread.
const PERIOD: Duration = Duration::from_millis(50);

/// Rouses until it is dropped.
pub(super) struct Rouser {
    _end: Option<Sender<()>>,
}

impl Rouser {
    /// For the runtime that this is called on. Where no thread can be started, it does without.
    pub(super) fn start() -> Self {
        let handle = Handle::current();
        if handle.runtime_flavor() == RuntimeFlavor::CurrentThread || handle.metrics().num_workers() < 2 {
            return Self { _end: None };
        }
        let (end, ended) = channel();
        // Ends with the listener, whose end of the channel it waits for.
        let started = Builder::new().name("mcp-http rouser".to_owned()).spawn(move || rouse(&handle, &ended));
        if let Err(error) = started {
            tracing::warn!(%error, "there is no thread to spare: a handler that blocks its thread may delay others");
        }
        Self { _end: Some(end) }
    }
}

fn rouse(handle: &Handle, ended: &Receiver<()>) {
    while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
        #[expect(clippy::disallowed_methods, reason = "has nothing to do but to be run")]
        drop(handle.spawn(async {}));
    }
}
