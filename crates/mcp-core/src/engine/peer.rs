//! The scope in which request ids are unique: one request, one session, or one connection.
//!
//! Why here: what a message may refer to (a request to cancel, an answer awaited) ends at this border.
//! Invariants: one id is under way once; a cancellation reaches only requests of the same peer; ids 0 and "" are ids.
//! Spec: 2026-07-28 basic/patterns/cancellation; 2025-11-25 basic/utilities/cancellation

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcp_wire::types::CancelledParams;
use mcp_wire::{ErrorCode, Message, Method, Notification, Request, RequestId, Revision, RpcError, encode_error};
use tokio::sync::Notify;

use super::exchange::Exchange;
use super::hub::Subscriber;
use super::sessions::Session;
use crate::context::CallState;
use crate::methods::{self, Incoming};
use crate::protocol::admit::{self, Carrier, Classified, Legacy, Modern, ModernMessage, Pipe, Split};
use crate::protocol::rejection::{self, Rejection};
use crate::telemetry::{self, Observed, Seen};
use crate::tool::ToolEntry;
use crate::trace::TraceContext;
use crate::{ClientFacts, Principal, Server};

/// Where the messages of a peer come from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Scope {
    /// Each message stands alone. Legacy ones count as [`Revision::HTTP_DEFAULT`].
    Single,
    /// Each message stands alone, and legacy ones speak this revision.
    Stateless(Revision),
    /// The messages belong to a session.
    Session(Session),
    /// The messages come over one connection, whose handshake, if any, is its session.
    Connection,
}

/// One side of a conversation with a client.
pub struct Peer {
    server: Server,
    principal: Principal,
    scope: Inner,
}

enum Inner {
    Single(Revision),
    Session(Session),
    Connection { ids: Arc<Ids>, session: OnceLock<Session> },
}

impl Peer {
    pub(crate) fn new(server: Server, principal: Principal, scope: Scope) -> Self {
        let scope = match scope {
            Scope::Single => Inner::Single(Revision::HTTP_DEFAULT),
            Scope::Stateless(revision) => Inner::Single(revision),
            Scope::Session(session) => Inner::Session(session),
            Scope::Connection => {
                let ids = Arc::new(Ids::new(server.limits().in_flight_per_peer));
                Inner::Connection { ids, session: OnceLock::new() }
            }
        };
        Self { server, principal, scope }
    }

    /// A connection on which this many requests may be under way or wait.
    pub(crate) fn connection(server: Server, principal: Principal, room: usize) -> Self {
        let scope = Inner::Connection { ids: Arc::new(Ids::new(room)), session: OnceLock::new() };
        Self { server, principal, scope }
    }

    /// Takes a message and returns what is said in reply. Nothing runs until the exchange is polled.
    #[must_use]
    pub fn receive(&self, message: Classified) -> Exchange {
        self.receive_from(message, &Pipe::new())
    }

    /// As [`Self::receive`], for a carrier that repeats parts of a message in headers.
    #[must_use]
    pub fn receive_from(&self, message: Classified, carrier: &dyn Carrier) -> Exchange {
        match message.split() {
            Split::Modern(message) => self.modern(message, carrier),
            Split::Legacy(message) => self.legacy(message, carrier),
            Split::Refused(rejection) => refused(&self.server, &rejection, self.revision()),
        }
    }

    fn modern(&self, message: Modern, carrier: &dyn Carrier) -> Exchange {
        let Modern { message, claim } = message;
        let request = match message {
            ModernMessage::Request(request) => request,
            ModernMessage::Notification(notification) => {
                self.notified(&notification);
                return Exchange::silent();
            }
        };
        let registry = self.server.registry();
        let tool = methods::tool_of(&registry, &request, self.server.access(), &self.principal);
        let trace = TraceContext::received(&request.params, carrier);
        let observed = self.observe(&request, Revision::NEWEST, tool, &trace, carrier);
        let exchange = Observed::within(observed.as_deref(), || {
            let facts = self.server.facts(&request.method, tool.map(|tool| &tool.rules));
            let admitted = match admit::admit_modern(&request, claim, &facts, &self.principal, carrier) {
                Ok(admitted) => admitted,
                Err(rejection) => return refused(&self.server, &rejection, Some(Revision::NEWEST)),
            };
            let Request { id, method, params } = request;
            methods::serve(Incoming {
                server: self.server.clone(),
                principal: self.principal.clone(),
                revision: admitted.revision,
                client: admitted.client,
                id,
                method,
                params,
                tool: tool.cloned(),
                trace,
                log_level: admitted.log_level,
                progress_token: admitted.progress_token,
                session: None,
                ids: self.ids().cloned(),
                streaming: carrier.streams(),
            })
        });
        exchange.observed(observed)
    }

