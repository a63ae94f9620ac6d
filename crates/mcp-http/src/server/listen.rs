//! A listener for one endpoint: accepts, bounds, and ends in order.
//!
//! Why here: whoever has no server of their own to mount the service in still gets a sound one.
//! Invariants: connections are bounded; no connection outlives the listener; nothing that was accepted is cut off while
//! its grace lasts.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::body::HttpBody;
use super::service::HttpService;

/// An HTTP/1.1 listener for a service.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    service: HttpService,
    max_connections: usize,
    header_timeout: Duration,
    grace: Duration,
}

/// After a failed accept (out of descriptors, mostly) the next try waits a moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Bytes of a request head. Beyond: 431.
const MAX_HEAD: usize = 128 * 1024;
/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(60);

impl Listener {
    /// Listens at an address; port 0 picks one.
    ///
    /// # Errors
    /// When the address cannot be listened at.
    pub async fn bind(address: SocketAddr, service: HttpService) -> io::Result<Self> {
        Ok(Self::over(TcpListener::bind(address).await?, service))
    }

    /// Listens at a socket that is bound already.
    #[must_use]
    pub fn over(socket: TcpListener, service: HttpService) -> Self {
        Self {
            socket,
            service,
            max_connections: 16_384,
            header_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(5),
        }
    }

