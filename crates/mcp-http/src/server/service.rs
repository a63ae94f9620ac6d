//! The endpoint as a service: the way of every request, up to the one fork between the eras.
//!
//! Why here: mounts in any router; the checks come in one order whatever carries the request.
//! Invariants: nothing is read of a request from the wrong place or the wrong caller; the era is the engine's to decide.
//! Spec: 2026-07-28 basic/transports/streamable-http, "Sending Messages to the Server"

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use mcp_auth::{AuthError, AuthRequest, Challenge};
use mcp_core::{Open, Principal, Server, Split, TraceContext};
use mcp_wire::{Era, ErrorCode, Frame, Message};
use tokio_util::sync::CancellationToken;

use super::body::{HttpBody, Pulse};
use super::config::HttpConfig;
use super::guard::{self, PROTOCOL_VERSION, Place, empty, json, refusal};
use super::in_flight::{Caller, Counted, InFlight};
use super::legacy::{Keep, Pairs, SessionTable, Several};
use super::{legacy, modern};
use crate::codec::accept::{Accepted, content_type_is_json};
use crate::codec::mirror;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");

/// A server at an HTTP endpoint. Cheap to clone; every clone is the same endpoint with the same sessions.
#[derive(Clone)]
pub struct HttpService(Arc<Shared>);

pub(super) struct Shared {
    pub(super) server: Server,
    pub(super) config: HttpConfig,
    pub(super) sessions: SessionTable,
    pub(super) pairs: Arc<Pairs>,
    /// The stores, where several processes serve the sessions.
    pub(super) several: Option<Several>,
    pub(super) this: Weak<Self>,
    /// Is cancelled with the endpoint, or with the server.
    pub(super) gone: CancellationToken,
    /// Whether change notices are exchanged with other processes.
    exchanging: AtomicBool,
    in_flight: InFlight,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

/// What a request's head says of its sender.
#[derive(Clone, Copy)]
pub(super) struct Sender<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) client: Option<IpAddr>,
}

impl Sender<'_> {
    /// The trace that the headers name. Several `tracestate` or `baggage` headers are one list; of them the first counts.
    pub(super) fn trace(self) -> TraceContext {
        // Cheaper than to look for each: hardly a request has any.
        if !self.headers.keys().any(|name| *name == TRACEPARENT || *name == BAGGAGE) {
            return TraceContext::default();
        }
        let text = |name: &HeaderName| self.headers.get(name).and_then(|value| value.to_str().ok());
        let (parent, baggage) = (text(&TRACEPARENT), text(&BAGGAGE));
        if parent.is_none() && baggage.is_none() {
            return TraceContext::default();
        }
        TraceContext::new(parent, text(&TRACESTATE), baggage)
    }
}

impl HttpService {
    /// Serves `server` as `config` says.
    #[must_use]
    pub fn new(server: Server, mut config: HttpConfig) -> Self {
        // Only the legacy era has sessions, and with them GET and DELETE.
        config.sessions &= server.revisions().iter().any(|revision| revision.era() == Era::Legacy);
        let limits = server.limits();
        let sessions = SessionTable::new(limits.sessions, limits.session_idle);
        let pairs = Arc::new(Pairs::new(limits.sessions));
        let several = config.shared.clone().filter(|_| config.sessions);
        let several = several.map(|stores| Several::new(stores, config.store_timeout));
        let gone = server.stopped().child_token();
        Self(Arc::new_cyclic(|this| Shared {
            server,
            config,
            sessions,
            pairs,
            several,
            this: this.clone(),
            gone,
            exchanging: AtomicBool::new(false),
            in_flight: InFlight::default(),
        }))
    }

