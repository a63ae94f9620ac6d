//! The body of a response: a document, the stream of a modern request, or a reader of a legacy stream.
//!
//! Why here: hyper pulls; whatever a body owns lives exactly as long as the client listens.
//! Invariants: dropping the body of a modern stream cancels its request; an idle stream shows that it lives; no stream
//! outlives its caller's proof of identity.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use mcp_core::{Exchange, Held, Outbound};
use tokio::time::{Instant, Sleep};

use super::in_flight::Counted;
use super::legacy::{Notices, PairBody, Reader};
use crate::codec::sse::{Event, keep_alive};

/// A response body of the endpoint.
pub struct HttpBody(Kind);

enum Kind {
    Whole(Option<Bytes>, Option<Counted>),
    Modern(Box<Modern>),
    Legacy(Box<Legacy>),
    Notices(Box<NoticeStream>),
    Pair(Box<Pair>),
}

struct Modern {
    /// Taken from the exchange before the status was known.
    first: Option<Outbound>,
    /// Dropped with the body, or as soon as the last event is out.
    exchange: Option<Exchange>,
    pulse: Pulse,
    _counted: Option<Counted>,
}

struct Legacy {
    reader: Reader,
    pulse: Pulse,
    _counted: Option<Counted>,
}

struct Pair {
    session: PairBody,
    pulse: Pulse,
}

struct NoticeStream {
    opening: Option<Bytes>,
    notices: Notices,
    pulse: Pulse,
}

impl HttpBody {
    pub(super) fn whole(document: Bytes) -> Self {
        Self(Kind::Whole(Some(document).filter(|document| !document.is_empty()), None))
    }

    /// The rest of a modern exchange, of which `first` was taken already.
    pub(super) fn modern(first: Option<Outbound>, exchange: Exchange, pulse: Pulse) -> Self {
        Self(Kind::Modern(Box::new(Modern { first, exchange: Some(exchange), pulse, _counted: None })))
    }

    /// A reader of a legacy stream.
    pub(super) fn legacy(reader: Reader, pulse: Pulse) -> Self {
        Self(Kind::Legacy(Box::new(Legacy { reader, pulse, _counted: None })))
    }

    /// The stream of a pair of endpoints, and the session that it is.
    pub(super) fn pair(session: PairBody, pulse: Pulse) -> Self {
        Self(Kind::Pair(Box::new(Pair { session, pulse })))
    }

    /// The standalone stream of a legacy session. The first bytes go out at once, or proxies hold the headers back.
    pub(super) fn notices(notices: Notices, pulse: Pulse) -> Self {
        let stream = NoticeStream { opening: Some(keep_alive()), notices, pulse };
        Self(Kind::Notices(Box::new(stream)))
    }

    /// What answers a request keeps its place: to the end of its body.
    pub(super) fn counted(mut self, counted: Counted) -> Self {
        match &mut self.0 {
            Kind::Modern(stream) => stream._counted = Some(counted),
            Kind::Legacy(stream) => stream._counted = Some(counted),
            Kind::Whole(Some(_), place) => *place = Some(counted),
            Kind::Whole(None, _) | Kind::Notices(_) | Kind::Pair(_) => {}
        }
        self
    }

    fn pulse(&mut self) -> Option<&mut Pulse> {
        match &mut self.0 {
            Kind::Whole(..) => None,
            Kind::Modern(stream) => Some(&mut stream.pulse),
            Kind::Legacy(stream) => Some(&mut stream.pulse),
            Kind::Notices(stream) => Some(&mut stream.pulse),
            Kind::Pair(stream) => Some(&mut stream.pulse),
        }
    }
}