    /// Connections at a time. Default 16,384. Beyond: they wait in the operating system's queue.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections.max(1);
        self
    }

    /// How long a connection may take from one request to the head of the next. Default 60 seconds. Beyond, and at the
    /// latest after twice as long, it is closed.
    #[must_use]
    pub fn header_timeout(mut self, timeout: Duration) -> Self {
        self.header_timeout = timeout;
        self
    }

    /// How long requests may go on after the shutdown began. Default 5 seconds. Beyond: they are cancelled.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The address it listens at.
    ///
    /// # Errors
    /// When the operating system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `shutdown` completes, then ends in order: no new connections, subscriptions get their closing
    /// result, requests get their grace.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let ending = Ending { closing: CancellationToken::new(), cut: CancellationToken::new() };
        let connections = TaskTracker::new();
        first_of(self.accept(&connections, &ending), shutdown).await;
        ending.closing.cancel();
        connections.close();
        let server = self.service.server();
        let cancelled = async {
            server.shutdown(self.grace).await;
            self.service.end_sessions();
            // Handlers may notice; then whatever still holds a connection is cut off.
            tokio::time::sleep(server.limits().cancel_grace).await;
            ending.cut.cancel();
            connections.wait().await;
        };
        first_of(connections.wait(), cancelled).await;
        self.service.end_sessions();
        server.stopped().cancel();
    }

    async fn accept(&self, connections: &TaskTracker, ending: &Ending) {
        let places = Arc::new(Semaphore::new(self.max_connections));
        let mut sweep = tokio::time::interval(SWEEP);
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let accepted = loop {
                match first_of(self.socket.accept(), sweep.tick()).await {
                    Either::First(accepted) => break accepted,
                    Either::Second(_) => self.service.sweep(),
                }
            };
            match accepted {
                Ok((socket, peer)) => {
                    let served = self.serve(socket, peer, ending.clone());
                    connections.spawn(async move {
                        served.await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn serve(&self, socket: TcpStream, peer: SocketAddr, ending: Ending) -> impl Future<Output = ()> + use<> {
        // Small frames go out at once; a failure costs speed only.
        let _ = socket.set_nodelay(true);
        let service = self.service.clone();
        let header_timeout = self.header_timeout;
        async move {
            let activity = Arc::new(Activity::default());
            let begun = Arc::clone(&activity);
            let handler = service_fn(move |request| {
                let (service, busy) = (service.clone(), Busy::begin(&begun));
                async move {
                    let response = service.respond_to(request, Some(peer)).await;
                    Ok::<_, Infallible>(response.map(|body| BusyBody { body, _busy: busy }))
                }
            });
            let mut builder = http1::Builder::new();
            // A request head has to fit into the buffer; bodies are read through it piece by piece.
            builder.max_buf_size(MAX_HEAD);
            let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(socket), handler));
            let served = first_of(connection.as_mut(), activity.idle_for(header_timeout));
            let ended = match first_of(served, ending.closing.cancelled()).await {
                Either::First(Either::First(ended)) => Some(ended),
                Either::First(Either::Second(())) => None,
                Either::Second(()) => {
                    connection.as_mut().graceful_shutdown();
                    ending.cut.run_until_cancelled(connection).await
                }
            };
            if let Some(Err(error)) = ended {
                tracing::debug!(%error, "a connection ended with an error");
            }
        }
    }
}

/// What a connection is doing, counted, so that one timer per connection is enough to find the idle ones.
#[derive(Debug, Default)]
struct Activity {
    begun: AtomicU64,
    under_way: AtomicU64,
}

impl Activity {
    /// Completes when no request has begun and none was under way for `limit`, and at most twice as long.
    async fn idle_for(&self, limit: Duration) {
        let mut seen = self.begun.load(Ordering::Relaxed);
        loop {
            tokio::time::sleep(limit).await;
            let begun = self.begun.load(Ordering::Relaxed);
            if begun == seen && self.under_way.load(Ordering::Relaxed) == 0 {
                return;
            }
            seen = begun;
        }
    }
}

/// A request under way, from its head to the end of its response's body.
struct Busy(Arc<Activity>);

impl Busy {
    fn begin(activity: &Arc<Activity>) -> Self {
        activity.begun.fetch_add(1, Ordering::Relaxed);
        activity.under_way.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // What follows is idle from here, not from the request's begin.
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

struct BusyBody {
    body: HttpBody,
    _busy: Busy,
}

impl Body for BusyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How a connection is told to end: after the request it serves, or at once.
#[derive(Clone)]
struct Ending {
    closing: CancellationToken,
    cut: CancellationToken,
}

enum Either<A, B> {
    First(A),
    Second(B),
}

/// The first of two futures to complete; the other is dropped.
async fn first_of<A: Future, B: Future>(first: A, second: B) -> Either<A::Output, B::Output> {
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    std::future::poll_fn(|context| {
        if let Poll::Ready(output) = first.as_mut().poll(context) {
            return Poll::Ready(Either::First(output));
        }
        second.as_mut().poll(context).map(Either::Second)
    })
    .await
}

/// Named smoke tests on real sockets and real time: what has to be true of them does not depend on how long they take.
#[cfg(test)]
mod tests {
    use mcp_core::{Limits, RequestContext, Server, Tool};
    use mcp_wire::RawJson;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::Notify;

    use super::*;
    use crate::server::HttpConfig;

    const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stuck","_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

    async fn bind(server: Server) -> Listener {
        let service = HttpService::new(server, HttpConfig::new(mcp_auth::Anonymous));
        Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), service).await.unwrap()
    }

    async fn connect(address: SocketAddr, request: &str) -> TcpStream {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        socket
    }

    #[tokio::test]
    async fn a_handler_that_never_ends_does_not_keep_the_listener() {
        let called = Arc::new(Notify::new());
        let mut limits = Limits::default();
        limits.cancel_grace = Duration::from_millis(20);
        let schema = RawJson::from(serde_json::json!({ "type": "object" }));
        let begun = Arc::clone(&called);
        let stuck = Tool::raw("stuck", schema, move |_: RawJson, _: RequestContext| {
            begun.notify_one();
            std::future::pending::<Result<String, _>>()
        });
        let server = Server::builder("s", "1").limits(limits).tool(stuck).build().unwrap();
        let listener = bind(server).await.grace(Duration::from_millis(20));
        let address = listener.local_addr().unwrap();
        let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
            mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: stuck\r\n";
        let mut socket = connect(address, &format!("{head}content-length: {}\r\n\r\n{CALL}", CALL.len())).await;
        listener.run(called.notified()).await;
        let mut rest = Vec::new();
        // Cut off: an end or a reset, as the operating system likes.
        let _ = socket.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "nothing was promised");
        assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    }

    #[tokio::test]
    async fn a_head_beyond_its_limit_is_refused_and_an_idle_connection_is_closed() {
        let listener = bind(Server::builder("s", "1").build().unwrap()).await.header_timeout(Duration::from_millis(20));
        let address = listener.local_addr().unwrap();
        let clients = async {
            let long = format!("GET /mcp HTTP/1.1\r\nhost: localhost\r\nx: {}", "y".repeat(MAX_HEAD));
            let mut answer = Vec::new();
            // What is not read of the request may reset the connection behind the answer.
            let _ = connect(address, &long).await.read_to_end(&mut answer).await;
            assert!(answer.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&answer));
            let mut nothing = Vec::new();
            let _ = connect(address, "POST /mcp HTTP/1.1\r\nho").await.read_to_end(&mut nothing).await;
            assert!(nothing.is_empty());
        };
        listener.run(clients).await;
    }
}
