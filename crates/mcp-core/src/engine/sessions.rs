//! Legacy sessions: what the handshake agreed on, who owns it, what is under way in it.
//!
//! Why here: only the legacy era remembers anything between requests, and all of it is here.
//! Invariants: a session answers to the principal that opened it and to nobody else; when it ends, every wait, stream
//! and table keyed by it ends; an unknown id, a foreign one and an ended one look the same.
//! Spec: 2025-11-25 basic/transports, "Session Management"

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use mcp_wire::types::LoggingLevel;
use mcp_wire::{Pending, PendingFull, RawJson, RequestId, Response, Revision, RpcError, Rules};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::elsewhere::Elsewhere;
use super::hub::{Change, Due, Subscription};
use super::peer::Ids;
use crate::context::Cancellation;
use crate::store::{ErrandKind, SessionChange};
use crate::{ClientFacts, Limits, OwnerKey, Principal};

/// What a valid handshake agreed on, before there is a session.
#[derive(Debug)]
pub(crate) struct Agreement {
    pub(crate) revision: Revision,
    pub(crate) client: ClientFacts,
}

/// A legacy session. Cheap to clone; it ends by [`Session::end`], not by being dropped.
#[derive(Clone)]
pub struct Session(Arc<Live>);

struct Live {
    /// Shared with the table that finds the session.
    id: Arc<str>,
    principal: Principal,
    revision: Revision,
    client: ClientFacts,
    log_level: Mutex<LoggingLevel>,
    ids: Arc<Ids>,
    pending: Mutex<Pending<oneshot::Sender<Result<RawJson, RpcError>>>>,
    changes: Mutex<Option<Subscription>>,
    /// The client says nothing more, so nothing it is asked will be answered.
    unanswering: AtomicBool,
    /// Made when somebody looks at it: most sessions are idle.
    token: Cancellation,
    started: Instant,
    /// Milliseconds after `started`.
    last_active: AtomicU64,
    open_streams: AtomicUsize,
    /// Set where several processes serve the session.
    elsewhere: OnceLock<Box<Elsewhere>>,
}

impl Session {
    pub(crate) fn open(
        id: String,
        principal: Principal,
        agreement: Agreement,
        ids: Arc<Ids>,
        changes: Subscription,
        pending_limit: usize,
        server: CancellationToken,
    ) -> Self {
        Self(Arc::new(Live {
            id: id.into(),
            principal,
            revision: agreement.revision,
            client: agreement.client,
            log_level: Mutex::new(LoggingLevel::Info),
            ids,
            pending: Mutex::new(Pending::new(pending_limit)),
            changes: Mutex::new(Some(changes)),
            unanswering: AtomicBool::new(false),
            token: Cancellation::new(server),
            started: Instant::now(),
            last_active: AtomicU64::new(0),
            open_streams: AtomicUsize::new(0),
            elsewhere: OnceLock::new(),
        }))
    }

