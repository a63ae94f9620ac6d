//! A listener for one endpoint: accepts, bounds, and ends in order.
//!
//! Why here: whoever has no server of their own to mount the service in still gets a sound one.
//! Invariants: connections are bounded; no connection outlives the listener; nothing that was accepted is cut off while
//! its grace lasts.

mod connection;
#[cfg(feature = "http2")]
mod http2;
mod rouse;
mod socket;
#[cfg(feature = "tls")]
mod tls;
mod watch;

use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{Instant, interval_at};
use tokio_util::task::TaskTracker;

use self::connection::{Protocols, Serving};
use self::rouse::Rouser;
use self::socket::Socket;
#[cfg(feature = "tls")]
pub use self::tls::{Tls, TlsError};
use self::watch::{Connections, Ending};
use super::service::HttpService;

/// A listener for a service: HTTP/1.1, with the feature `http2` also HTTP/2 (on the same port, by its first bytes or, over
/// TLS, by ALPN), with the feature `tls` over TLS.
///
/// On a runtime with several workers it has a thread of its own while it runs, which sees to it every 50 ms that a handler
/// that blocks its worker delays nobody else.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    service: HttpService,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
    #[cfg(feature = "tls")]
    handshake_timeout: Duration,
    max_connections: usize,
    header_timeout: Duration,
    grace: Duration,
}

/// Why a listener cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The operating system refuses.
    #[error("cannot listen: {0}")]
    Io(#[from] io::Error),
    /// The address can be reached from elsewhere, and it was not said who may call.
    #[error(
        "{0} can be reached from other machines: say under which names it is called and pages of which origins may call \
         (HttpConfig::allowed_hosts and HttpConfig::allowed_origins), or listen at a loopback address"
    )]
    Public(SocketAddr),
}

/// After a failed accept (out of descriptors, mostly) the next try waits a moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often idle sessions are looked for.
const SESSION_SWEEP: Duration = Duration::from_secs(60);

impl Listener {
    /// Listens at an address; port 0 picks one.
    ///
    /// # Errors
    /// When the address cannot be listened at; when it is no loopback address, and allowed hosts and origins are not both
    /// set in the configuration of the service, be it to their defaults.
    pub async fn bind(address: SocketAddr, service: HttpService) -> Result<Self, ListenError> {
        // Before anybody can connect.
        check(address, &service)?;
        Self::over(TcpListener::bind(address).await?, service)
    }

    /// Listens at a socket that is bound already.
    ///
    /// # Errors
    /// As [`Self::bind`].
    pub fn over(socket: TcpListener, service: HttpService) -> Result<Self, ListenError> {
        check(socket.local_addr()?, &service)?;
        Ok(Self::new(Socket::Tcp(socket), service))
    }

    /// Listens at a path of the file system, which only this user may open; others may once its permissions are changed.
    /// A socket that somebody left there is replaced, and the path is removed in the end.
    ///
    /// # Errors
    /// When the path cannot be listened at, or somebody listens there.
    #[cfg(unix)]
    pub fn unix(path: impl AsRef<std::path::Path>, service: HttpService) -> Result<Self, ListenError> {
        Ok(Self::new(Socket::Unix(socket::UnixSocket::bind(path.as_ref())?), service))
    }

    fn new(socket: Socket, service: HttpService) -> Self {
        Self {
            socket,
            service,
            #[cfg(feature = "tls")]
            tls: None,
            #[cfg(feature = "tls")]
            handshake_timeout: Duration::from_secs(10),
            max_connections: 16_384,
            header_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(5),
        }
    }

