//! Requests of the modern era: one message in, a document or a stream out.
//!
//! Why here: the whole of a stateless request over HTTP, from its headers to its body.
//! Invariants: the status waits for the first item of the exchange, so that an error of the handler can have one; whoever
//! holds the response holds the request, and its loss cancels it.
//! Spec: 2026-07-28 basic/transports/streamable-http

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::Poll;

use futures_core::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use mcp_auth::AuthError;
use mcp_core::schema::MirroredParameter;
use mcp_core::{Carrier, Classified, Exchange, Head, Hint, Modern, Outbound, Principal, Scope, Target, TraceContext};
use mcp_wire::RawJson;

use super::body::{HttpBody, event_stream};
use super::guard::{MIRRORED, PROTOCOL_VERSION, empty, json};
use super::service::{Sender, Shared};
use crate::codec::accept::Accepted;
use crate::codec::mirror::{self, Mismatch};
use crate::codec::status::status;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

pub(super) async fn answer(
    shared: &Shared,
    principal: Principal,
    message: Modern,
    sender: Sender<'_>,
    version: Option<&HeaderValue>,
    accepted: Accepted,
) -> Response<HttpBody> {
    let carrier = Headers { sender, headers: sender.headers, version, streams: accepted.event_stream };
    let expires_at = principal.expires_at();
    let peer = shared.server.peer(principal, Scope::Single);
    let mut exchange = peer.receive_from(Classified::from(message), &carrier);
    if exchange.is_over() {
        return empty(StatusCode::ACCEPTED);
    }
    match first_item(shared, &mut exchange, accepted).await {
        First::Item(Outbound::Response(frame, hint)) if accepted.takes_document() || hint != Hint::Ok => {
            respond(shared, frame, &hint)
        }
        First::Item(item) => event_stream(HttpBody::modern(Some(item), exchange, shared.pulse(expires_at))),
        First::Late => event_stream(HttpBody::modern(None, exchange, shared.pulse(expires_at))),
        // The server shut down while the call was under way.
        First::Nothing => empty(StatusCode::SERVICE_UNAVAILABLE),
    }
}

/// A response that is not streamed.
pub(super) fn respond(shared: &Shared, frame: bytes::Bytes, hint: &Hint) -> Response<HttpBody> {
    let mut response = json(status(hint), frame);
    if let Hint::Forbidden { scopes } = hint {
        let needed = AuthError::InsufficientScope { needed: scopes.clone() };
        if let Some(challenge) = shared.challenge_to(&needed).www_authenticate {
            response.headers_mut().insert(http::header::WWW_AUTHENTICATE, challenge);
        }
    }
    response
}

enum First {
    Item(Outbound),
    /// Nothing came for a while: the headers go out, so that proxies see life.
    Late,
    Nothing,
}

async fn first_item(shared: &Shared, exchange: &mut Exchange, accepted: Accepted) -> First {
    let mut timer = None;
    poll_fn(|context| {
        loop {
            match Pin::new(&mut *exchange).poll_next(context) {
                // Without a stream there is only the response.
                Poll::Ready(Some(item)) if accepted.event_stream || matches!(item, Outbound::Response(..)) => {
                    return Poll::Ready(First::Item(item));
                }
                Poll::Ready(Some(_)) => continue,
                Poll::Ready(None) => return Poll::Ready(First::Nothing),
                Poll::Pending => {}
            }
            if !accepted.event_stream {
                return Poll::Pending;
            }
            let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(shared.config.sse_after)));
            return timer.as_mut().poll(context).map(|()| First::Late);
        }
    })
    .await
}

/// The headers of a request, as the engine's checks see them.
struct Headers<'a> {
    sender: Sender<'a>,
    headers: &'a HeaderMap,
    /// The only header that was looked up before.
    version: Option<&'a HeaderValue>,
    streams: bool,
}

impl Headers<'_> {
    fn only(&self, name: &HeaderName) -> Result<&HeaderValue, Mismatch> {
        mirror::exactly_one(self.headers, name)?.ok_or(Mismatch::Missing)
    }
}

impl Carrier for Headers<'_> {
    fn check_head(&self, head: &Head<'_>) -> Result<(), String> {
        let version = self.version.ok_or(Mismatch::Missing);
        version
            .and_then(|said| mirror::same_plain(said, &head.version))
            .map_err(|error| named(&PROTOCOL_VERSION, &error))?;
        self.only(&METHOD)
            .and_then(|said| mirror::same_plain(said, head.method.as_str()))
            .map_err(|error| named(&METHOD, &error))?;
        match &head.target {
            Target::Named(name) => {
                let compared = self.only(&NAME).and_then(|said| mirror::same_text(said, name));
                compared.map_err(|error| named(&NAME, &error))
            }
            // The body names nothing, which the method refuses by itself; other methods may carry what they like.
            Target::Missing | Target::None => Ok(()),
        }
    }

    fn check_parameter(&self, parameter: &MirroredParameter, argument: Option<&RawJson>) -> Result<(), String> {
        let name = format!("{MIRRORED}{}", parameter.header.to_ascii_lowercase());
        let Ok(name) = HeaderName::try_from(name) else { return Ok(()) };
        let compared = mirror::exactly_one(self.headers, &name).and_then(|header| match (header, argument) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(Mismatch::Missing),
            (Some(_), None) => Err(Mismatch::Unexpected),
            (Some(header), Some(argument)) => {
                let argument = argument.parse().map_err(|_| Mismatch::NotScalar)?;
                mirror::same_parameter(header, &argument)
            }
        });
        compared.map_err(|error| named(&name, &error))
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

fn named(name: &HeaderName, error: &Mismatch) -> String {
    format!("{name}: {error}")
}