/// The head of a response whose body is a stream of events.
pub(super) fn event_stream(body: HttpBody) -> Response<HttpBody> {
    const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

impl Body for HttpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.pulse().is_some_and(|pulse| pulse.has_ended(context)) {
            // What the stream held goes with it, as if the client had gone.
            self.0 = Kind::Whole(None, None);
        }
        let data = match &mut self.0 {
            // Over HTTP/2 what was taken may still wait to be sent, so the place goes with the body.
            Kind::Whole(document, _) => document.take(),
            Kind::Modern(stream) => ready!(stream.poll_data(context)),
            Kind::Legacy(stream) => match stream.reader.poll_event(context) {
                Poll::Ready(event) => stream.pulse.passed(event),
                Poll::Pending => Some(ready!(stream.pulse.poll(context))),
            },
            Kind::Pair(stream) => match stream.session.poll_event(context) {
                Poll::Ready(event) => stream.pulse.passed(event),
                Poll::Pending => Some(ready!(stream.pulse.poll(context))),
            },
            Kind::Notices(stream) => match stream.opening.take() {
                Some(opening) => Some(opening),
                None => match stream.notices.poll_event(context) {
                    Poll::Ready(event) => stream.pulse.passed(event),
                    Poll::Pending => Some(ready!(stream.pulse.poll(context))),
                },
            },
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(document, _) => document.is_none(),
            Kind::Modern(stream) => stream.exchange.is_none(),
            Kind::Legacy(_) | Kind::Notices(_) | Kind::Pair(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(document, _) => SizeHint::with_exact(
                document.as_ref().map_or(0, |document| u64::try_from(document.len()).unwrap_or(u64::MAX)),
            ),
            Kind::Modern(_) | Kind::Legacy(_) | Kind::Notices(_) | Kind::Pair(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Kind::Whole(..) => "document",
            Kind::Modern(_) => "modern stream",
            Kind::Legacy(_) => "legacy stream",
            Kind::Notices(_) => "notices",
            Kind::Pair(_) => "pair",
        };
        f.debug_tuple("HttpBody").field(&kind).finish()
    }
}

impl Modern {
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            let item = match self.first.take() {
                Some(item) => Some(item),
                None => {
                    let Some(exchange) = &mut self.exchange else { return Poll::Ready(None) };
                    match Pin::new(exchange).poll_next(context) {
                        Poll::Ready(item) => item,
                        Poll::Pending => return Poll::Ready(Some(ready!(self.pulse.poll(context)))),
                    }
                }
            };
            self.pulse.reset();
            let frame = match item {
                Some(Outbound::Notification(frame)) => frame,
                Some(Outbound::Response(frame, _)) => {
                    self.exchange = None;
                    frame
                }
                // A modern exchange holds neither requests nor releases; a stream without a response is over.
                Some(_) => continue,
                None => {
                    self.exchange = None;
                    return Poll::Ready(None);
                }
            };
            return Poll::Ready(Some(Event::new(&frame).encode()));
        }
    }
}

/// The sign of life of an idle stream, and its end with the caller's proof of identity. The timer of the one starts with
/// the first wait; there is one for the other only where the proof ends.
pub(super) struct Pulse {
    interval: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    end: Option<Pin<Box<Sleep>>>,
    /// Counts the stream while it lasts.
    _open: Held,
}

impl Pulse {
    /// Shows life at every `interval`, for as long as is `left`.
    pub(super) fn new(interval: Duration, left: Option<Duration>, open: Held) -> Self {
        Self { interval, timer: None, end: left.map(|left| Box::pin(tokio::time::sleep(left))), _open: open }
    }

    /// Whether nothing more may be said; if not, whoever polls is woken then.
    fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        self.end.as_mut().is_some_and(|end| end.as_mut().poll(context).is_ready())
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        let interval = self.interval;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(interval)));
        ready!(timer.as_mut().poll(context));
        self.reset();
        Poll::Ready(keep_alive())
    }

    fn reset(&mut self) {
        if let Some(timer) = &mut self.timer {
            timer.as_mut().reset(Instant::now() + self.interval);
        }
    }

    /// Something was written, so the stream has shown that it lives.
    fn passed(&mut self, event: Option<Bytes>) -> Option<Bytes> {
        self.reset();
        event
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use http::Request;
    use mcp_core::{NoArguments, Server, Tool};

    use super::*;
    use crate::server::{HttpConfig, HttpService};

    const LISTEN: &str = r#"{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{
        "notifications":{"toolsListChanged":true},
        "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

    async fn next(body: &mut HttpBody) -> Bytes {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        frame.unwrap().unwrap().into_data().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_stream_shows_that_it_lives_at_every_interval() {
        let server = Server::builder("s", "1").tool(Tool::plain("t", |_: NoArguments| "x")).build().unwrap();
        let interval = Duration::from_secs(15);
        let service = HttpService::new(server.clone(), HttpConfig::new(mcp_auth::Anonymous).keep_alive(interval));
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "subscriptions/listen")
            .body(HttpBody::whole(Bytes::from_static(LISTEN.as_bytes())))
            .unwrap();
        let mut body = service.respond(request).await.into_body();
        assert!(next(&mut body).await.starts_with(b"data: "), "the acknowledgement");

        let started = Instant::now();
        assert_eq!(next(&mut body).await, keep_alive());
        assert_eq!(started.elapsed(), interval);

        // What is said counts as life: the interval begins anew.
        tokio::time::advance(interval / 3).await;
        server.tools_changed();
        assert!(next(&mut body).await.starts_with(b"data: "), "the notice");
        let said = Instant::now();
        assert_eq!(next(&mut body).await, keep_alive());
        assert_eq!(said.elapsed(), interval);
    }
}
