//! The legacy era over HTTP: sessions, their streams, and requests that outlive their connection.
//!
//! Why here: everything that remembers something between two requests, kept away from the era that does not.
//! Invariants: a session id of another principal and an unknown one get the same answer; losing a stream cancels nothing.
//! Spec: 2025-11-25 basic/transports, "Streamable HTTP"

mod batch;
mod errands;
mod pair;
mod pump;
mod several;
mod stored;
mod stream;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, Response, StatusCode};
use mcp_core::schema::MirroredParameter;
use mcp_core::store::{ErrandKind, Recipient};
use mcp_core::{
    Carrier, Classified, Head, Hint, Left, Legacy, Outbound, Principal, Scope, Session, Sessions, TraceContext,
};
use mcp_wire::{ErrorCode, Message, RawJson, Revision, RpcError, encode_error};

pub(super) use self::batch::answer as answer_batch;
pub(super) use self::pair::{PairBody, Pairs, open as open_pair, post as post_to_pair};
use self::pump::Started;
use self::several::{Down, unavailable};
pub(super) use self::several::{Several, SharedStores};
use self::stored::Keeper;
use self::stream::{EventStream, LiveReader, Placed, Streams};
pub(super) use self::stream::{Keep, Notices, Reader};
use super::body::{HttpBody, event_stream};
use super::guard::{LAST_EVENT_ID, SESSION_ID, empty, json, refusal};
use super::modern::respond;
use super::service::{Sender, Shared};
use crate::codec::accept::Accepted;
use crate::codec::mirror;

/// The sessions of an endpoint, each with its streams.
pub(super) type SessionTable = Sessions<Streams>;

/// Answers a POST of the legacy era.
pub(super) async fn answer(
    shared: &Shared,
    principal: Principal,
    message: Legacy,
    sender: Sender<'_>,
    declared: Option<&str>,
    accepted: Accepted,
) -> Response<HttpBody> {
    if message.is_initialize() {
        return initialize(shared, principal, message).await;
    }
    if !shared.config.sessions {
        return alone(shared, principal, message, sender, declared).await;
    }
    // What owes no answer is about work that is under way: for that, what is here has to do if a store is not there.
    let (session, streams) = match find(shared, &principal, sender.headers, !message.is_request()).await {
        Ok(Some(found)) => found,
        Ok(None) => return refused(shared, &message.unknown_session()),
        Err(Missing::Absent) => return refused(shared, &message.without_session()),
        Err(Missing::Down) => return shared.refused("store", unavailable(message.id())),
    };
    if let Some(text) = other_revision(&session, declared) {
        let frame = encode_error(message.id(), &RpcError::new(ErrorCode::INVALID_REQUEST, text), false);
        return shared.refused("version", json(StatusCode::BAD_REQUEST, frame));
    }
    let owes_answer = message.is_request();
    let carrier = Carried { sender, streams: accepted.event_stream };
    let expires_at = principal.expires_at();
    let peer = shared.server.peer(principal, Scope::Session(session.clone()));
    let id = shared.several.is_some().then(|| message.id().cloned()).flatten();
    let (mut exchange, left) = session.collecting(|| peer.receive_from(Classified::from(message), &carrier));
    if settle(shared, &session, left).await.is_err() {
        return shared.refused("store", unavailable(id.as_ref()));
    }
    if !owes_answer {
        return empty(StatusCode::ACCEPTED);
    }
    // What is ready at once needs no stream.
    let first = pump::at_once(&mut exchange).await;
    match first {
        Some(Outbound::Response(frame, hint)) if accepted.takes_document() || hint != Hint::Ok => {
            respond(shared, frame, &hint)
        }
        first => {
            let stream = streams.open();
            // Whoever takes no stream has no place to come back to.
            let keeper = accepted.event_stream.then(|| keeper(shared, &session, &stream)).flatten();
            pump::start(Vec::new(), vec![Started { exchange, first }], &session, &streams, &stream, keeper.clone());
            if accepted.event_stream {
                return read_from_start(shared, &session, stream, keeper, expires_at).await;
            }
            match stream.response().await {
                Some((frame, hint)) => respond(shared, frame, &hint),
                // The client took its request back, or its session ended.
                None => empty(StatusCode::OK),
            }
        }
    }
}