    /// The id, 144 random bits as text; a carrier may show it to the owner.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Whom the session belongs to.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// The revision that the handshake agreed on.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.0.revision
    }

    /// The rules of that revision.
    #[must_use]
    pub fn rules(&self) -> &'static Rules {
        self.0.revision.rules()
    }

    /// A token that is cancelled when the session ends.
    #[must_use]
    pub fn ended(&self) -> CancellationToken {
        self.0.token.token().clone()
    }

    /// Ends the session: calls are cancelled, requests to the client fail, change notices stop.
    pub fn end(&self) {
        self.0.token.cancel();
        self.0.changes.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.0.ids.withdraw_all();
        drop(self.pending().drain());
    }

    /// Notes that the client is alive.
    pub fn touch(&self) {
        let elapsed = self.0.started.elapsed().as_millis();
        self.0.last_active.store(u64::try_from(elapsed).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Keeps the session alive while a stream of it is open.
    #[must_use]
    pub fn hold_open(&self) -> OpenStream {
        self.0.open_streams.fetch_add(1, Ordering::Relaxed);
        OpenStream(self.clone())
    }

    /// The next change notice that no request caused; `None` once the session has ended.
    pub fn poll_notice(&self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let changes = self.0.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(subscription) = &*changes else { return Poll::Ready(None) };
        loop {
            match std::task::ready!(subscription.subscriber().poll_due(context)) {
                Due::Notice(notice) => {
                    if let Some(frame) = notice.frame(None) {
                        return Poll::Ready(Some(frame));
                    }
                }
                Due::Closing | Due::Withdrawn => return Poll::Ready(None),
            }
        }
    }

    /// Tells the client of a session how the thing `name` of an extension is now, by a notification of the extension. Who has
    /// not been told of an earlier state yet is told of this one only. Nothing is told once the session has ended.
    pub fn tell(&self, notification: &str, name: &str, params: RawJson) {
        let changes = self.0.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(subscription) = &*changes {
            subscription.subscriber().tell(notification, name, params);
        }
    }

    fn idle(&self) -> Duration {
        let last = Duration::from_millis(self.0.last_active.load(Ordering::Relaxed));
        self.0.started.elapsed().saturating_sub(last)
    }

    fn is_expired(&self, limit: Duration) -> bool {
        !self.is_busy() && self.idle() >= limit
    }

    fn is_busy(&self) -> bool {
        self.0.open_streams.load(Ordering::Relaxed) != 0 || !self.0.ids.is_empty()
    }

    pub(crate) fn client(&self) -> &ClientFacts {
        &self.0.client
    }

    pub(crate) fn ids(&self) -> &Arc<Ids> {
        &self.0.ids
    }

    pub(crate) fn log_level(&self) -> LoggingLevel {
        *self.0.log_level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        self.follow_level(level);
        self.leave_change(|| SessionChange::LogLevel(level));
    }

    pub(super) fn follow_level(&self, level: LoggingLevel) {
        *self.0.log_level.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    pub(super) fn follow_uris(&self, uris: &BTreeSet<String>) {
        let changes = self.0.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(subscription) = &*changes {
            subscription.subscriber().want_uris(uris);
        }
    }

    pub(super) fn owner(&self) -> OwnerKey {
        self.0.principal.key()
    }

    pub(super) fn elsewhere(&self) -> Option<&Elsewhere> {
        self.0.elsewhere.get().map(|elsewhere| &**elsewhere)
    }

    pub(super) fn elsewhere_cell(&self) -> &OnceLock<Box<Elsewhere>> {
        &self.0.elsewhere
    }

    /// Subscribes to a resource.
    ///
    /// # Errors
    /// Which bound it is beyond. Once the session has ended nothing is beyond any.
    pub(crate) fn subscribe(&self, uri: &str, limits: &Limits) -> Result<(), String> {
        let changes = self.0.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(subscription) = &*changes else { return Ok(()) };
        let uri = subscription.subscriber().add_uri(uri, limits)?;
        self.leave_change(|| SessionChange::Subscribed(uri));
        Ok(())
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        let changes = self.0.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(subscription) = &*changes {
            // Another process may know of it, if this one does not yet.
            let uri = subscription.subscriber().remove_uri(uri).unwrap_or_else(|| uri.to_owned());
            self.leave_change(|| SessionChange::Unsubscribed(uri));
        }
    }

    /// Takes the next id for a request to the client and returns where its answer arrives.
    pub(crate) fn request_client(
        &self,
    ) -> Result<(RequestId, oneshot::Receiver<Result<RawJson, RpcError>>), PendingFull> {
        let (answer, waiting) = oneshot::channel();
        // After the end nobody would drain the table again: the sender is dropped here, and the wait fails.
        let id = self.pending().register(answer)?;
        if self.0.token.is_cancelled() || self.0.unanswering.load(Ordering::SeqCst) {
            drop(self.pending().drain());
        }
        Ok((self.outward(id), waiting))
    }

    /// From now on every request to the client fails, those under way included.
    pub(crate) fn expect_no_answers(&self) {
        self.0.unanswering.store(true, Ordering::SeqCst);
        drop(self.pending().drain());
    }

    /// Nobody waits for this answer any more.
    pub(crate) fn forget_request(&self, id: &RequestId) {
        if let Ok(id) = self.inward(id.clone()) {
            self.pending().complete(&id);
        }
    }

    /// Tells the client that its user is done at a page; `false` when the session has ended.
    pub(crate) fn visit_completed(&self, id: &str) -> bool {
        let changes = self.0.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.as_ref().is_some_and(|subscription| {
            subscription.subscriber().mark(Change::Visit(id));
            true
        })
    }

    /// Finds the session as long as it has not ended, without keeping anything of it.
    #[must_use]
    pub fn downgrade(&self) -> WeakSession {
        WeakSession(Arc::downgrade(&self.0))
    }

    /// Hands the client's answer to whoever waits; an answer nobody waits for is ignored.
    pub(crate) fn answered(&self, response: Response) {
        let process = response.id.clone().and_then(|id| self.inward(id).err().flatten());
        match process {
            None => self.answered_here(response),
            Some(process) => {
                if let Some(errand) = ErrandKind::answered(response) {
                    self.leave(process, errand);
                }
            }
        }
    }

    pub(super) fn answered_here(&self, response: Response) {
        let id = response.id.and_then(|id| self.inward(id).ok());
        let Some(waiting) = id.and_then(|id| self.pending().complete(&id)) else { return };
        // The call may have ended in between; then nobody is there to be told.
        let _ = waiting.send(response.outcome);
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending<oneshot::Sender<Result<RawJson, RpcError>>>> {
        self.0.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The id is a secret of its owner.
        f.debug_struct("Session").field("revision", &self.0.revision).finish_non_exhaustive()
    }
}

/// A session that may have ended.
#[derive(Clone)]
pub struct WeakSession(Weak<Live>);

impl WeakSession {
    /// The session, unless it has ended.
    #[must_use]
    pub fn upgrade(&self) -> Option<Session> {
        self.0.upgrade().filter(|live| !live.token.is_cancelled()).map(Session)
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.upgrade().is_some()
    }

    pub(crate) fn is(&self, session: &Session) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&session.0))
    }
}

