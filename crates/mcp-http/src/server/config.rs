//! How an endpoint is served.
//!
//! Why here: every choice with its default in one place; safe without any.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_auth::{AuthProvider, ProtectedResource};
use mcp_core::store::{AnswerRoute, EventStore, SessionStore};

use super::legacy::SharedStores;
use crate::codec::forwarded::TrustedProxies;
use crate::codec::origin::{AllowedHosts, AllowedOrigins};

/// The choices of an endpoint. An [`AuthProvider`] has to be named, [`Anonymous`](mcp_auth::Anonymous) included.
#[must_use = "a configuration does nothing until a service uses it"]
pub struct HttpConfig {
    pub(crate) auth: Arc<dyn AuthProvider>,
    pub(crate) resource: Option<ProtectedResource>,
    pub(crate) path: Option<String>,
    pub(crate) origins: AllowedOrigins,
    pub(crate) hosts: AllowedHosts,
    /// Whether hosts, and whether origins, were chosen and are no default.
    pub(crate) named: (bool, bool),
    pub(crate) sessions: bool,
    pub(crate) pair: Option<PairPaths>,
    pub(crate) public_prefix: String,
    pub(crate) health: bool,
    pub(crate) proxies: TrustedProxies,
    pub(crate) max_in_flight: usize,
    pub(crate) max_in_flight_per_caller: usize,
    pub(crate) max_body_bytes: usize,
    pub(crate) body_timeout: Duration,
    pub(crate) sse_after: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) retry: Duration,
    pub(crate) replay_events: usize,
    pub(crate) replay_streams: usize,
    pub(crate) replay_bytes: usize,
    pub(super) shared: Option<SharedStores>,
    pub(super) store_timeout: Duration,
}

/// The two endpoints of the first revision.
#[derive(Clone, Debug)]
pub(crate) struct PairPaths {
    pub(crate) stream: String,
    pub(crate) messages: String,
}

impl HttpConfig {
    /// The defaults, which are made for a server on its own machine, with this provider.
    pub fn new(auth: impl AuthProvider) -> Self {
        Self {
            auth: Arc::new(auth),
            resource: None,
            path: Some("/mcp".to_owned()),
            origins: AllowedOrigins::loopback(),
            hosts: AllowedHosts::loopback(),
            named: (false, false),
            sessions: true,
            pair: None,
            public_prefix: String::new(),
            health: false,
            proxies: TrustedProxies::default(),
            max_in_flight: 1024,
            max_in_flight_per_caller: 256,
            max_body_bytes: 16 * 1024 * 1024,
            body_timeout: Duration::from_secs(60),
            sse_after: Duration::from_secs(2),
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_secs(1),
            replay_events: 256,
            replay_streams: 16,
            replay_bytes: 1024 * 1024,
            shared: None,
            store_timeout: Duration::from_secs(2),
        }
    }

    /// Serves the metadata document of the resource that this endpoint is (RFC 9728) to everyone, at
    /// [`ProtectedResource::path`] and [`ProtectedResource::root_path`], whatever the other paths are; challenges say
    /// where it is. Default: no document. Both are paths of the public host: a proxy or a router has to bring them here.
    /// Have the provider demand tokens for the same [`ProtectedResource::resource`].
    pub fn protected_resource(mut self, resource: ProtectedResource) -> Self {
        self.resource = Some(resource);
        self
    }