/// A GET: the rest of a lost stream, or the standalone stream.
pub(super) async fn listen(shared: &Shared, principal: &Principal, headers: &HeaderMap) -> Response<HttpBody> {
    if !Accepted::from_headers(headers).event_stream {
        let text = "the Accept header must allow text/event-stream";
        return shared.refused("accept", refusal(StatusCode::NOT_ACCEPTABLE, ErrorCode::INVALID_REQUEST, text));
    }
    let last_seen = headers.get(LAST_EVENT_ID).filter(|id| !id.as_bytes().trim_ascii().is_empty());
    let (session, streams) = match find(shared, principal, headers, last_seen.is_some()).await {
        Ok(Some(found)) => found,
        Ok(None) => return no_such_session(shared),
        Err(Missing::Absent) => return no_session(shared),
        Err(Missing::Down) => return shared.refused("store", unavailable(None)),
    };
    if let Some(place) = last_seen.and_then(|id| id.to_str().ok()).and_then(Placed::parse) {
        let reader = match (streams.find(&place), &shared.several) {
            (Some(stream), _) => Some(Reader::Here(LiveReader::resumed(stream, &session, shared.config.retry, &place))),
            (None, None) => None,
            (None, Some(several)) => match several.resumed(shared, &session, &place).await {
                Ok(stored) => stored.map(|stored| Reader::Stored(Box::new(stored))),
                Err(_) => return shared.refused("store", unavailable(None)),
            },
        };
        if let Some(reader) = reader {
            return event_stream(HttpBody::legacy(reader, shared.pulse(principal.expires_at())));
        }
    }
    if let Some(several) = &shared.several {
        // Whoever does not hear it may be read for longer; there is no reason not to listen here.
        let _ = several.tell(session.id(), principal, Recipient::Everyone, ErrandKind::Listening).await;
    }
    let notices = streams.listen(session, last_seen.is_some());
    event_stream(HttpBody::notices(notices, shared.pulse(principal.expires_at())))
}

/// A DELETE: the session ends, and everything in it.
pub(super) async fn end(shared: &Shared, principal: &Principal, headers: &HeaderMap) -> Response<HttpBody> {
    let Some(id) = session_id(headers) else { return no_session(shared) };
    let ended = match &shared.several {
        None => Ok(shared.sessions.remove(id, principal)),
        Some(several) => several.end(shared, principal, id).await,
    };
    match ended {
        Ok(true) => empty(StatusCode::NO_CONTENT),
        Ok(false) => no_such_session(shared),
        Err(_) => shared.refused("store", unavailable(None)),
    }
}

async fn initialize(shared: &Shared, principal: Principal, message: Legacy) -> Response<HttpBody> {
    let Message::Request(request) = message.into_message() else { return empty(StatusCode::ACCEPTED) };
    let handshake = shared.server.handshake(&request);
    if !handshake.is_agreed() || !shared.config.sessions {
        return respond(shared, handshake.response, &handshake.hint);
    }
    let response = handshake.response.clone();
    let process = match &shared.several {
        None => None,
        Some(several) => match several.process(shared).await {
            Ok(process) => Some((several, process)),
            Err(_) => return shared.refused("store", unavailable(Some(&request.id))),
        },
    };
    let opened = shared.server.open_session(principal, handshake).and_then(|session| {
        let streams = match process {
            None => Arc::new(Streams::new(shared.keep())),
            Some((several, process)) => {
                session.share(process);
                several.streams(shared, process)
            }
        };
        let id = HeaderValue::from_str(session.id()).map_err(|_| RpcError::internal())?;
        shared.sessions.insert(&session, streams).map(|()| (id, session)).map_err(|full| {
            shared.server.meter().refused("sessions");
            RpcError::new(ErrorCode::INTERNAL_ERROR, full.to_string())
        })
    });
    match opened {
        Ok((id, session)) => {
            if let Some((several, _)) = process
                && several.opened(shared, &session).await.is_err()
            {
                shared.sessions.forget(session.id());
                return shared.refused("store", unavailable(Some(&request.id)));
            }
            let mut response = json(StatusCode::OK, response);
            response.headers_mut().insert(SESSION_ID, id);
            response
        }
        Err(error) => json(StatusCode::SERVICE_UNAVAILABLE, encode_error(Some(&request.id), &error, false)),
    }
}