impl fmt::Debug for WeakSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakSession")
    }
}

/// Keeps a session from idling out; dropped with the stream it stands for.
#[derive(Debug)]
pub struct OpenStream(Session);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.touch();
        self.0.0.open_streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The sessions of a carrier that names them by id, each with what the carrier keeps beside it.
pub struct Sessions<T> {
    limit: usize,
    idle: Duration,
    state: Mutex<Table<T>>,
}

struct Table<T> {
    by_id: HashMap<Arc<str>, (Session, Arc<T>)>,
    swept: Instant,
}

/// As many sessions are open as the limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{limit} sessions are already open")]
#[non_exhaustive]
pub struct SessionsFull {
    /// The limit in force.
    pub limit: usize,
}

/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(60);

impl<T> Sessions<T> {
    /// An empty table for at most `limit` sessions, each of which may be idle for less than `idle`.
    #[must_use]
    pub fn new(limit: usize, idle: Duration) -> Self {
        Self { limit, idle, state: Mutex::new(Table { by_id: HashMap::new(), swept: Instant::now() }) }
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session with what belongs to it. Idle sessions make room first.
    ///
    /// # Errors
    /// When the limit is reached; the session is ended.
    pub fn insert(&self, session: &Session, beside: Arc<T>) -> Result<(), SessionsFull> {
        self.adopt(session, beside).map(drop)
    }

    /// As [`Self::insert`], of a session that other requests may add at the same time: the first that was added stays, others
    /// are ended, and the one that stays is returned.
    ///
    /// # Errors
    /// When the limit is reached; the session is ended.
    pub fn adopt(&self, session: &Session, beside: Arc<T>) -> Result<(Session, Arc<T>), SessionsFull> {
        let placed = {
            let mut table = self.table();
            let expired = if table.by_id.len() >= self.limit { table.expired(self.idle) } else { table.due(self.idle) };
            let known = table.by_id.get(session.id()).filter(|(known, _)| !known.0.token.is_cancelled()).cloned();
            let placed = match known {
                Some(known) => Some(known),
                None if table.by_id.len() >= self.limit => None,
                None => {
                    table.by_id.insert(Arc::clone(&session.0.id), (session.clone(), Arc::clone(&beside)));
                    Some((session.clone(), beside))
                }
            };
            drop(table);
            end_all(expired);
            placed
        };
        if !placed.as_ref().is_some_and(|(placed, _)| Arc::ptr_eq(&placed.0, &session.0)) {
            session.end();
        }
        placed.ok_or(SessionsFull { limit: self.limit })
    }

    /// The session with this id, if `principal` owns it; it counts as active from now.
    pub fn find(&self, id: &str, principal: &Principal) -> Option<(Session, Arc<T>)> {
        let (found, expired) = {
            let mut table = self.table();
            let expired = table.due(self.idle);
            (table.by_id.get(id).map(|(session, beside)| (session.clone(), Arc::clone(beside))), expired)
        };
        end_all(expired);
        let (session, beside) = found?;
        if session.principal() != principal || session.0.token.is_cancelled() {
            return None;
        }
        session.touch();
        Some((session, beside))
    }

    /// The session with this id, if it is here and `owner`'s. Being asked for does not keep it alive.
    pub fn held(&self, id: &str, owner: OwnerKey) -> Option<(Session, Arc<T>)> {
        let (session, beside) =
            self.table().by_id.get(id).map(|(session, beside)| (session.clone(), Arc::clone(beside)))?;
        (session.owner() == owner && !session.0.token.is_cancelled()).then_some((session, beside))
    }

    /// Ends the session with this id here, whoever owns it.
    pub fn forget(&self, id: &str) {
        let removed = self.table().by_id.remove(id);
        end_all(removed.into_iter().collect());
    }

    /// The sessions that have a stream open or a request under way.
    #[must_use]
    pub fn busy(&self) -> Vec<Session> {
        let table = self.table();
        let busy = table.by_id.values().map(|(session, _)| session).filter(|session| session.is_busy());
        busy.cloned().collect()
    }

    /// Ends the session with this id, if `principal` owns it; returns whether there was one.
    pub fn remove(&self, id: &str, principal: &Principal) -> bool {
        if self.find(id, principal).is_none() {
            return false;
        }
        let removed = self.table().by_id.remove(id);
        match removed {
            Some((session, _)) => {
                session.end();
                true
            }
            None => false,
        }
    }

    /// Ends every session that has been idle for too long.
    pub fn sweep(&self) {
        let expired = self.table().expired(self.idle);
        end_all(expired);
    }

    /// Ends every session.
    pub fn clear(&self) {
        let all = std::mem::take(&mut self.table().by_id);
        end_all(all.into_values().collect());
    }

    /// How many sessions are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table().by_id.len()
    }

    /// Whether none is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> fmt::Debug for Sessions<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("open", &self.len()).field("limit", &self.limit).finish()
    }
}

impl<T> Table<T> {
    /// Removes the expired sessions, if it is time to look.
    fn due(&mut self, idle: Duration) -> Vec<(Session, Arc<T>)> {
        if self.swept.elapsed() >= SWEEP.min(idle) { self.expired(idle) } else { Vec::new() }
    }

    fn expired(&mut self, idle: Duration) -> Vec<(Session, Arc<T>)> {
        self.swept = Instant::now();
        self.by_id.extract_if(|_, (session, _)| session.is_expired(idle)).map(|(_, pair)| pair).collect()
    }
}

/// Outside the table's lock: what ends with a session is not ours.
fn end_all<T>(sessions: Vec<(Session, Arc<T>)>) {
    for (session, _) in sessions {
        session.end();
    }
}
