//! Lanes: a carrier and a revision, and how a server is mounted in one.
//!
//! Why here: the choice of a lane is data, so that a behaviour never asks which one it runs in.

use mcp_core::{Principal, Server, ServerBuilder};
use mcp_http::server::HttpConfig;
use mcp_wire::{Era, Revision};
use serde_json::{Value, json};

use crate::client::{Client, Link};
use crate::http::{Endpoint, Http};
use crate::memory::Memory;
use crate::stdio::Stdio;

/// A carrier and a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    carrier: Carrier,
    revision: Revision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Memory,
    Http,
    Stdio,
}

impl Lane {
    /// Frames handed to the engine in place, the newest revision with a handshake.
    pub const MEMORY_LEGACY: Self = Self { carrier: Carrier::Memory, revision: Revision::NEWEST_LEGACY };
    /// Frames handed to the engine in place, the newest revision.
    pub const MEMORY_MODERN: Self = Self { carrier: Carrier::Memory, revision: Revision::V2026_07_28 };
    /// hyper over a pipe, the newest revision with a handshake.
    pub const HTTP_LEGACY: Self = Self { carrier: Carrier::Http, revision: Revision::NEWEST_LEGACY };
    /// hyper over a pipe, the newest revision.
    pub const HTTP_MODERN: Self = Self { carrier: Carrier::Http, revision: Revision::V2026_07_28 };
    /// Lines over a pipe, the newest revision with a handshake.
    pub const STDIO_LEGACY: Self = Self { carrier: Carrier::Stdio, revision: Revision::NEWEST_LEGACY };
    /// Lines over a pipe, the newest revision.
    pub const STDIO_MODERN: Self = Self { carrier: Carrier::Stdio, revision: Revision::V2026_07_28 };

    /// The revision that clients of this lane speak.
    #[must_use]
    pub fn revision(self) -> Revision {
        self.revision
    }

    /// Whether requests carry everything in themselves.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self.revision.era() == Era::Modern
    }

    /// Whether messages travel over HTTP.
    #[must_use]
    pub fn is_http(self) -> bool {
        self.carrier == Carrier::Http
    }

    /// Whether a message is a line.
    #[must_use]
    pub fn is_stdio(self) -> bool {
        self.carrier == Carrier::Stdio
    }

    /// `modern` or `legacy`, whichever this lane is.
    pub fn pick<T>(self, legacy: T, modern: T) -> T {
        if self.is_modern() { modern } else { legacy }
    }

    /// The same lane in each revision of its era, for behaviours in which revisions differ.
    pub fn each_revision(self) -> impl Iterator<Item = Self> {
        let of_era = Revision::ALL.into_iter().filter(move |revision| revision.era() == self.revision.era());
        // The first revision has an HTTP transport of its own.
        of_era
            .filter(move |revision| !self.is_http() || *revision != Revision::V2024_11_05)
            .map(move |revision| Self { revision, ..self })
    }

    /// Mounts a server.
    #[must_use]
    pub fn host(self, server: &Server) -> Host {
        let endpoint = self.is_http().then(|| Endpoint::new(server));
        Host { lane: self, server: server.clone(), endpoint }
    }

    /// Mounts a server as `config` says. Lanes of HTTP only.
    ///
    /// # Panics
    /// In the others.
    #[must_use]
    pub fn host_as(self, server: &Server, config: HttpConfig) -> Host {
        assert!(self.is_http(), "there is no HTTP here");
        Host { lane: self, server: server.clone(), endpoint: Some(Endpoint::over(server, config)) }
    }

    /// Builds a server, mounts it and connects one client to it.
    ///
    /// # Panics
    /// When the server cannot be built or the handshake fails.
    pub async fn connect(self, builder: ServerBuilder) -> Client {
        let server = builder.build().expect("the server of a test can be built");
        self.host(&server).connect().await
    }
}

/// A server mounted in a lane.
#[derive(Clone, Debug)]
pub struct Host {
    lane: Lane,
    server: Server,
    /// Where all clients of this host call, over HTTP.
    endpoint: Option<Endpoint>,
}

/// Whom nobody authenticated.
const NOBODY: &str = "anonymous";

/// What a client is and says of itself.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Who it is to the server.
    pub name: &'static str,
    /// What it declares.
    pub capabilities: Value,
    /// What it was granted.
    pub scopes: &'static [&'static str],
}

impl Default for Profile {
    /// A client that can be asked everything.
    fn default() -> Self {
        let capabilities = json!({
            "roots": { "listChanged": true },
            "sampling": { "tools": {}, "context": {} },
            "elicitation": { "form": {}, "url": {} },
        });
        Self { name: "ann", capabilities, scopes: &[] }
    }
}

impl Profile {
    /// A client that declares these capabilities.
    #[must_use]
    pub fn able(capabilities: Value) -> Self {
        Self { capabilities, ..Self::default() }
    }

    /// A client that can be asked nothing.
    #[must_use]
    pub fn unable() -> Self {
        Self::able(json!({}))
    }

    /// A client of nobody in particular.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::named(NOBODY)
    }

    /// A client of somebody else.
    #[must_use]
    pub fn named(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    pub(crate) fn principal(&self) -> Principal {
        principal(self.name).with_scopes(self.scopes.iter().copied())
    }

    /// What the client shows to prove itself.
    pub(crate) fn token(&self) -> String {
        [&[self.name], self.scopes].concat().join("~")
    }

    /// Whose token this is.
    pub(crate) fn read_token(token: &str) -> Option<Principal> {
        let mut parts = token.split('~');
        Some(principal(parts.next().filter(|name| !name.is_empty())?).with_scopes(parts))
    }
}

fn principal(name: &str) -> Principal {
    if name == NOBODY {
        return Principal::anonymous();
    }
    Principal::new("test", "https://issuer.example", name)
}

impl Host {
    /// The server.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn endpoint(&self) -> Option<Endpoint> {
        self.endpoint.clone()
    }

    /// How many sessions are open at the endpoint.
    ///
    /// # Panics
    /// When the lane is not of HTTP.
    #[must_use]
    pub fn open_sessions(&self) -> usize {
        self.endpoint.as_ref().expect("an endpoint").service().open_sessions()
    }

    /// A client that can be asked everything, its handshake done.
    pub async fn connect(&self) -> Client {
        self.connect_as(Profile::default()).await
    }

    /// A client with its handshake done.
    ///
    /// # Panics
    /// When the handshake fails.
    pub async fn connect_as(&self, profile: Profile) -> Client {
        let client = self.strange(profile);
        if !self.lane.is_modern() {
            client.shake_hands().await;
        }
        client
    }

    /// A client that has not said anything yet.
    #[must_use]
    pub fn strange(&self, profile: Profile) -> Client {
        let link = match &self.endpoint {
            None if self.lane.is_stdio() => Link::Stdio(Stdio::new(&self.server, profile.principal())),
            None => Link::Memory(Memory::new(&self.server, profile.principal())),
            Some(endpoint) => Link::Http(Http::new(endpoint.clone(), self.lane.revision, &profile)),
        };
        Client::new(self.lane, link, self.server.clone(), profile)
    }
}