    /// Speaks TLS, and nothing but TLS. Keep a clone to replace the certificate.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// How long the handshake of TLS may take. Default 10 seconds. Beyond, the connection is closed.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// Connections at a time. Default 16,384. Beyond: they wait in the operating system's queue.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections.max(1);
        self
    }

    /// How long a connection may take to its first request, from one to the whole head of the next, and to take anything
    /// of an answer that is there for it. Default 60 seconds. Beyond, it is asked to end, and at the latest after twice as
    /// long it is closed.
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
    /// When the operating system does not tell, or it listens at a path.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `shutdown` completes, then ends in order: no new connections, subscriptions get their closing
    /// result, requests get their grace.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        self.run_until(shutdown, pending()).await;
    }

    /// As [`Self::run`], and ends at once when `cut` completes, in the middle of the grace too: for a second signal.
    /// Requests under way are cancelled.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>, cut: impl Future<Output = ()>) {
        let (tasks, connections) = (TaskTracker::new(), Arc::new(Connections::default()));
        let server = self.service.server().clone();
        let (service, grace) = (self.service.clone(), self.grace);
        let _rouser = Rouser::start();
        let mut cut = pin!(cut);
        let serving = first_of(self.serve(&tasks, &connections), shutdown);
        let is_cut = matches!(first_of(serving, cut.as_mut()).await, Either::Second(()));
        tasks.close();
        if !is_cut {
            connections.end(Ending::Drain);
            let cancelled = async {
                server.shutdown(grace).await;
                service.end_sessions();
                // Handlers may notice; then whatever still holds a connection is cut off.
                tokio::time::sleep(server.limits().cancel_grace).await;
            };
            first_of(first_of(tasks.wait(), cancelled), cut).await;
        }
        connections.end(Ending::Cut);
        tasks.wait().await;
        service.end_sessions();
        server.shutdown(Duration::ZERO).await;
    }

    /// Accepts for as long as it is polled; the socket goes with the future.
    async fn serve(self, tasks: &TaskTracker, connections: &Arc<Connections>) {
        let sweeping = sweep(connections, self.header_timeout, self.service.clone());
        let serving = Serving {
            protocols: Protocols::new(tasks),
            service: self.service,
            #[cfg(feature = "tls")]
            tls: self.tls.map(|tls| (tls, self.handshake_timeout)),
        };
        first_of(accept(self.socket, self.max_connections, Arc::new(serving), tasks, connections), sweeping).await;
    }
}

async fn accept(
    socket: Socket,
    max_connections: usize,
    serving: Arc<Serving>,
    tasks: &TaskTracker,
    connections: &Arc<Connections>,
) {
    let places = Arc::new(Semaphore::new(max_connections));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match socket.accept().await {
            Ok((stream, peer)) => {
                let (serving, open) = (Arc::clone(&serving), connections.open());
                tasks.spawn(async move {
                    serving.serve(stream, peer, open).await;
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

/// Looks for idle connections and idle sessions, also while nobody can be accepted.
async fn sweep(connections: &Connections, header_timeout: Duration, service: HttpService) {
    let every = |period: Duration| {
        let mut interval = interval_at(Instant::now() + period, period);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        interval
    };
    let mut idle_connections = every(Connections::interval(header_timeout));
    let mut idle_sessions = every(SESSION_SWEEP);
    loop {
        match first_of(idle_connections.tick(), idle_sessions.tick()).await {
            Either::First(_) => connections.sweep(),
            Either::Second(_) => service.sweep(),
        }
    }
}

/// Whether the service may be reached at the address.
fn check(address: SocketAddr, service: &HttpService) -> Result<(), ListenError> {
    if address.ip().is_loopback() || service.names_callers() { Ok(()) } else { Err(ListenError::Public(address)) }
}

enum Either<A, B> {
    First(A),
    Second(B),
}

/// The first of two futures to complete; the other is dropped.
async fn first_of<A: Future, B: Future>(first: A, second: B) -> Either<A::Output, B::Output> {
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(|context| {
        if let Poll::Ready(output) = first.as_mut().poll(context) {
            return Poll::Ready(Either::First(output));
        }
        second.as_mut().poll(context).map(Either::Second)
    })
    .await
}

#[cfg(test)]
mod tests;
