//! Batches of the one revision that has them: several messages in one request, their responses in one array or stream.
//!
//! Why here: everywhere else one request is one message, and should not have to think of more.
//! Invariants: a batch is refused as a whole before any of its messages is acted on; a bad element costs an error of its
//! own and nothing else; as everywhere in a session, losing the connection cancels nothing.
//! Spec: 2025-03-26 basic, "Batching"; basic/transports, "Sending Messages to the Server"

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use futures_core::Stream as _;
use http::{Response, StatusCode};
use mcp_core::{Classified, Exchange, Outbound, Peer, Principal, Scope, Split};
use mcp_wire::{DecodeError, ErrorCode, Message, Revision, join_batch};
use tokio::sync::oneshot;

use super::pump::{self, Started};
use super::several::unavailable;
use super::{
    Carried, Found, Missing, find, keeper, no_session, no_such_session, other_revision, read_from_start, settle,
};
use crate::codec::accept::Accepted;
use crate::server::body::HttpBody;
use crate::server::guard::{empty, json, refusal};
use crate::server::service::{Sender, Shared};

/// The elements of a batch, each of which may be no message.
pub(in crate::server) type Elements = Vec<Result<Message, DecodeError>>;

/// Answers a POST whose body is an array.
pub(in crate::server) async fn answer(
    shared: &Shared,
    principal: Principal,
    elements: Elements,
    sender: Sender<'_>,
    declared: Option<&str>,
    accepted: Accepted,
) -> Response<HttpBody> {
    let found = if shared.config.sessions {
        match find(shared, &principal, sender.headers, false).await {
            Ok(Some(found)) => Some(found),
            Ok(None) => return no_such_session(shared),
            Err(Missing::Absent) => return no_session(shared),
            Err(Missing::Down) => return shared.refused("store", unavailable(None)),
        }
    } else {
        None
    };
    if let Some(text) = found.as_ref().and_then(|(session, _)| other_revision(session, declared)) {
        return shared.refused("version", refusal(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, text));
    }
    let revision = match &found {
        Some((session, _)) => session.revision(),
        None => declared.map_or(Ok(Revision::HTTP_DEFAULT), str::parse).unwrap_or(Revision::NEWEST),
    };
    if !revision.rules().batches {
        return refused(shared, "a batch is not accepted here: send one message per request");
    }
    let Some(messages) = classified(shared, elements, declared) else {
        return refused(shared, "the revision that an element of the batch names has no batches");
    };
    match found {
        Some(found) => {
            in_session(
                shared,
                principal,
                messages,
                found,
                &Carried { sender, streams: accepted.event_stream },
                accepted,
            )
            .await
        }
        None => {
            let peer = shared.server.peer(principal, Scope::Stateless(revision));
            let exchanges = receive(&peer, messages, &Carried { sender, streams: false });
            respond(&gather(exchanges, Vec::new()).await)
        }
    }
}

async fn in_session(
    shared: &Shared,
    principal: Principal,
    messages: Vec<Classified>,
    (session, streams): Found,
    carried: &Carried<'_>,
    accepted: Accepted,
) -> Response<HttpBody> {
    let expires_at = principal.expires_at();
    let peer = shared.server.peer(principal, Scope::Session(session.clone()));
    let (exchanges, left) = session.collecting(|| receive(&peer, messages, carried));
    if settle(shared, &session, left).await.is_err() {
        return shared.refused("store", unavailable(None));
    }
    if exchanges.is_empty() {
        return empty(StatusCode::ACCEPTED);
    }
    let (mut ready, mut open) = (Vec::new(), Vec::new());
    for mut exchange in exchanges {
        match pump::at_once(&mut exchange).await {
            Some(Outbound::Response(frame, _)) => ready.push(frame),
            first => open.push(Started { exchange, first }),
        }
    }
    if open.is_empty() && accepted.takes_document() {
        return respond(&ready);
    }
    if accepted.event_stream {
        let stream = streams.open();
        let keeper = keeper(shared, &session, &stream);
        pump::start(ready, open, &session, &streams, &stream, keeper.clone());
        return read_from_start(shared, &session, stream, keeper, expires_at).await;
    }
    let (done, responses) = oneshot::channel();
    let ended = session.ended();
    #[expect(clippy::disallowed_methods, reason = "ends with the exchanges or the session, whichever is first")]
    tokio::spawn(async move {
        let exchanges = open.into_iter().map(|started| started.exchange).collect();
        if let Some(responses) = ended.run_until_cancelled(gather(exchanges, ready)).await {
            // The client may have gone meanwhile.
            let _ = done.send(responses);
        }
    });
    respond(&responses.await.unwrap_or_default())
}

/// The messages by era; `None` if one belongs to an era without batches.
fn classified(shared: &Shared, elements: Elements, declared: Option<&str>) -> Option<Vec<Classified>> {
    elements
        .into_iter()
        .map(|element| match element {
            Err(error) => Some(Classified::malformed(&error)),
            Ok(message) => match shared.server.classify(message, declared).split() {
                Split::Modern(_) => None,
                Split::Legacy(message) => Some(Classified::from(message).in_batch()),
                Split::Refused(rejection) => Some(Classified::from(rejection)),
            },
        })
        .collect()
}

/// The exchanges that owe an answer.
fn receive(peer: &Peer, messages: Vec<Classified>, carried: &Carried<'_>) -> Vec<Exchange> {
    let exchanges = messages.into_iter().map(|message| peer.receive_from(message, carried));
    exchanges.filter(|exchange| !exchange.is_over()).collect()
}

/// All responses, in the order in which they come.
async fn gather(mut exchanges: Vec<Exchange>, mut responses: Vec<Bytes>) -> Vec<Bytes> {
    poll_fn(|context| {
        exchanges.retain_mut(|exchange| {
            loop {
                match Pin::new(&mut *exchange).poll_next(context) {
                    Poll::Ready(Some(Outbound::Response(frame, _))) => responses.push(frame),
                    // Without a stream there are only the responses.
                    Poll::Ready(Some(_)) => {}
                    Poll::Ready(None) => return false,
                    Poll::Pending => return true,
                }
            }
        });
        if exchanges.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    responses
}

/// The responses as one document. There are none when the client took everything back or its session ended.
fn respond(responses: &[Bytes]) -> Response<HttpBody> {
    if responses.is_empty() { empty(StatusCode::ACCEPTED) } else { json(StatusCode::OK, join_batch(responses)) }
}

fn refused(shared: &Shared, text: &'static str) -> Response<HttpBody> {
    shared.refused("batch", refusal(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, text))
}