    /// The server behind the endpoint.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.0.server
    }

    /// The endpoint's path; `None` when it serves any.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.0.config.path.as_deref()
    }

    /// Whether the configuration says under which names the endpoint is called and which pages may call it.
    pub(super) fn names_callers(&self) -> bool {
        self.0.config.named == (true, true)
    }

    /// How many legacy sessions are open, idle ones that nobody has ended yet included.
    #[must_use]
    pub fn open_sessions(&self) -> usize {
        self.0.sessions.len() + self.0.pairs.len()
    }

    /// Ends idle legacy sessions. [`Listener`](super::Listener) does so every minute; whoever mounts the service
    /// elsewhere may, and otherwise the next request that concerns a session does.
    pub fn sweep(&self) {
        self.0.sessions.sweep();
    }

    /// Ends every legacy session.
    pub fn end_sessions(&self) {
        self.0.sessions.clear();
        self.0.pairs.clear();
    }

    /// Answers one request.
    ///
    /// Dropping the future, or later the body, is how a client's disappearance is told: it cancels a modern request and
    /// leaves a legacy one running.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<HttpBody>
    where
        B: Body<Data = Bytes>,
    {
        self.respond_to(request, None).await
    }

    /// As [`Self::respond`], with the address at the other end of the connection: the client's, unless it is a proxy's that
    /// the configuration trusts and that says whose it is.
    pub async fn respond_to<B>(&self, request: Request<B>, peer: Option<SocketAddr>) -> Response<HttpBody>
    where
        B: Body<Data = Bytes>,
    {
        let (parts, body) = request.into_parts();
        let shared = &*self.0;
        if let Some(response) = guard::metadata(&shared.config, &parts) {
            return response;
        }
        if let Some(response) = guard::health(&shared.config, &parts, !shared.server.is_closing()) {
            return response;
        }
        let Some(place) = guard::place(&shared.config, &parts) else {
            return shared.refused("path", empty(StatusCode::NOT_FOUND));
        };
        let origin = match guard::check_source(&shared.config, &parts.uri, &parts.headers) {
            Ok(origin) => origin.cloned(),
            Err(refused) => return shared.refused("source", refused),
        };
        let client = shared.config.proxies.client(peer, &parts.headers);
        let mut response = shared.route(place, &parts, body, client).await;
        if let Some(origin) = origin {
            guard::share(&mut response, origin);
        }
        response
    }
}

impl Shared {
    /// Counts a refusal, whose reason is one of few words.
    pub(super) fn refused(&self, reason: &'static str, response: Response<HttpBody>) -> Response<HttpBody> {
        self.server.meter().refused(reason);
        response
    }

