//! Brings what concerns work under way to the process that does it.
//!
//! Why here: a balancer brings an answer to any process, and one of them has the handler that waits for it.
//! Invariants: an errand arrives at most once at each process that it is for; what waits for a process is bounded.
//! Spec: 2025-11-25 basic/transports, "Sending Messages to the Server"

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use mcp_wire::{RawJson, RequestId, Response, RpcError};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::Cause;
use crate::OwnerKey;

/// Whom an errand is for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recipient {
    /// The process with this name.
    Process(String),
    /// Every process that has joined but the sender. A route that cannot leave the sender out brings it back: it is
    /// ignored there.
    Everyone,
}

/// Something that happened in a session and concerns another process.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Errand {
    /// The process that sends it.
    pub from: String,
    /// The session's id: a secret of its owner.
    pub session: String,
    /// Whose session the sender found it to be. The receiver compares it with what it knows.
    pub owner: OwnerKey,
    /// What happened.
    pub kind: ErrandKind,
}

impl Errand {
    /// Something that happened at the process `from`.
    #[must_use]
    pub fn new(from: impl Into<String>, session: impl Into<String>, owner: OwnerKey, kind: ErrandKind) -> Self {
        Self { from: from.into(), session: session.into(), owner, kind }
    }
}

impl fmt::Debug for Errand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Errand").field("from", &self.from).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// What happened.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrandKind {
    /// The client answered a request that the receiver sent.
    Answered {
        /// The id of that request.
        request: RequestId,
        /// The answer, if it is none of an error.
        result: Option<RawJson>,
        /// The error, if it is one.
        error: Option<RpcError>,
    },
    /// The client took a request of its own back, wherever that runs.
    Cancelled {
        /// The request's id.
        request: RequestId,
    },
    /// The session's record has a new version.
    Changed,
    /// The session has ended.
    Ended,
    /// The client has opened the standalone stream at the sender: one anywhere else is over.
    Listening,
    /// The client reads this stream of the receiver's at the sender: whoever read it before is gone.
    Resumed {
        /// The stream's name.
        stream: String,
    },
}

impl ErrandKind {
    /// The errand of an answer; `None` for one that names no request.
    #[must_use]
    pub fn answered(response: Response) -> Option<Self> {
        let request = response.id?;
        let (result, error) = match response.outcome {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        Some(Self::Answered { request, result, error })
    }
}

impl fmt::Debug for ErrandKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Answers are between a client and its handler.
        f.write_str(match self {
            Self::Answered { .. } => "Answered",
            Self::Cancelled { .. } => "Cancelled",
            Self::Changed => "Changed",
            Self::Ended => "Ended",
            Self::Listening => "Listening",
            Self::Resumed { .. } => "Resumed",
        })
    }
}

/// Why an errand was not brought.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerRouteError {
    /// No process of this name has joined, or it has left.
    #[error("there is no such process")]
    NoProcess,
    /// Too much waits for a process that does not fetch it.
    #[error("{limit} errands already wait for the process")]
    Full {
        /// The limit in force.
        limit: usize,
    },
    /// The engine behind the route failed.
    #[error("the route is not available")]
    Unavailable(#[source] Cause),
}

/// The way of errands between processes.
///
/// An errand that was accepted reaches every process that it is for and that has joined, in the order in which one sender
/// sent it, once; it is lost only with the process or the route. What a loss costs: an answer's wait ends with its time
/// limit, a cancelled call runs on, and that a session ended or changed is seen in the store within a minute.
#[async_trait]
pub trait AnswerRoute: Send + Sync + 'static {
    /// From now on errands for `process` wait until it fetches them. Joining twice is joining once. Names are at most 64
    /// letters, digits, `-` and `_`, and no two processes that live have the same.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn join(&self, process: &str) -> Result<(), AnswerRouteError>;

    /// Hands an errand over, without waiting for its receiver.
    ///
    /// # Errors
    /// `NoProcess` where it is for one process that has not joined; a route that cannot know accepts it and drops it. `Full`
    /// where it did not reach a process because of what waits there already; it has reached the others then. `Unavailable`.
    async fn send(&self, to: &Recipient, errand: &Errand) -> Result<(), AnswerRouteError>;

    /// What waits for `process`, the oldest first; waits for something to come. Only the process itself fetches, one call at
    /// a time; what a call returns is gone from the route.
    ///
    /// # Errors
    /// `NoProcess` where it has not joined, or the route has forgotten that: it joins again. `Unavailable`.
    async fn receive(&self, process: &str) -> Result<Vec<Errand>, AnswerRouteError>;

    /// The process fetches nothing more; what waits for it is dropped.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn leave(&self, process: &str) -> Result<(), AnswerRouteError>;
}