    /// The path of the endpoint, also served with a slash behind it. Default `/mcp`; anything else is 404.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.path = Some(path.strip_suffix('/').map_or_else(|| path.clone(), ToOwned::to_owned));
        self
    }

    /// Serves whatever path the request has: for a service that a router has already found.
    pub fn any_path(mut self) -> Self {
        self.path = None;
        self
    }

    /// The web origins whose pages may call. Default: those on this machine. Other origins get 403; requests without the
    /// header pass.
    pub fn allowed_origins(mut self, origins: AllowedOrigins) -> Self {
        self.origins = origins;
        self.named.1 = true;
        self
    }

    /// The names under which the server may be called. Default: those of this machine. Other names get 403; requests
    /// without the header pass.
    pub fn allowed_hosts(mut self, hosts: AllowedHosts) -> Self {
        self.hosts = hosts;
        self.named.0 = true;
        self
    }

    /// Serves the legacy era without sessions: each request stands alone, under the revision its header declares. There
    /// are no notices and no questions to the client, a lost connection cancels, and GET and DELETE are 405.
    pub fn without_sessions(mut self) -> Self {
        self.sessions = false;
        self
    }

    /// Serves clients of 2024-11-05 over HTTP as well: a GET of `stream` opens a session, and its messages are posted to
    /// `messages`. Default: neither is served. `stream` may be the path of the endpoint; a GET there that names no session
    /// then opens one. Needs sessions; as many streams may be open as [`Limits::sessions`](mcp_core::Limits::sessions).
    pub fn sse_pair(mut self, stream: impl Into<String>, messages: impl Into<String>) -> Self {
        self.pair = Some(PairPaths { stream: stream.into(), messages: messages.into() });
        self
    }

    /// What stands before every path as clients see it, where a proxy or a router takes it away: `/tools`, or
    /// `https://example.com/tools`. Default: nothing. Addresses that are told to clients begin with it.
    pub fn public_prefix(mut self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        self.public_prefix = prefix.trim_end_matches('/').to_owned();
        self
    }

    /// Tells everyone, whatever the host, whether the process lives (`/healthz`: 200) and whether it takes requests
    /// (`/readyz`: 200, and 503 once a shutdown has begun). Default: neither path is served.
    pub fn health(mut self) -> Self {
        self.health = true;
        self
    }

    /// Believes these proxies when they say for whom they ask. Default: none is believed. What they say is the client's address
    /// for providers ([`AuthRequest::peer`](mcp_auth::AuthRequest::peer)), audits and traces. Of the address under which
    /// clients call nobody is believed: that is [`Self::public_prefix`] and [`Self::protected_resource`].
    pub fn trusted_proxies(mut self, proxies: TrustedProxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Requests under way at a time, of all callers together, from their head until the last of their response is
    /// handed to the connection. Default 1,024.
    /// Beyond: 503 with `Retry-After`, before the caller is authenticated and the body is read. Streams on which no call
    /// is under way are counted elsewhere: sessions and subscriptions in [`Limits`](mcp_core::Limits).
    pub fn max_in_flight(mut self, requests: usize) -> Self {
        self.max_in_flight = requests.max(1);
        self
    }

    /// The same for each caller: whom the provider names, and of anonymous callers each address (over IPv6 each network of
    /// 64 bits); where no address is known, only all together are bounded. Default 256. Beyond: 429 with `Retry-After`,
    /// before the body is read. Behind a proxy that is none of [`Self::trusted_proxies`] all anonymous callers have its
    /// address: raise this there.
    pub fn max_in_flight_per_caller(mut self, requests: usize) -> Self {
        self.max_in_flight_per_caller = requests.max(1);
        self
    }

    /// Bytes of a request's body. Default 16 MiB. Beyond: 413.
    pub fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = bytes;
        self
    }

    /// How long a body may take to arrive. Default 60 seconds. Beyond: 408.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.body_timeout = timeout;
        self
    }

    /// How long a modern call may be silent before its answer becomes a stream, so that proxies see life. Default
    /// 2 seconds. Errors after that come in band, with status 200.
    pub fn sse_after(mut self, silence: Duration) -> Self {
        self.sse_after = silence;
        self
    }

    /// How often an idle stream shows that it lives. Default 15 seconds.
    pub fn keep_alive(mut self, interval: Duration) -> Self {
        self.keep_alive = interval;
        self
    }

    /// How long a legacy client is told to wait before it comes back for a stream that it lost. Default 1 second.
    pub fn retry(mut self, delay: Duration) -> Self {
        self.retry = delay;
        self
    }

    /// Events that a legacy stream keeps for a client that comes back, at least one. Default 256. Older ones are gone. A
    /// reader that has as many unread holds its call back.
    pub fn replay_events(mut self, events: usize) -> Self {
        self.replay_events = events.max(1);
        self
    }

    /// Finished streams that a legacy session keeps for a client that comes back. Default 16. Older ones are gone.
    pub fn replay_streams(mut self, streams: usize) -> Self {
        self.replay_streams = streams.max(1);
        self
    }

    /// Bytes that a legacy session keeps in its finished streams, and in each that is under way and has been read. Default
    /// 1 MiB. The newest event, and the newest finished stream, are kept whatever their size.
    pub fn replay_bytes(mut self, bytes: usize) -> Self {
        self.replay_bytes = bytes;
        self
    }

    /// Serves legacy sessions together with every other process that is given the same three stores and whose server is built
    /// alike: whichever of them a balancer brings a request to, it finds the session. Default: sessions are of this
    /// endpoint alone. Needs sessions; the pair of 2024-11-05 and named visits stay with the process where they began.
    ///
    /// A request in a session then waits for the store; one that cannot be had in [`Self::store_timeout`] is 503 with
    /// -32603 and `Retry-After`, and costs nothing that is under way. Clocks of the processes may differ by seconds.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use mcp_core::store::{MemoryEvents, MemoryRoute, MemorySessions};
    /// use mcp_http::server::HttpConfig;
    ///
    /// // In memory they serve two endpoints of one process; between processes, give each your own on the same engine.
    /// let (sessions, events) = (Arc::new(MemorySessions::new(10_000)), Arc::new(MemoryEvents::default()));
    /// let config = HttpConfig::new(mcp_auth::Anonymous).shared_sessions(sessions, events, Arc::new(MemoryRoute::default()));
    /// # drop(config);
    /// ```
    pub fn shared_sessions(
        mut self,
        sessions: Arc<dyn SessionStore>,
        events: Arc<dyn EventStore>,
        route: Arc<dyn AnswerRoute>,
    ) -> Self {
        self.shared = Some(SharedStores { sessions, events, route });
        self
    }

    /// How long one step of a store may take. Default 2 seconds. Beyond, it counts as failed.
    pub fn store_timeout(mut self, timeout: Duration) -> Self {
        self.store_timeout = timeout;
        self
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConfig").field("path", &self.path).finish_non_exhaustive()
    }
}
