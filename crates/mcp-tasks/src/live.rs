//! What of a task lives in this process: the call that runs, whoever waits, and which request its questions go out on.
//!
//! Why here: records can be anywhere; wakers and cancellations are where the work is.
//! Invariants: an entry is there as long as somebody uses it; a change wakes everybody who waited when it came.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mcp_core::{RequestContext, Session, WeakRequestContext, WeakSession};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::record::TaskId;

/// The tasks of this process that somebody runs or waits for.
#[derive(Default)]
pub(crate) struct Live {
    entries: Mutex<HashMap<TaskId, Entry>>,
    /// The sessions that core tasks are of, to be told of what becomes of them.
    channels: Mutex<HashMap<TaskId, WeakSession>>,
}

struct Entry {
    users: usize,
    changed: watch::Sender<()>,
    /// Ends the call that runs.
    stop: Option<CancellationToken>,
    /// The task has ended, so no call of it may run on.
    is_over: bool,
    /// The request that brings the task's questions and notices to its client, and which one that is.
    speaker: Option<(u64, WeakRequestContext)>,
    turn: u64,
}

impl Default for Entry {
    fn default() -> Self {
        Self { users: 0, changed: watch::Sender::new(()), stop: None, is_over: false, speaker: None, turn: 0 }
    }
}

/// A place at a task, given up when dropped.
pub(crate) struct Seat {
    live: Arc<Live>,
    id: TaskId,
    changes: watch::Receiver<()>,
}

impl Live {
    fn entries(&self) -> MutexGuard<'_, HashMap<TaskId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place at a task; what changes from here on is noticed there.
    pub(crate) fn join(self: &Arc<Self>, id: &TaskId) -> Seat {
        let mut entries = self.entries();
        let entry = entries.entry(id.clone()).or_default();
        entry.users += 1;
        Seat { live: Arc::clone(self), id: id.clone(), changes: entry.changed.subscribe() }
    }

    /// Wakes whoever waits for a change of the task.
    pub(crate) fn changed(&self, id: &TaskId) {
        if let Some(entry) = self.entries().get(id) {
            entry.changed.send_replace(());
        }
    }

    /// Ends the call that runs for the task, if one does here or is about to.
    pub(crate) fn stop(&self, id: &TaskId) {
        let stop = self.entries().get_mut(id).and_then(|entry| {
            entry.is_over = true;
            entry.stop.take()
        });
        if let Some(stop) = stop {
            stop.cancel();
        }
    }

    /// Brings a notification of the task to its client, if anybody is there to do so.
    pub(crate) fn relay(&self, id: &TaskId, frame: Bytes) {
        if let Some(speaker) = self.speaker(id).and_then(|(_, speaker)| speaker.upgrade()) {
            speaker.relay(frame);
        }
    }

    /// Takes the word for a task until the request of `context` is over.
    ///
    /// # Errors
    /// The token of the request that has the word.
    pub(crate) fn speaks(self: &Arc<Self>, id: &TaskId, context: &RequestContext) -> Result<(), CancellationToken> {
        loop {
            let found = self.speaker(id);
            let before = found.as_ref().map(|(turn, _)| *turn);
            // Not under the lock: a request that ends here gives its word back.
            match found.and_then(|(_, speaker)| speaker.upgrade()) {
                Some(speaker) if speaker.is_same(context) => return Ok(()),
                Some(speaker) if !speaker.is_cancelled() => return Err(speaker.cancellation()),
                _ => {}
            }
            let mut entries = self.entries();
            let entry = entries.entry(id.clone()).or_default();
            if entry.speaker.as_ref().map(|(turn, _)| *turn) != before {
                // Somebody was faster.
                continue;
            }
            entry.users += 1;
            entry.turn += 1;
            entry.speaker = Some((entry.turn, context.downgrade()));
            let word = Word { live: Arc::clone(self), id: id.clone(), turn: entry.turn };
            drop(entries);
            context.hold(word);
            return Ok(());
        }
    }

    fn speaker(&self, id: &TaskId) -> Option<(u64, WeakRequestContext)> {
        self.entries().get(id).and_then(|entry| entry.speaker.clone())
    }

    fn leave(&self, id: &TaskId, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.entries();
        if let Some(entry) = entries.get_mut(id) {
            change(entry);
            entry.users -= 1;
            if entry.users == 0 {
                entries.remove(id);
            }
        }
    }

    /// Remembers the session that has to be told of a task.
    pub(crate) fn opens_channel(&self, id: &TaskId, session: WeakSession) {
        self.channels().insert(id.clone(), session);
    }

    /// The session that has to be told of a task; for the last time, if it has ended.
    pub(crate) fn channel(&self, id: &TaskId, has_ended: bool) -> Option<Session> {
        let mut channels = self.channels();
        let session = channels.get(id)?.upgrade();
        if has_ended || session.is_none() {
            channels.remove(id);
        }
        session
    }

    /// Forgets sessions that have ended.
    pub(crate) fn close_channels(&self) {
        self.channels().retain(|_, session| session.upgrade().is_some());
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<TaskId, WeakSession>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
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
            if entry.is_over {
                stop.cancel();
            } else {
                entry.stop = Some(stop.clone());
            }
        }
        stop
    }

    /// Completes when the task has changed since the last look. Cancel-safe.
    pub(crate) async fn changed(&mut self) {
        // The sender lives as long as this place.
        let _ = self.changes.changed().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.live.leave(&self.id, |_| ());
    }
}

/// The word for a task, held by the request that has it.
struct Word {
    live: Arc<Live>,
    id: TaskId,
    turn: u64,
}

impl Drop for Word {
    fn drop(&mut self) {
        self.live.leave(&self.id, |entry| {
            if entry.speaker.as_ref().is_some_and(|(turn, _)| *turn == self.turn) {
                entry.speaker = None;
                entry.changed.send_replace(());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_ended_whether_its_task_ends_after_it_began_or_just_before() {
        let live = Arc::new(Live::default());
        let id = TaskId::from("task_1");
        let (before, after) = (live.join(&id), live.join(&id));
        let began = before.runs();
        assert!(!began.is_cancelled());
        live.stop(&id);
        assert!(began.is_cancelled() && after.runs().is_cancelled());
        drop((before, after));
        assert_eq!(live.len(), 0);
        assert!(!live.join(&id).runs().is_cancelled(), "nothing is kept of a task that nobody uses");
    }
}
