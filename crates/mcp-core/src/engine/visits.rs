//! Pages that users were sent to, until somebody says that they are done there.
//!
//! Why here: the page is finished outside of any request, by whoever serves it; the client that waits is found by the
//! visit's name alone.
//! Invariants: a visit is known to its owner only, and an unknown one looks like a foreign one; it is completed once; it
//! is forgotten with its session or after a while; each owner has a bounded number.
//! Spec: 2025-11-25 client/elicitation, "Completion Notifications for URL Mode Elicitation"

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::sessions::{Session, WeakSession};
use crate::Principal;

/// How often what has expired is looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// The visits of a server, by name.
pub(crate) struct Visits {
    /// Of one owner.
    limit: usize,
    lifetime: Duration,
    state: Mutex<Table>,
}

struct Table {
    open: HashMap<Box<str>, Visit>,
    swept: Instant,
}

struct Visit {
    owner: Principal,
    session: WeakSession,
    until: Instant,
}

/// The owner has too many visits open, or the name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unopened {
    TooMany,
    Taken,
}

/// There is no such visit, or not any more, or it is somebody else's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no such visit")]
#[non_exhaustive]
pub struct NoSuchVisit;

impl Visits {
    pub(crate) fn new(limit: usize, lifetime: Duration) -> Self {
        Self { limit, lifetime, state: Mutex::new(Table { open: HashMap::new(), swept: Instant::now() }) }
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers that the client of a session was asked to send its user somewhere. Asked again, it is the same visit.
    pub(crate) fn open(&self, id: &str, session: &Session) -> Result<(), Unopened> {
        let now = Instant::now();
        let mut table = self.table();
        if now.duration_since(table.swept) >= SWEEP {
            table.swept = now;
            table.open.retain(|_, visit| visit.until > now && visit.session.is_alive());
        }
        if let Some(known) = table.open.get(id).filter(|known| known.until > now && known.session.is_alive())
            && !(known.owner == *session.principal() && known.session.is(session))
        {
            return Err(Unopened::Taken);
        }
        // Strangers share a principal and nothing else: each session of theirs counts for itself.
        let of_owner = |visit: &&Visit| {
            let same =
                visit.owner == *session.principal() && (!visit.owner.is_anonymous() || visit.session.is(session));
            same && visit.until > now && visit.session.is_alive()
        };
        if !table.open.contains_key(id) && table.open.values().filter(of_owner).count() >= self.limit {
            return Err(Unopened::TooMany);
        }
        let visit =
            Visit { owner: session.principal().clone(), session: session.downgrade(), until: now + self.lifetime };
        table.open.insert(id.into(), visit);
        Ok(())
    }

    /// Tells the client, once.
    pub(crate) fn complete(&self, id: &str, owner: &Principal) -> Result<(), NoSuchVisit> {
        let visit = {
            let mut table = self.table();
            let known = table.open.get(id).is_some_and(|visit| visit.owner == *owner && visit.until > Instant::now());
            if known { table.open.remove(id) } else { None }
        };
        let session = visit.and_then(|visit| visit.session.upgrade()).ok_or(NoSuchVisit)?;
        if session.visit_completed(id) { Ok(()) } else { Err(NoSuchVisit) }
    }
}
