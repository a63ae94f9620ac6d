//! From an address in text to a connection with a machine that may be connected to.
//!
//! Why here: judging and connecting are one step, so that nothing can come between them.
//! Invariants: what is connected to is an address that was judged, never a name; a name is resolved once for each fetch.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use mcp_auth::{FetchError, FetchRequest};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};
use tokio_rustls::rustls::pki_types::ServerName;

use super::reach::Reach;
use super::{Policy, broken, forbidden};

/// Where a request goes.
#[derive(Debug)]
pub(super) struct Target {
    authority: Authority,
    path: PathAndQuery,
    is_secured: bool,
}

impl Target {
    /// # Errors
    ///
    /// [`FetchError::Forbidden`] for what is no absolute address, and for plain `http` where that is not allowed.
    pub(super) fn of(request: &FetchRequest, policy: Policy) -> Result<Self, FetchError> {
        let parts = request.url().parse::<Uri>().map_err(|_| forbidden("it is no address"))?.into_parts();
        let authority = parts.authority.filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| forbidden("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(forbidden("it holds a name and a password"));
        }
        if request.url().contains('#') {
            return Err(forbidden("it has a fragment"));
        }
        let is_secured = parts.scheme == Some(Scheme::HTTPS);
        let is_plain = policy.loopback && parts.scheme == Some(Scheme::HTTP);
        if !is_secured && !is_plain {
            return Err(forbidden("only https is allowed"));
        }
        if !request.is_private() {
            return Err(forbidden("plain http is for this machine alone"));
        }
        let path = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self { authority, path, is_secured })
    }

    pub(super) const fn is_secured(&self) -> bool {
        self.is_secured
    }

    pub(super) fn authority(&self) -> &str {
        self.authority.as_str()
    }

    pub(super) const fn path(&self) -> &PathAndQuery {
        &self.path
    }

    /// What the certificate has to be for.
    pub(super) fn server_name(&self) -> Result<ServerName<'static>, FetchError> {
        ServerName::try_from(self.host().to_owned())
            .map_err(|_| forbidden("its host is no name that a certificate has"))
    }

    fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_secured { 443 } else { 80 })
    }

    /// Without the brackets of an address.
    fn host(&self) -> &str {
        let host = self.authority.host();
        host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
    }
}

/// Finds the addresses behind a name.
#[async_trait]
pub(super) trait Names: Send + Sync {
    async fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// As the machine does it.
pub(super) struct SystemNames;

#[async_trait]
impl Names for SystemNames {
    async fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(lookup_host((name, port)).await?.collect())
    }
}

/// Connects to the first of the target's addresses that is allowed and answers. Each gets its share of the time, so that
/// one that is silent leaves some for the others.
///
/// # Errors
///
/// [`FetchError::Forbidden`] if none is allowed, [`FetchError::Connection`] if none answers.
pub(super) async fn open(
    names: &dyn Names,
    target: &Target,
    policy: Policy,
    limit: Duration,
) -> Result<TcpStream, FetchError> {
    let deadline = Instant::now() + limit;
    let (host, port) = (target.host(), target.port());
    let found = match host.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => names.resolve(host, port).await.map_err(|error| broken("the name is not resolved", &error))?,
    };
    let (mut rule, mut allowed) = (None, Vec::new());
    for address in found {
        match policy.forbids(Reach::of(address.ip()), target.is_secured) {
            Some(which) => rule = Some(which),
            None => allowed.push(address),
        }
    }
    let nobody = || FetchError::Connection { reason: "the name has no address".to_owned() };
    let mut failure = rule.map_or_else(nobody, forbidden);
    for (tried, address) in (0..).zip(&allowed) {
        let left = u32::try_from(allowed.len()).unwrap_or(u32::MAX).saturating_sub(tried).max(1);
        let share = deadline.saturating_duration_since(Instant::now()) / left;
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = broken("no connection", &error),
            Err(_) => failure = FetchError::TimedOut,
        }
    }
    Err(failure)
}