/// A route in memory, for servers of one process.
#[derive(Debug)]
pub struct MemoryRoute {
    limit: usize,
    boxes: Mutex<HashMap<String, Arc<Mailbox>>>,
}

#[derive(Debug, Default)]
struct Mailbox {
    waiting: Mutex<VecDeque<Errand>>,
    arrived: Notify,
}

impl Default for MemoryRoute {
    /// At most 1,024 errands wait for each process.
    fn default() -> Self {
        Self::new(1024)
    }
}

impl MemoryRoute {
    /// A route on which at most `limit` errands wait for each process.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, boxes: Mutex::default() }
    }

    fn boxes(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Mailbox>>> {
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mailbox {
    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<Errand>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, errand: &Errand, limit: usize) -> Result<(), AnswerRouteError> {
        let mut waiting = self.waiting();
        if waiting.len() >= limit {
            return Err(AnswerRouteError::Full { limit });
        }
        waiting.push_back(errand.clone());
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }
}

#[async_trait]
impl AnswerRoute for MemoryRoute {
    async fn join(&self, process: &str) -> Result<(), AnswerRouteError> {
        self.boxes().entry(process.to_owned()).or_default();
        Ok(())
    }

    async fn send(&self, to: &Recipient, errand: &Errand) -> Result<(), AnswerRouteError> {
        let boxes = self.boxes();
        match to {
            Recipient::Process(process) => {
                boxes.get(process).ok_or(AnswerRouteError::NoProcess)?.put(errand, self.limit)
            }
            Recipient::Everyone => {
                let others = boxes.iter().filter(|(process, _)| **process != errand.from);
                // Everybody is tried before anybody's failure is told.
                let tried: Vec<_> = others.map(|(_, mailbox)| mailbox.put(errand, self.limit)).collect();
                tried.into_iter().collect()
            }
        }
    }

    async fn receive(&self, process: &str) -> Result<Vec<Errand>, AnswerRouteError> {
        let mailbox = self.boxes().get(process).cloned().ok_or(AnswerRouteError::NoProcess)?;
        loop {
            let fetched: Vec<_> = mailbox.waiting().drain(..).collect();
            if !fetched.is_empty() {
                return Ok(fetched);
            }
            mailbox.arrived.notified().await;
        }
    }

    async fn leave(&self, process: &str) -> Result<(), AnswerRouteError> {
        self.boxes().remove(process);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Principal;

    #[tokio::test]
    async fn a_full_mailbox_is_told_and_costs_nobody_else_the_errand() {
        let route = MemoryRoute::new(1);
        let errand = Errand::new("a", "s", Principal::anonymous().key(), ErrandKind::Ended);
        for process in ["a", "full", "empty"] {
            route.join(process).await.unwrap();
        }
        route.send(&Recipient::Process("full".to_owned()), &errand).await.unwrap();
        let told = route.send(&Recipient::Everyone, &errand).await;
        assert!(matches!(told, Err(AnswerRouteError::Full { limit: 1 })));
        assert_eq!(route.receive("empty").await.unwrap(), std::slice::from_ref(&errand));
    }

    #[test]
    fn debug_output_holds_no_session_and_no_answer() {
        let kind = ErrandKind::Answered {
            request: RequestId::from(1),
            result: RawJson::from_serialize("secret").ok(),
            error: None,
        };
        let printed = format!("{:?}", Errand::new("a", "hidden", Principal::anonymous().key(), kind));
        assert!(
            printed.contains("Answered") && !printed.contains("secret") && !printed.contains("hidden"),
            "{printed}"
        );
    }
}
