//! The pair of endpoints of the first revision: a stream on which everything is said, an address where everything is
//! posted.
//!
//! Why here: the oldest clients know nothing else; to the engine such a pair is a connection like any pipe.
//! Invariants: the stream is the session and its end is the end of everything in it; whoever posts to the session of
//! another principal gets the answer for no session at all; what waits for the stream is bounded.
//! Spec: 2024-11-05 basic/transports, "HTTP with SSE"

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Response, StatusCode, Uri};
use mcp_core::{Connection, Hint, Principal, Split};
use mcp_wire::{ErrorCode, Frame, MessageReader, MessageWriter, RpcError, Transport, TransportError};
use tokio::sync::mpsc;

use super::no_such_session;
use crate::codec::accept::Accepted;
use crate::codec::sse::Event;
use crate::server::body::{HttpBody, event_stream};
use crate::server::guard::{empty, json, refusal};
use crate::server::modern::respond;
use crate::server::service::{Sender, Shared};

/// Messages on their way in and frames on their way out, each. More wait in their requests and in the engine's queue.
const QUEUE: usize = 1;

/// The streams that are open, by session id.
pub(in crate::server) struct Pairs {
    limit: usize,
    open: Mutex<HashMap<Box<str>, Line>>,
}

/// The way to the connection behind a stream.
#[derive(Clone)]
struct Line {
    principal: Principal,
    inbound: mpsc::Sender<Bytes>,
}

