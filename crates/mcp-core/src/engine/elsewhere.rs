//! Sessions that several processes serve: what a message leaves to be done elsewhere, and what comes from there.
//!
//! Why here: the engine knows which answers, cancellations and changes are not its own to settle; whoever carries the
//! messages waits for stores and routes.
//! Invariants: ids of requests to the client name the process that asks, so that an answer finds it; what is remembered
//! here is what the newest record says that was seen.
//! Spec: 2025-11-25 basic/transports, "Session Management"

use std::sync::{Mutex, PoisonError};

use mcp_wire::{RequestId, Response};

use super::sessions::Session;
use crate::store::{ErrandKind, Recipient, SessionChange, SessionRecord};
use crate::{ClientFacts, OwnerKey};

/// What messages of a session leave to be done beyond this process.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Left {
    /// What the session's record is to remember.
    pub changes: Vec<SessionChange>,
    /// What is for other processes.
    pub errands: Vec<(Recipient, ErrandKind)>,
}

impl Left {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.errands.is_empty()
    }
}

/// What a session has besides when it is shared.
pub(super) struct Elsewhere {
    /// This process.
    process: Box<str>,
    /// Held while messages are received, so that what they leave is theirs.
    receiving: Mutex<()>,
    left: Mutex<Left>,
    /// The version of the newest record that was seen.
    version: Mutex<u64>,
}

impl Session {
    /// Serves the session together with other processes, under the name `process`: at most 64 letters, digits, `-` and `_`,
    /// which no other process has. Once, before anything is received.
    pub fn share(&self, process: &str) {
        let elsewhere = Elsewhere {
            process: process.into(),
            receiving: Mutex::default(),
            left: Mutex::default(),
            version: Mutex::new(0),
        };
        // Shared a second time, it stays as it is.
        let _ = self.elsewhere_cell().set(Box::new(elsewhere));
    }

    /// Receives messages, and returns what they leave to be done elsewhere: nothing, unless the session is
    /// [shared](Self::share).
    pub fn collecting<R>(&self, receive: impl FnOnce() -> R) -> (R, Left) {
        let Some(elsewhere) = self.elsewhere() else { return (receive(), Left::default()) };
        let _receiving = elsewhere.receiving.lock().unwrap_or_else(PoisonError::into_inner);
        let received = receive();
        (received, std::mem::take(&mut *elsewhere.left()))
    }

    /// The record of the session as it was opened.
    #[must_use]
    pub fn record(&self, now_ms: u64, expires_ms: u64) -> SessionRecord {
        let mut record = SessionRecord::new(self.id(), self.owner(), self.revision(), now_ms, expires_ms);
        let ClientFacts { capabilities, info } = self.client();
        record.capabilities = capabilities.clone();
        record.client_info.clone_from(info);
        record.log_level = self.log_level();
        record
    }

    /// Remembers what the record says, unless a newer one was seen.
    pub fn follow(&self, record: &SessionRecord) {
        let Some(elsewhere) = self.elsewhere() else { return };
        let mut version = elsewhere.version.lock().unwrap_or_else(PoisonError::into_inner);
        if record.version <= *version {
            return;
        }
        *version = record.version;
        self.follow_level(record.log_level);
        self.follow_uris(&record.subscriptions);
    }

    /// What was changed here may not stand in the record: the next record that is [followed](Self::follow) counts, whatever
    /// its version.
    pub fn doubt(&self) {
        if let Some(elsewhere) = self.elsewhere() {
            *elsewhere.version.lock().unwrap_or_else(PoisonError::into_inner) = 0;
        }
    }

    /// Does what another process asks for that found this session to be `owner`'s. What concerns the carrier is the
    /// carrier's to do.
    pub fn run_errand(&self, owner: OwnerKey, kind: &ErrandKind) {
        if self.owner() != owner {
            return;
        }
        match kind {
            ErrandKind::Answered { request, result, error } => {
                let outcome = match (result, error) {
                    (Some(result), None) => Ok(result.clone()),
                    (None, Some(error)) => Err(error.clone()),
                    _ => return,
                };
                self.answered_here(Response { id: Some(request.clone()), outcome });
            }
            ErrandKind::Cancelled { request } => drop(self.ids().withdraw(request)),
            ErrandKind::Changed | ErrandKind::Ended | ErrandKind::Listening | ErrandKind::Resumed { .. } => {}
        }
    }

    /// The id under which the client is asked.
    pub(super) fn outward(&self, id: RequestId) -> RequestId {
        match self.elsewhere() {
            Some(elsewhere) => RequestId::from(&*format!("{id}.{}", elsewhere.process)),
            None => id,
        }
    }

    /// The id in this process; whose it is otherwise, if anybody's.
    pub(super) fn inward(&self, id: RequestId) -> Result<RequestId, Option<Recipient>> {
        let Some(elsewhere) = self.elsewhere() else { return Ok(id) };
        let (number, process) = id.as_str().and_then(|text| text.split_once('.')).ok_or(None)?;
        if *process == *elsewhere.process {
            return number.parse::<i64>().map(RequestId::from).map_err(|_| None);
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_named = (1..=64).contains(&process.len()) && process.bytes().all(is_name);
        Err(is_named.then(|| Recipient::Process(process.to_owned())))
    }

    /// Leaves something for other processes.
    pub(super) fn leave(&self, to: Recipient, errand: ErrandKind) {
        if let Some(elsewhere) = self.elsewhere() {
            elsewhere.left().errands.push((to, errand));
        }
    }

    /// Leaves something for the record.
    pub(super) fn leave_change(&self, change: impl FnOnce() -> SessionChange) {
        if let Some(elsewhere) = self.elsewhere() {
            elsewhere.left().changes.push(change());
        }
    }

    /// A request that the client takes back does not run here.
    pub(crate) fn not_found(&self, request: RequestId) {
        self.leave(Recipient::Everyone, ErrandKind::Cancelled { request });
    }
}

impl Elsewhere {
    fn left(&self) -> std::sync::MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