    async fn route<B>(&self, place: Place<'_>, parts: &Parts, body: B, client: Option<SocketAddr>) -> Response<HttpBody>
    where
        B: Body<Data = Bytes>,
    {
        match (place, &parts.method) {
            (_, &Method::OPTIONS) => return guard::preflight(&self.config, place, &parts.headers),
            (Place::Endpoint | Place::PairMessages, &Method::POST) | (Place::PairStream(_), &Method::GET) => {}
            (Place::Endpoint, &Method::GET | &Method::DELETE) if self.config.sessions => {}
            _ => return self.refused("method", self.wrong_method(place)),
        }
        let Some(mut counted) = self.in_flight.enter(self.config.max_in_flight) else {
            return self.refused("in_flight", guard::overloaded());
        };
        let principal = match self.authenticate(parts, client).await {
            Ok(principal) => principal,
            Err(error) => return self.refused("credentials", self.refuse(&error)),
        };
        // Where one may have all, nobody is told apart.
        if self.config.max_in_flight_per_caller < self.config.max_in_flight
            && !counted.is_of(Caller::of(&principal, client), self.config.max_in_flight_per_caller)
        {
            return self.refused("in_flight", guard::too_many());
        }
        self.exchange_notices();
        let sender = Sender { headers: &parts.headers, client: client.map(|client| client.ip()) };
        match (place, &parts.method) {
            (Place::PairStream(messages), _) => legacy::open_pair(self, messages, principal, sender),
            (Place::PairMessages, _) => match self.read_json(&parts.headers, body).await {
                Ok(body) => legacy::post_to_pair(self, &principal, &parts.uri, body).await,
                Err(refused) => refused,
            },
            (Place::Endpoint, &Method::GET) => legacy::listen(self, &principal, &parts.headers).await,
            (Place::Endpoint, &Method::DELETE) => legacy::end(self, &principal, &parts.headers).await,
            (Place::Endpoint, _) => self.post(principal, sender, body, counted).await,
        }
    }

    /// Begins to exchange change notices with other processes, once, if there is a bus to do it over.
    fn exchange_notices(&self) {
        if !self.server.shares_notices() || self.exchanging.swap(true, Ordering::Relaxed) {
            return;
        }
        let (server, gone) = (self.server.clone(), self.gone.clone());
        #[expect(clippy::disallowed_methods, reason = "ends with the endpoint or the server, whichever is first")]
        tokio::spawn(async move { gone.run_until_cancelled(server.share_notices()).await });
    }

    /// How much of a session's streams is kept.
    pub(super) fn keep(&self) -> Keep {
        Keep { events: self.config.replay_events, streams: self.config.replay_streams, bytes: self.config.replay_bytes }
    }

    /// The body of a POST to the pair.
    async fn read_json<B>(&self, headers: &HeaderMap, body: B) -> Result<Bytes, Response<HttpBody>>
    where
        B: Body<Data = Bytes>,
    {
        if !content_type_is_json(headers) {
            return Err(self.refused("content_type", not_json()));
        }
        self.read_body(body).await
    }

    async fn read_body<B>(&self, body: B) -> Result<Bytes, Response<HttpBody>>
    where
        B: Body<Data = Bytes>,
    {
        guard::read_body(&self.config, body).await.map_err(|response| self.refused("body", response))
    }

    async fn post<B>(&self, principal: Principal, sender: Sender<'_>, body: B, counted: Counted) -> Response<HttpBody>
    where
        B: Body<Data = Bytes>,
    {
        let headers = sender.headers;
        if !content_type_is_json(headers) {
            return self.refused("content_type", not_json());
        }
        let accepted = Accepted::from_headers(headers);
        if !accepted.json && !accepted.event_stream {
            let text = "the Accept header must allow application/json, text/event-stream, or both";
            return self.refused("accept", refusal(StatusCode::NOT_ACCEPTABLE, ErrorCode::INVALID_REQUEST, text));
        }
        let version = match mirror::exactly_one(headers, &PROTOCOL_VERSION) {
            Ok(version) => version,
            Err(error) => {
                let text = format!("mcp-protocol-version: {error}");
                let response = refusal(StatusCode::BAD_REQUEST, ErrorCode::HEADER_MISMATCH, text);
                return self.refused("header_mismatch", response);
            }
        };
        let declared = version.map(|value| String::from_utf8_lossy(value.as_bytes()));
        let declared = declared.as_deref().map(str::trim);
        let body = match self.read_body(body).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let message = match Frame::decode(&body, self.server.limits().decode()) {
            Frame::One(message) => message,
            Frame::Batch(elements) => {
                let response = legacy::answer_batch(self, principal, elements, sender, declared, accepted).await;
                return response.map(|body| body.counted(counted));
            }
            Frame::Malformed(error) => {
                let frame = mcp_wire::encode_error(error.id(), &error.to_rpc(), false);
                return self.refused("syntax", json(StatusCode::BAD_REQUEST, frame));
            }
        };
        let owes_answer = matches!(message, Message::Request(_));
        // What only listens is a subscription, and counted as one.
        let listens =
            matches!(&message, Message::Request(request) if request.method == mcp_wire::Method::SubscriptionsListen);
        let response = match self.server.classify(message, declared).split() {
            Split::Modern(message) => modern::answer(self, principal, message, sender, version, accepted).await,
            Split::Legacy(message) => legacy::answer(self, principal, message, sender, declared, accepted).await,
            Split::Refused(rejection) => {
                let id = rejection.id.as_ref().filter(|_| owes_answer);
                let frame = mcp_wire::encode_error(id, &rejection.error, false);
                self.refused("envelope", modern::respond(self, frame, &rejection.hint))
            }
        };
        if listens { response } else { response.map(|body| body.counted(counted)) }
    }

    async fn authenticate(&self, parts: &Parts, client: Option<SocketAddr>) -> Result<Principal, AuthError> {
        let mut request = AuthRequest::new(&parts.method, &parts.uri, &parts.headers);
        if let Some(client) = client {
            request = request.with_peer(client);
        }
        match self.config.auth.immediate(&request) {
            Some(outcome) => outcome,
            None => self.config.auth.authenticate(request).await,
        }
    }

    /// What the provider says to a refused caller, who is led to the metadata where there are some.
    pub(super) fn challenge_to(&self, error: &AuthError) -> Challenge {
        let challenge = self.config.auth.challenge(error);
        match &self.config.resource {
            Some(resource) => challenge.leading_to(resource),
            None => challenge,
        }
    }

    /// The sign of life and the end of a stream for a caller whose proof of identity holds until `expires_at`.
    pub(super) fn pulse(&self, expires_at: Option<SystemTime>) -> Pulse {
        let left = expires_at.map(|moment| self.server.time_until(moment));
        Pulse::new(self.config.keep_alive, left, self.server.meter().opened(Open::Stream))
    }

    fn refuse(&self, error: &AuthError) -> Response<HttpBody> {
        let challenge = self.challenge_to(error);
        let mut response = Response::new(HttpBody::whole(Bytes::from(challenge.body.into_owned())));
        *response.status_mut() = challenge.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(header) = challenge.www_authenticate {
            response.headers_mut().insert(WWW_AUTHENTICATE, header);
        }
        response
    }

    fn wrong_method(&self, place: Place<'_>) -> Response<HttpBody> {
        let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
        response.headers_mut().insert(ALLOW, guard::methods(&self.config, place));
        response
    }
}

fn not_json() -> Response<HttpBody> {
    let text = "the body's Content-Type must be application/json";
    refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::INVALID_REQUEST, text)
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.respond(request).await) })
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("server", &self.0.server).finish_non_exhaustive()
    }
}
