//! What of a task lives in this process: the call that runs, whoever waits, and which request its questions go out on.
//!
//! Why here: records can be anywhere; wakers and cancellations are where the work is.
//! Invariants: an entry is there as long as somebody uses it; a change wakes everybody who waited when it came.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mcp_core::RequestContext;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::record::TaskId;

/// The tasks of this process that somebody runs or waits for.
#[derive(Default)]
pub(crate) struct Live(Mutex<HashMap<TaskId, Entry>>);

struct Entry {
    users: usize,
    changed: watch::Sender<()>,
    /// Ends the call that runs.
    stop: Option<CancellationToken>,
    /// The request that brings the task's questions and notices to its client.
    speaker: Option<RequestContext>,
}

/// A place at a task, given up when dropped.
pub(crate) struct Seat {
    live: Arc<Live>,
    id: TaskId,
    changes: watch::Receiver<()>,
}

impl Live {
    fn entries(&self) -> MutexGuard<'_, HashMap<TaskId, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place at a task; what changes from here on is noticed there.
    pub(crate) fn join(self: &Arc<Self>, id: &TaskId) -> Seat {
        let mut entries = self.entries();
        let entry = entries.entry(id.clone()).or_insert_with(|| Entry {
            users: 0,
            changed: watch::Sender::new(()),
            stop: None,
            speaker: None,
        });
        entry.users += 1;
        Seat { live: Arc::clone(self), id: id.clone(), changes: entry.changed.subscribe() }
    }

    /// Wakes whoever waits for a change of the task.
    pub(crate) fn changed(&self, id: &TaskId) {
        if let Some(entry) = self.entries().get(id) {
            entry.changed.send_replace(());
        }
    }

    /// Ends the call that runs for the task, if one does here.
    pub(crate) fn stop(&self, id: &TaskId) {
        let stop = self.entries().get_mut(id).and_then(|entry| entry.stop.take());
        if let Some(stop) = stop {
            stop.cancel();
        }
    }

    /// Brings a notification of the task to its client, if anybody is there to do so.
    pub(crate) fn relay(&self, id: &TaskId, frame: Bytes) {
        let speaker = self.entries().get(id).and_then(|entry| entry.speaker.clone());
        if let Some(speaker) = speaker {
            speaker.relay(frame);
        }
    }

    /// How many tasks somebody runs or waits for.
    pub(crate) fn len(&self) -> usize {
        self.entries().len()
    }
}

impl Seat {
    /// Whoever has the returned token cancelled ends what runs here.
    pub(crate) fn runs(&self) -> CancellationToken {
        let stop = CancellationToken::new();
        if let Some(entry) = self.live.entries().get_mut(&self.id) {
            entry.stop = Some(stop.clone());
        }
        stop
    }

    /// Takes the word for the task, if nobody has it. Whoever has it keeps it until its request is over.
    pub(crate) fn speaks(&self, context: &RequestContext) -> Result<(), CancellationToken> {
        let mut entries = self.live.entries();
        let Some(entry) = entries.get_mut(&self.id) else { return Ok(()) };
        match &entry.speaker {
            Some(speaker) if !speaker.is_cancelled() && !speaker.is_same(context) => Err(speaker.cancellation()),
            _ => {
                entry.speaker = Some(context.clone());
                Ok(())
            }
        }
    }

    /// Gives the word back.
    pub(crate) fn falls_silent(&self, context: &RequestContext) {
        if let Some(entry) = self.live.entries().get_mut(&self.id)
            && entry.speaker.as_ref().is_some_and(|speaker| speaker.is_same(context))
        {
            entry.speaker = None;
            entry.changed.send_replace(());
        }
    }

    /// Completes when the task has changed since the last look. Cancel-safe.
    pub(crate) async fn changed(&mut self) {
        // The sender lives as long as this place.
        let _ = self.changes.changed().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut entries = self.live.entries();
        if let Some(entry) = entries.get_mut(&self.id) {
            entry.users -= 1;
            if entry.users == 0 {
                entries.remove(&self.id);
            }
        }
    }
}
