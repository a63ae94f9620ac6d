//! Sessions that several processes serve: found in a store, told to the others, and what to do when the store is not there.
//!
//! Why here: the rest of this folder serves sessions that are here; this brings them here.
//! Invariants: without stores nothing of this is on a request's path; every wait for a store is bounded; a store that fails
//! refuses requests and takes nothing from those under way; an unknown, a foreign and an ended session look the same.
//! Spec: 2025-11-25 basic/transports, "Session Management"

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::header::{HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use mcp_core::store::{
    AnswerRoute, AnswerRouteError, Errand, ErrandKind, EventStore, Recipient, SessionRecord, SessionStore,
    SessionStoreError,
};
use mcp_core::{Left, Principal, Session};
use mcp_wire::{ErrorCode, RequestId, RpcError, encode_error};
use tokio::sync::OnceCell;

use super::stored::{Keeper, StoredReader};
use super::stream::{EventStream, Placed, Streams};
use super::{Found, errands};
use crate::server::body::HttpBody;
use crate::server::guard::json;
use crate::server::service::Shared;

/// What an endpoint needs to serve its sessions together with others.
#[derive(Clone)]
pub(in crate::server) struct SharedStores {
    pub(in crate::server) sessions: Arc<dyn SessionStore>,
    pub(in crate::server) events: Arc<dyn EventStore>,
    pub(in crate::server) route: Arc<dyn AnswerRoute>,
}

/// The stores of an endpoint, and its name among those that use them.
pub(in crate::server) struct Several {
    pub(super) stores: SharedStores,
    timeout: Duration,
    /// Set when the endpoint has joined, which its first request in a session does.
    process: OnceCell<Arc<str>>,
    /// Streams that were opened here, in all sessions: a session may be here more than once, and names are not used twice.
    numbers: Arc<AtomicU64>,
}

/// A store did not do its work in time; the operator was told.
#[derive(Debug)]
pub(super) struct Down;

/// How old the note of the last message may be.
const RENEWAL: Duration = Duration::from_secs(60);

/// How often a change is tried that others get in the way of.
const ATTEMPTS: usize = 16;

impl Several {
    pub(in crate::server) fn new(stores: SharedStores, timeout: Duration) -> Self {
        Self { stores, timeout, process: OnceCell::new(), numbers: Arc::new(AtomicU64::new(1)) }
    }

    /// The endpoint's name, under which it has joined the route.
    pub(super) async fn process(&self, shared: &Shared) -> Result<&Arc<str>, Down> {
        let joining = self.process.get_or_try_init(|| async {
            let name: Arc<str> = mcp_core::random_id().map_err(|error| down("a name", &error))?.into();
            self.within("joining the route", self.stores.route.join(&name)).await?;
            errands::start(shared, self, &name);
            Ok(name)
        });
        joining.await
    }

    /// What is remembered of the streams of a session here.
    pub(super) fn streams(&self, shared: &Shared, process: &Arc<str>) -> Arc<Streams> {
        Arc::new(Streams::shared(shared.keep(), Arc::clone(process), Arc::clone(&self.numbers)))
    }

    /// Tells the store of a session that was opened here.
    pub(super) async fn opened(&self, shared: &Shared, session: &Session) -> Result<(), Down> {
        let now = shared.server.now_ms();
        let record = session.record(now, expiry(shared, now));
        self.within("creating a session", self.stores.sessions.create(&record)).await?;
        session.follow(&record);
        Ok(())
    }

    /// The session with this id, if `principal` owns it. What is here is enough for whoever `makes_do` when the store does
    /// not answer: for what concerns work under way.
    pub(super) async fn find(
        &self,
        shared: &Shared,
        principal: &Principal,
        id: &str,
        makes_do: bool,
    ) -> Result<Option<Found>, Down> {
        if !is_name(id) {
            return Ok(None);
        }
        let process = self.process(shared).await?;
        let record = match self.current(shared, id).await {
            Ok(record) => record,
            Err(down) if makes_do => return shared.sessions.find(id, principal).map(Some).ok_or(down),
            Err(down) => return Err(down),
        };
        let Some(record) = record.filter(|record| record.owner == principal.key()) else { return Ok(None) };
        let (session, streams) = match shared.sessions.find(id, principal) {
            Some(found) => found,
            None if !shared.server.revisions().contains(&record.revision) => return Ok(None),
            None => {
                let adopted = shared.server.adopt_session(principal.clone(), &record);
                let session = adopted.map_err(|error| down("a session of another process", &error))?;
                session.share(process);
                let adopted = shared.sessions.adopt(&session, self.streams(shared, process));
                adopted.map_err(|full| down("a session of another process", &full))?
            }
        };
        session.follow(&record);
        let now = shared.server.now_ms();
        if now.saturating_sub(record.used_ms) >= millis(RENEWAL.min(shared.server.limits().session_idle / 4))
            && let Ok(false) = self.renew(shared, id).await
        {
            shared.sessions.forget(id);
            return Ok(None);
        }
        Ok(Some((session, streams)))
    }

    /// Notes that the session lives; whether there still is one.
    pub(super) async fn renew(&self, shared: &Shared, id: &str) -> Result<bool, Down> {
        let now = shared.server.now_ms();
        self.within("renewing a session", self.stores.sessions.touch(id, now, expiry(shared, now))).await
    }

    /// Lets a session that is here remember what others had its record remember, or ends it with its record.
    pub(super) async fn reread(&self, shared: &Shared, session: &Session) {
        if let Ok(Some(record)) = self.current(shared, session.id()).await {
            session.follow(&record);
        }
    }

    /// Ends a session everywhere; whether `principal` had it.
    pub(super) async fn end(&self, shared: &Shared, principal: &Principal, id: &str) -> Result<bool, Down> {
        if !is_name(id) {
            return Ok(false);
        }
        self.process(shared).await?;
        let record = self.current(shared, id).await?;
        if record.is_none_or(|record| record.owner != principal.key()) {
            return Ok(false);
        }
        let removed = self.within("ending a session", self.stores.sessions.remove(id)).await?;
        shared.sessions.forget(id);
        if removed {
            // Whoever does not hear it sees it in the store.
            let _ = self.tell(id, principal, Recipient::Everyone, ErrandKind::Ended).await;
            let _ = self.within("removing events", self.stores.events.remove_session(id)).await;
        }
        Ok(removed)
    }

    /// Does what messages have left to be done elsewhere.
    pub(super) async fn settle(&self, session: &Session, left: Left) -> Result<(), Down> {
        let doing = async {
            if !left.changes.is_empty() {
                self.remember(session, &left).await?;
                let _ = self.tell(session.id(), session.principal(), Recipient::Everyone, ErrandKind::Changed).await;
            }
            for (to, kind) in left.errands {
                self.tell(session.id(), session.principal(), to, kind).await?;
            }
            Ok(())
        };
        let done = tokio::time::timeout(self.timeout, doing).await;
        let done = done.unwrap_or_else(|late| Err(down("telling other processes", &late)));
        if done.is_err() {
            session.doubt();
        }
        done
    }

    /// Brings an errand to others. One for a process that is gone is done: nobody waits there.
    pub(super) async fn tell(
        &self,
        session: &str,
        owner: &Principal,
        to: Recipient,
        kind: ErrandKind,
    ) -> Result<(), Down> {
        let Some(process) = self.process.get() else { return Ok(()) };
        let errand = Errand::new(&**process, session, owner.key(), kind);
        match self.limited(self.stores.route.send(&to, &errand)).await {
            Ok(()) | Err(Failure::Refused(AnswerRouteError::NoProcess)) => Ok(()),
            // It has reached everyone who fetches what is for them.
            Err(Failure::Refused(AnswerRouteError::Full { .. })) if to == Recipient::Everyone => Ok(()),
            Err(failure) => Err(failure.told("an errand")),
        }
    }

    /// A stream that another process has written, or this one and does not keep any more; `None` if nothing is known of it.
    pub(super) async fn resumed(
        &self,
        shared: &Shared,
        session: &Session,
        place: &Placed,
    ) -> Result<Option<StoredReader>, Down> {
        let Some((process, stream)) = place.names() else { return Ok(None) };
        let reader = StoredReader::open(self.stores.events.clone(), shared, session, place);
        let Some(reader) = self.within("reading events", reader).await? else { return Ok(None) };
        let kind = ErrandKind::Resumed { stream };
        let _ = self.tell(session.id(), session.principal(), Recipient::Process(process.to_owned()), kind).await;
        Ok(Some(reader))
    }

    /// Keeps what a stream says for clients that come back elsewhere.
    pub(super) fn keeper(&self, shared: &Shared, session: &Session, stream: &EventStream) -> Arc<Keeper> {
        let events = Arc::clone(&self.stores.events);
        Arc::new(Keeper::new(events, shared.server.clone(), session, stream, self.timeout))
    }

    /// The session's record, unless it is over; what is here of a session that is over ends.
    async fn current(&self, shared: &Shared, id: &str) -> Result<Option<SessionRecord>, Down> {
        let record = self.within("loading a session", self.stores.sessions.load(id)).await?;
        let record = record.filter(|record| !record.is_expired(shared.server.now_ms()));
        if record.is_none() {
            shared.sessions.forget(id);
        }
        Ok(record)
    }

    async fn remember(&self, session: &Session, left: &Left) -> Result<(), Down> {
        for _ in 0..ATTEMPTS {
            let record = self.within("loading a session", self.stores.sessions.load(session.id())).await?;
            // A session that has ended has nothing to remember.
            let Some(record) = record else { return Ok(()) };
            let next = record.changed(&left.changes);
            match self.limited(self.stores.sessions.replace(&next)).await {
                Ok(()) => {
                    session.follow(&next);
                    return Ok(());
                }
                Err(Failure::Refused(SessionStoreError::Conflict)) => {}
                Err(Failure::Refused(SessionStoreError::Missing)) => return Ok(()),
                Err(failure) => return Err(failure.told("changing a session")),
            }
        }
        Err(down("changing a session", &SessionStoreError::Conflict))
    }

    pub(super) async fn within<T, E: Error>(
        &self,
        what: &'static str,
        doing: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Down> {
        self.limited(doing).await.map_err(|failure| failure.told(what))
    }

    async fn limited<T, E: Error>(&self, doing: impl Future<Output = Result<T, E>>) -> Result<T, Failure<E>> {
        match tokio::time::timeout(self.timeout, doing).await {
            Ok(done) => done.map_err(Failure::Refused),
            Err(late) => Err(Failure::Late(late)),
        }
    }
}

/// What came of asking a store.
enum Failure<E> {
    Refused(E),
    Late(tokio::time::error::Elapsed),
}

impl<E: Error> Failure<E> {
    fn told(self, what: &'static str) -> Down {
        match self {
            Self::Refused(error) => down(what, &error),
            Self::Late(late) => down(what, &late),
        }
    }
}

fn down(what: &'static str, error: &dyn Error) -> Down {
    let cause = error.source().map(ToString::to_string);
    tracing::warn!(what, %error, cause, "what is shared with other processes is not available");
    Down
}

/// The answer to a request that could not be served for want of a store.
pub(super) fn unavailable(id: Option<&RequestId>) -> Response<HttpBody> {
    let text = "what this server shares with others is not available; try again";
    let frame = encode_error(id, &RpcError::new(ErrorCode::INTERNAL_ERROR, text), false);
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, frame);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Whether this may name anything: what cannot does not reach the store.
pub(super) fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=64).contains(&text.len()) && text.bytes().all(is_letter)
}

fn expiry(shared: &Shared, now_ms: u64) -> u64 {
    now_ms.saturating_add(millis(shared.server.limits().session_idle))
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