/// A request without sessions: it stands alone, and its connection is all it has.
async fn alone(
    shared: &Shared,
    principal: Principal,
    message: Legacy,
    sender: Sender<'_>,
    declared: Option<&str>,
) -> Response<HttpBody> {
    // The era is decided; a revision of the other one cannot stand here.
    let revision = declared.and_then(|declared| declared.parse().ok()).unwrap_or(Revision::HTTP_DEFAULT);
    let peer = shared.server.peer(principal, Scope::Stateless(revision));
    let mut exchange = peer.receive_from(Classified::from(message), &Carried { sender, streams: false });
    if exchange.is_over() {
        return empty(StatusCode::ACCEPTED);
    }
    while let Some(item) = exchange.next().await {
        if let Outbound::Response(frame, hint) = item {
            return respond(shared, frame, &hint);
        }
    }
    empty(StatusCode::SERVICE_UNAVAILABLE)
}

/// Legacy requests are not compared with their headers.
struct Carried<'a> {
    sender: Sender<'a>,
    streams: bool,
}

impl Carrier for Carried<'_> {
    fn check_head(&self, _head: &Head<'_>) -> Result<(), String> {
        Ok(())
    }

    fn check_parameter(&self, _parameter: &MirroredParameter, _argument: Option<&RawJson>) -> Result<(), String> {
        Ok(())
    }

    fn streams(&self) -> bool {
        self.streams
    }

    fn trace(&self) -> TraceContext {
        self.sender.trace()
    }

    fn client(&self) -> Option<IpAddr> {
        self.sender.client
    }
}

/// Why nobody can say whether there is such a session.
enum Missing {
    /// The request has no session id, or not exactly one.
    Absent,
    /// The store of sessions is not there.
    Down,
}

type Found = (Session, Arc<Streams>);

/// The session that a request is of. Whoever `makes_do` is content with what is here when a store is not there.
async fn find(
    shared: &Shared,
    principal: &Principal,
    headers: &HeaderMap,
    makes_do: bool,
) -> Result<Option<Found>, Missing> {
    let id = session_id(headers).ok_or(Missing::Absent)?;
    match &shared.several {
        None => Ok(shared.sessions.find(id, principal)),
        Some(several) => several.find(shared, principal, id, makes_do).await.map_err(|_| Missing::Down),
    }
}

/// Does what messages have left to be done elsewhere.
async fn settle(shared: &Shared, session: &Session, left: Left) -> Result<(), Down> {
    match &shared.several {
        Some(several) if !left.is_empty() => several.settle(session, left).await,
        _ => Ok(()),
    }
}

/// What keeps a stream for clients that come back elsewhere, if they can.
fn keeper(shared: &Shared, session: &Session, stream: &EventStream) -> Option<Arc<Keeper>> {
    shared.several.as_ref().map(|several| several.keeper(shared, session, stream))
}

/// The response that is a new stream, whose calls are running.
async fn read_from_start(
    shared: &Shared,
    session: &Session,
    stream: Arc<EventStream>,
    keeper: Option<Arc<Keeper>>,
    expires_at: Option<SystemTime>,
) -> Response<HttpBody> {
    if let Some(keeper) = keeper {
        keeper.begin().await;
    }
    let reader = Reader::Here(LiveReader::from_start(stream, session, shared.config.retry));
    event_stream(HttpBody::legacy(reader, shared.pulse(expires_at)))
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    mirror::exactly_one(headers, &SESSION_ID).ok().flatten().and_then(|id| id.to_str().ok()).map(str::trim)
}

/// What is wrong with the version header of a request in a session; absent, it is the session's.
fn other_revision(session: &Session, declared: Option<&str>) -> Option<String> {
    let declared = declared.filter(|declared| *declared != session.revision().as_str())?;
    Some(format!("this session speaks {}, and the request says {declared:.40}", session.revision()))
}

fn refused(shared: &Shared, rejection: &mcp_core::Rejection) -> Response<HttpBody> {
    let frame = encode_error(rejection.id.as_ref(), &rejection.error, false);
    shared.refused("session", respond(shared, frame, &rejection.hint))
}

fn no_session(shared: &Shared) -> Response<HttpBody> {
    let text = "the Mcp-Session-Id header is needed, once";
    shared.refused("session", refusal(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, text))
}

fn no_such_session(shared: &Shared) -> Response<HttpBody> {
    let text = "there is no such session: send \"initialize\" again";
    shared.refused("session", refusal(StatusCode::NOT_FOUND, ErrorCode::INVALID_REQUEST, text))
}