    /// Begins to tell of a request, if somebody listens.
    fn observe(
        &self,
        request: &Request,
        revision: Revision,
        tool: Option<&Arc<ToolEntry>>,
        trace: &TraceContext,
        carrier: &dyn Carrier,
    ) -> Option<Box<Observed>> {
        let (server, principal) = (&self.server, &self.principal);
        Observed::begin(&Seen { server, principal, request, revision, tool, trace, carrier })
    }

    fn legacy(&self, message: Legacy, carrier: &dyn Carrier) -> Exchange {
        let Legacy { message } = message;
        let session = self.session();
        let request = match message {
            Message::Request(request) => request,
            Message::Notification(notification) => {
                self.notified(&notification);
                return Exchange::silent();
            }
            Message::Response(response) => {
                if let Some(session) = session {
                    session.answered(response);
                }
                return Exchange::silent();
            }
        };
        if request.method == Method::Initialize {
            return self.initialize(&request);
        }
        let (revision, client) = match (session, &self.scope) {
            (Some(session), _) => (session.revision(), session.client().clone()),
            // Sessions are off: nothing is known of the client but what it speaks.
            (None, Inner::Single(revision)) if self.server.revisions().contains(revision) => {
                (*revision, ClientFacts::default())
            }
            (None, Inner::Single(revision)) => {
                let error = rejection::unsupported_version(revision.as_str(), self.server.revisions());
                return refused(&self.server, &Rejection::bad_request(Some(request.id), error), Some(*revision));
            }
            (None, _) if request.method == Method::Ping => (Revision::NEWEST_LEGACY, ClientFacts::default()),
            (None, _) => {
                let rejection = Legacy { message: Message::Request(request) }.without_session();
                return refused(&self.server, &rejection, None);
            }
        };
        let registry = self.server.registry();
        let tool = methods::tool_of(&registry, &request, self.server.access(), &self.principal);
        let trace = TraceContext::received(&request.params, carrier);
        let observed = self.observe(&request, revision, tool, &trace, carrier);
        let exchange = Observed::within(observed.as_deref(), || {
            let facts = self.server.facts(&request.method, tool.map(|tool| &tool.rules));
            let progress_token = match admit::admit_legacy(&request, revision, &client, &facts, &self.principal) {
                Ok(token) => token,
                Err(rejection) => return refused(&self.server, &rejection, Some(revision)),
            };
            let Request { id, method, params } = request;
            methods::serve(Incoming {
                server: self.server.clone(),
                principal: self.principal.clone(),
                revision,
                client,
                id,
                method,
                params,
                tool: tool.cloned(),
                trace,
                log_level: None,
                progress_token,
                session: session.cloned(),
                ids: self.ids().cloned(),
                streaming: carrier.streams(),
            })
        });
        exchange.observed(observed)
    }

    /// The handshake of a connection. Over other scopes the carrier opens the session: see [`Server::handshake`].
    fn initialize(&self, request: &Request) -> Exchange {
        let Inner::Connection { ids, session } = &self.scope else {
            let handshake = self.server.handshake(request);
            return Exchange::ready(handshake.response, handshake.hint);
        };
        let handshake = self.server.handshake(request);
        if let Some(agreement) = handshake.agreement {
            if session.get().is_some() {
                let error = RpcError::new(ErrorCode::INVALID_REQUEST, "this connection is initialized already");
                let rejection = Rejection::in_band(Some(request.id.clone()), error);
                return refused(&self.server, &rejection, self.revision());
            }
            match self.server.new_session(self.principal.clone(), agreement, Arc::clone(ids)) {
                Ok(opened) => {
                    // Only one message is received at a time, so nobody came in between.
                    let _ = session.set(opened);
                }
                Err(error) => {
                    return refused(&self.server, &Rejection::in_band(Some(request.id.clone()), error), None);
                }
            }
        }
        Exchange::ready(handshake.response, handshake.hint)
    }

    fn notified(&self, notification: &Notification) {
        if notification.method != Method::Cancelled {
            // Unknown notifications are never answered; the known ones change nothing here.
            return;
        }
        let Some(ids) = self.ids() else { return };
        let params: Option<CancelledParams> = notification.params.raw().and_then(|params| params.parse().ok());
        if let Some(id) = params.and_then(|params| params.request_id)
            && !ids.withdraw(&id)
            && let Some(session) = self.session()
        {
            session.not_found(id);
        }
    }

