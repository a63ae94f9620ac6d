//! One connection: its handshake, its protocol, its requests, its end.
//!
//! Why here: the only place that knows which protocols hyper speaks for us, and within which bounds.
//! Invariants: whatever a connection waits for from its peer has an end; what it is told to end, ends.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::task::TaskTracker;
use tracing::{Instrument, Span};

use super::socket::Stream;
use super::watch::{Busy, Ending, Open, Watched};
use crate::server::body::HttpBody;
use crate::server::service::HttpService;

/// Bytes of a request head over HTTP/1.1. Beyond: 431.
pub(super) const MAX_HEAD: usize = 128 * 1024;

/// What every connection of a listener has in common.
pub(super) struct Serving {
    pub(super) service: HttpService,
    pub(super) protocols: Protocols,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<(super::Tls, std::time::Duration)>,
}

impl Serving {
    /// Serves a connection until either side ends it.
    pub(super) async fn serve(&self, stream: Stream, peer: Option<SocketAddr>, open: Open) {
        let span = self.span(peer);
        let _counted = self.service.server().meter().opened(mcp_core::Open::Connection);
        self.serve_until_end(stream, peer, open).instrument(span).await;
    }

    /// The span that everything of a connection is in, which is only made when somebody traces.
    fn span(&self, peer: Option<SocketAddr>) -> Span {
        #[cfg(feature = "tls")]
        let secured = self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        let secured = false;
        tracing::info_span!(
            target: "mcp_http",
            "mcp.connection",
            network.transport = if peer.is_some() { "tcp" } else { "unix" },
            network.peer.address = peer.map(|peer| tracing::field::display(peer.ip())),
            network.peer.port = peer.map(|peer| peer.port()),
            tls = secured,
        )
    }

    async fn serve_until_end(&self, stream: Stream, peer: Option<SocketAddr>, mut open: Open) {
        #[cfg(feature = "tls")]
        let Some(stream) = self.secure(stream, &mut open).await else { return };
        let watched = open.watched();
        let handler = service_fn(move |request: http::Request<_>| {
            // Over HTTP/1.1 an answer that is not taken blocks its connection, which is noted there.
            let may_lie = request.version() == http::Version::HTTP_2;
            let (service, busy) = (self.service.clone(), Busy::begin(&watched));
            async move {
                let response = service.respond_to(request, peer).await;
                Ok::<_, Infallible>(response.map(|body| BusyBody::new(body, busy, may_lie)))
            }
        });
        let stream = Noted { stream, watched: open.watched(), is_blocked: false };
        let mut connection = pin!(self.protocols.0.serve_connection(TokioIo::new(stream), handler));
        let mut draining = false;
        let ended = poll_fn(|context| {
            match open.poll(context) {
                Ending::Cut => return Poll::Ready(None),
                Ending::Drain if !draining => {
                    draining = true;
                    connection.as_mut().graceful_shutdown();
                }
                Ending::Drain | Ending::None => {}
            }
            connection.as_mut().poll(context).map(Some)
        });
        if let Some(Err(error)) = ended.await {
            tracing::debug!(%error, "a connection ended with an error");
        }
    }

    /// The secured connection, unless the peer takes too long or the end is near: nothing was promised yet.
    #[cfg(feature = "tls")]
    async fn secure(&self, stream: Stream, open: &mut Open) -> Option<Stream> {
        let Some((tls, timeout)) = &self.tls else { return Some(stream) };
        let mut handshake = pin!(tokio::time::timeout(*timeout, tls.accept(stream)));
        let secured = poll_fn(|context| match open.poll(context) {
            Ending::None => handshake.as_mut().poll(context).map(Some),
            Ending::Drain | Ending::Cut => Poll::Ready(None),
        });
        match secured.await? {
            Ok(Ok(secured)) => return Some(Box::new(secured)),
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
        None
    }
}

/// What is spoken, and within which bounds.
#[cfg(not(feature = "http2"))]
pub(super) struct Protocols(hyper::server::conn::http1::Builder);

/// What is spoken, and within which bounds. The first bytes decide.
#[cfg(feature = "http2")]
pub(super) struct Protocols(hyper_util::server::conn::auto::Builder<Tracked>);

impl Protocols {
    #[cfg(not(feature = "http2"))]
    pub(super) fn new(_tasks: &TaskTracker) -> Self {
        let mut protocols = hyper::server::conn::http1::Builder::new();
        // A request head has to fit into the buffer; bodies are read through it piece by piece.
        protocols.max_buf_size(MAX_HEAD);
        Self(protocols)
    }

    #[cfg(feature = "http2")]
    pub(super) fn new(tasks: &TaskTracker) -> Self {
        let mut protocols = hyper_util::server::conn::auto::Builder::new(Tracked::new(tasks));
        protocols.http1().max_buf_size(MAX_HEAD);
        protocols
            .http2()
            .timer(hyper_util::rt::TokioTimer::new())
            .max_concurrent_streams(super::http2::STREAMS)
            .max_pending_accept_reset_streams(super::http2::RESETS)
            .max_local_error_reset_streams(super::http2::FAULTS)
            .max_header_list_size(super::http2::HEADER_LIST)
            .initial_stream_window_size(super::http2::STREAM_WINDOW)
            .initial_connection_window_size(super::http2::CONNECTION_WINDOW)
            .max_send_buf_size(super::http2::SEND_BUFFER)
            .keep_alive_interval(super::http2::PING_INTERVAL)
            .keep_alive_timeout(super::http2::PING_TIMEOUT);
        Self(protocols)
    }
}

/// Runs the requests of HTTP/2 connections as tasks that the listener waits for.
#[cfg(feature = "http2")]
#[derive(Clone)]
pub(super) struct Tracked(TaskTracker);

#[cfg(feature = "http2")]
impl Tracked {
    pub(super) fn new(tasks: &TaskTracker) -> Self {
        Self(tasks.clone())
    }
}

#[cfg(feature = "http2")]
impl<F> hyper::rt::Executor<F> for Tracked
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        // A task does not inherit the span that it is spawned in.
        self.0.spawn(task.in_current_span());
    }
}

/// A response's body, which keeps its connection busy.
struct BusyBody {
    body: HttpBody,
    busy: Busy,
    /// Whether it may be left lying while others are taken.
    may_lie: bool,
}

impl BusyBody {
    fn new(body: HttpBody, mut busy: Busy, may_lie: bool) -> Self {
        if may_lie {
            busy.offers();
        }
        Self { body, busy, may_lie }
    }
}

impl Body for BusyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            _ if !self.may_lie => {}
            Poll::Ready(Some(_)) => self.busy.offers(),
            Poll::Ready(None) | Poll::Pending => self.busy.is_asked(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The bytes of a connection, where it is noted whether they are taken.
struct Noted {
    stream: Stream,
    watched: Arc<Watched>,
    is_blocked: bool,
}

impl Noted {
    fn note<T>(&mut self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match (&polled, self.is_blocked) {
            (Poll::Pending, false) => {
                self.is_blocked = true;
                self.watched.is_blocked();
            }
            (Poll::Ready(_), true) => {
                self.is_blocked = false;
                self.watched.goes_on();
            }
            (Poll::Pending, true) | (Poll::Ready(_), false) => {}
        }
        polled
    }
}

impl AsyncRead for Noted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Noted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.note(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.note(polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