impl Pairs {
    pub(in crate::server) fn new(limit: usize) -> Self {
        Self { limit, open: Mutex::default() }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<Box<str>, Line>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` when as many are open as may be.
    fn insert(self: &Arc<Self>, id: String, line: Line) -> Option<Entry> {
        let id: Box<str> = id.into();
        let mut open = self.open();
        if open.len() >= self.limit {
            return None;
        }
        open.insert(id.clone(), line);
        drop(open);
        Some(Entry { pairs: Arc::clone(self), id })
    }

    fn find(&self, id: &str, principal: &Principal) -> Option<Line> {
        let line = self.open().get(id).cloned()?;
        (line.principal == *principal).then_some(line)
    }

    pub(in crate::server) fn len(&self) -> usize {
        self.open().len()
    }

    /// Ends every session: its stream says what is left and ends.
    pub(in crate::server) fn clear(&self) {
        let all = std::mem::take(&mut *self.open());
        drop(all);
    }
}

/// A GET: opens a session, whose first event says where to post.
pub(in crate::server) fn open(
    shared: &Shared,
    messages: &str,
    principal: Principal,
    sender: Sender<'_>,
) -> Response<HttpBody> {
    if !Accepted::from_headers(sender.headers).event_stream {
        let text = "the Accept header must allow text/event-stream";
        return refusal(StatusCode::NOT_ACCEPTABLE, ErrorCode::INVALID_REQUEST, text);
    }
    let unavailable = |text| refusal(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::INTERNAL_ERROR, text);
    let Ok(id) = mcp_core::random_id() else { return unavailable("no session id could be made") };
    let (inbound, received) = mpsc::channel(QUEUE);
    let (said, outbound) = mpsc::channel(QUEUE);
    let Some(entry) = shared.pairs.insert(id, Line { principal: principal.clone(), inbound }) else {
        return shared.refused("sessions", unavailable("there are too many sessions; try again later"));
    };
    let address = format!("{}{messages}?{SESSION_ID}={}", shared.config.public_prefix, entry.id);
    let pulse = shared.pulse(principal.expires_at());
    let mut connection = Connection::new(shared.server.clone()).principal(principal);
    if let Some(client) = sender.client {
        connection = connection.client(client);
    }
    let serving = connection.serve(Channels { received, said });
    event_stream(HttpBody::pair(
        PairBody {
            opening: Some(Event::new(address.as_bytes()).with_name("endpoint").encode()),
            serving: Some(Box::pin(serving)),
            outbound,
            _entry: entry,
        },
        pulse,
    ))
}

/// A POST: one message of a session, whose answer comes on the session's stream.
pub(in crate::server) async fn post(
    shared: &Shared,
    principal: &Principal,
    uri: &Uri,
    body: Bytes,
) -> Response<HttpBody> {
    let Some(id) = session_id(uri) else {
        let text = "the address needs the query parameter \"sessionId\", once: post where the endpoint event says";
        return refusal(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, text);
    };
    let Some(Line { principal: opener, inbound }) = shared.pairs.find(id, principal) else {
        return no_such_session(shared);
    };
    // Everything in the session counts as said by whoever opened it, so that nobody may come with less.
    let lacking: Vec<String> = opener.scopes().filter(|scope| !principal.has_scope(scope)).map(Into::into).collect();
    if !lacking.is_empty() {
        let text = "this proof of identity grants less than the one that opened the stream; open another";
        let frame = mcp_wire::encode_error(None, &RpcError::new(ErrorCode::INVALID_REQUEST, text), false);
        return respond(shared, frame, &Hint::Forbidden { scopes: lacking });
    }
    // Looked at only so far as to refuse here what could not be answered on the stream.
    let message = match Frame::decode(&body, shared.server.limits().decode()) {
        Frame::One(message) => message,
        Frame::Batch(_) => {
            let text = "a batch is not accepted here: send one message per request";
            return refusal(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, text);
        }
        Frame::Malformed(error) => {
            return json(StatusCode::BAD_REQUEST, mcp_wire::encode_error(error.id(), &error.to_rpc(), false));
        }
    };
    if let Split::Modern(_) = shared.server.classify(message, None).split() {
        let text = "this address is for sessions: post a request that names its revision to the other endpoint";
        return refusal(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, text);
    }
    match inbound.send_timeout(body, shared.config.body_timeout).await {
        Ok(()) => empty(StatusCode::ACCEPTED),
        Err(mpsc::error::SendTimeoutError::Closed(_)) => no_such_session(shared),
        Err(mpsc::error::SendTimeoutError::Timeout(_)) => {
            let text = "the session's stream is not read; read it and send the message again";
            refusal(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::INTERNAL_ERROR, text)
        }
    }
}

const SESSION_ID: &str = "sessionId";

/// The session that an address names, if it names exactly one. Ids need no escapes.
fn session_id(uri: &Uri) -> Option<&str> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    let mut ids = pairs.filter(|(name, _)| *name == SESSION_ID).map(|(_, id)| id);
    let id = ids.next()?;
    ids.next().is_none().then_some(id)
}

/// The session while its stream lasts, in the body that carries the stream: whoever loses the one loses the other.
pub(in crate::server) struct PairBody {
    opening: Option<Bytes>,
    serving: Option<Serving>,
    outbound: mpsc::Receiver<Bytes>,
    _entry: Entry,
}

type Serving = Pin<Box<dyn Future<Output = Result<(), TransportError>> + Send>>;

impl PairBody {
    pub(in crate::server) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(opening));
        }
        loop {
            if let Poll::Ready(frame) = self.outbound.poll_recv(context) {
                return Poll::Ready(frame.map(|frame| Event::new(&frame).with_name("message").encode()));
            }
            let Some(serving) = &mut self.serving else { return Poll::Pending };
            let ended = serving.as_mut().poll(context).is_ready();
            if ended {
                // Its writer is gone with it: what it left is read, then the end.
                self.serving = None;
            } else if self.outbound.is_empty() {
                return Poll::Pending;
            }
        }
    }
}

/// A place among the open streams, given back when dropped.
struct Entry {
    pairs: Arc<Pairs>,
    id: Box<str>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.pairs.open().remove(&self.id);
    }
}

/// The transport between the two endpoints and the engine.
struct Channels {
    received: mpsc::Receiver<Bytes>,
    said: mpsc::Sender<Bytes>,
}

struct Received(mpsc::Receiver<Bytes>);
struct Said(mpsc::Sender<Bytes>);

impl Transport for Channels {
    type Reader = Received;
    type Writer = Said;

    fn split(self) -> (Received, Said) {
        (Received(self.received), Said(self.said))
    }
}

impl MessageReader for Received {
    async fn next(&mut self) -> Result<Option<Bytes>, TransportError> {
        Ok(self.0.recv().await)
    }
}

impl MessageWriter for Said {
    async fn send(&mut self, frame: Bytes) -> Result<(), TransportError> {
        self.0.send(frame).await.map_err(|_| TransportError::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_session_once() {
        let id = |address: &str| session_id(&address.parse().unwrap()).map(ToOwned::to_owned);
        assert_eq!(id("/messages?sessionId=a-_1").as_deref(), Some("a-_1"));
        assert_eq!(id("/messages?x=1&sessionId=a&y").as_deref(), Some("a"));
        for none in ["/messages", "/messages?", "/messages?session=a", "/messages?sessionId=a&sessionId=b"] {
            assert_eq!(id(none), None, "{none}");
        }
    }
}