    /// The session of this peer's messages: the one it was made for, or the one that the handshake of its connection
    /// opened. It tells what is due to the client that no request caused: see [`Session::poll_notice`].
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        match &self.scope {
            Inner::Single(_) => None,
            Inner::Session(session) => Some(session),
            Inner::Connection { session, .. } => session.get(),
        }
    }

    /// The client says nothing more: its subscriptions get their closing result, and what it is asked has no answer.
    pub(crate) fn input_ended(&self) {
        if let Some(ids) = self.ids() {
            ids.close_subscriptions();
        }
        if let Some(session) = self.session() {
            session.expect_no_answers();
        }
    }

    /// Completes when no request is under way and no handler of a cancelled one still runs.
    pub(crate) async fn idle(&self) {
        if let Some(ids) = self.ids() {
            ids.emptied().await;
        }
    }

    fn revision(&self) -> Option<Revision> {
        self.session().map(Session::revision)
    }

    fn ids(&self) -> Option<&Arc<Ids>> {
        match &self.scope {
            Inner::Single(_) => None,
            Inner::Session(session) => Some(session.ids()),
            Inner::Connection { ids, .. } => Some(ids),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A session of a connection ends with it; others belong to their table.
        if let Inner::Connection { session, .. } = &self.scope
            && let Some(session) = session.get()
        {
            session.end();
        }
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("principal", &self.principal).finish_non_exhaustive()
    }
}

/// The exchange that refuses a message.
pub(crate) fn refused(server: &Server, rejection: &Rejection, revision: Option<Revision>) -> Exchange {
    telemetry::refused(server, rejection);
    // Before a revision is known, the newest way of leaving an unreadable id out is understood by all.
    let null_id = revision.is_some_and(|revision| !revision.rules().error_without_id);
    let frame = encode_error(rejection.id.as_ref(), &rejection.error, null_id);
    Exchange::failed(frame, rejection.hint.clone(), rejection.error.code)
}

/// The requests of one peer that are under way.
pub(crate) struct Ids {
    limit: usize,
    table: Mutex<HashMap<RequestId, Option<Interruptible>>>,
    emptied: Notify,
}

/// What a cancellation of the peer reaches.
#[derive(Clone)]
pub(crate) enum Interruptible {
    Call(Arc<CallState>),
    Listen(Arc<Subscriber>),
}

impl Interruptible {
    fn withdraw(&self) {
        match self {
            Self::Call(state) => {
                state.cancellation.cancel();
                state.outbox.withdraw();
            }
            Self::Listen(subscriber) => subscriber.withdraw(),
        }
    }
}

impl Ids {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, table: Mutex::default(), emptied: Notify::new() }
    }

    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, Option<Interruptible>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an id until the returned place is dropped.
    pub(crate) fn enter(self: &Arc<Self>, id: &RequestId) -> Result<InFlight, RpcError> {
        let mut table = self.table();
        if table.contains_key(id) {
            let text = format!("request id {id} is already under way");
            return Err(RpcError::new(ErrorCode::INVALID_REQUEST, text));
        }
        if table.len() >= self.limit {
            let text = format!("{} requests are already under way; send more when one has ended", self.limit);
            return Err(RpcError::new(ErrorCode::INTERNAL_ERROR, text));
        }
        table.insert(id.clone(), None);
        Ok(InFlight { ids: Arc::clone(self), id: id.clone() })
    }

    /// Takes a request back; whether it is under way here.
    pub(crate) fn withdraw(&self, id: &RequestId) -> bool {
        let known = self.table().get(id).cloned();
        if let Some(Some(found)) = &known {
            found.withdraw();
        }
        known.is_some()
    }

    /// The conversation is over.
    pub(crate) fn withdraw_all(&self) {
        let all: Vec<_> = self.table().values().flatten().cloned().collect();
        for each in all {
            each.withdraw();
        }
    }

    fn close_subscriptions(&self) {
        for target in self.table().values().flatten() {
            if let Interruptible::Listen(subscriber) = target {
                subscriber.close();
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table().is_empty()
    }

    async fn emptied(&self) {
        loop {
            let mut notified = std::pin::pin!(self.emptied.notified());
            // Before the look, so that nothing is missed in between.
            notified.as_mut().enable();
            if self.is_empty() {
                return;
            }
            notified.await;
        }
    }
}

/// A place among the requests under way, given back when dropped.
pub(crate) struct InFlight {
    ids: Arc<Ids>,
    id: RequestId,
}

impl InFlight {
    /// Says what a cancellation of this request is to reach.
    pub(crate) fn reaches(&self, target: Interruptible) {
        if let Some(place) = self.ids.table().get_mut(&self.id) {
            *place = Some(target);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut table = self.ids.table();
        table.remove(&self.id);
        if table.is_empty() {
            drop(table);
            self.ids.emptied.notify_waiters();
        }
    }
}
