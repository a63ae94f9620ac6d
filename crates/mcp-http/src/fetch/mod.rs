//! The HTTP client of key sets, introspection and discovery: one bounded GET or POST, held to a policy.
//!
//! Why here: `mcp-auth` has the seam and no sockets; a client of MCP is not needed for it.
//! Invariants: nothing is sent before the address that is connected to was judged, whatever a name led to before; one
//! connection serves one fetch and ends with it, also when it is dropped; redirects are not followed. Errors name the rule.
//! Spec: 2026-07-28 basic/authorization, "Communication Security"

mod connect;
mod reach;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, Uri, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use mcp_auth::{Fetch, FetchError, FetchRequest, FetchResponse};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use connect::{Names, SystemNames, Target};
use reach::Reach;

/// Fetches over HTTP/1.1 for the providers of `mcp-auth`. Cheap to clone; clones share what TLS remembers of its peers.
///
/// Only `https`, only to public addresses, unless [`Self::allow_loopback`] or [`Self::allow_private`] say otherwise. What
/// counts is the address that is connected to, after a name was resolved: addresses that are not allowed are passed over,
/// and if there is no other the answer is [`FetchError::Forbidden`] with the rule. Link-local addresses, which clouds serve
/// secrets at, and reserved ones are never allowed. Redirects are not followed, proxies are not used, answers are not
/// decompressed. Each fetch has a connection of its own, bounded in time and bytes by its request, and heads are bounded
/// by about 64 KiB.
///
/// ```no_run
/// use std::sync::Arc;
/// use mcp_auth::Fetch;
/// use mcp_http::fetch::HttpFetch;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // With the authorities that this machine trusts; for `Jwks` and `Introspection`.
/// let fetch: Arc<dyn Fetch> = Arc::new(HttpFetch::new()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HttpFetch {
    tls: TlsConnector,
    names: Arc<dyn Names>,
    policy: Policy,
}

/// Which addresses are allowed beside public ones.
#[derive(Debug, Clone, Copy, Default)]
struct Policy {
    loopback: bool,
    private: bool,
}

/// Why there is nobody to trust.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// This machine has no list of authorities, or one that cannot be read.
    #[error("this machine trusts no certificate authority: {0}")]
    NoAuthorities(String),
    /// The text is not PEM.
    #[error("the PEM text cannot be read: {0}")]
    Pem(#[from] pem::Error),
    /// A certificate is none, or there is none.
    #[error("the certificates cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// How much of a response comes before its body.
const LARGEST_HEAD: usize = 64 * 1024;

impl HttpFetch {
    /// Trusts the certificate authorities that this machine does, as they are now. Reads files.
    ///
    /// # Errors
    ///
    /// [`TrustError`] if there is none.
    pub fn new() -> Result<Self, TrustError> {
        let loaded = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        // Old lists hold entries that nobody can read; the others are good.
        roots.add_parsable_certificates(loaded.certs);
        if roots.is_empty() {
            let reasons: Vec<String> = loaded.errors.iter().map(ToString::to_string).collect();
            return Err(TrustError::NoAuthorities(reasons.join("; ")));
        }
        Self::with_roots(roots)
    }

    /// Trusts these certificate authorities alone, given in PEM.
    ///
    /// # Errors
    ///
    /// [`TrustError`] if the text holds none, or one that cannot be used.
    pub fn trusting(authorities: &[u8]) -> Result<Self, TrustError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authorities) {
            roots.add(certificate?)?;
        }
        if roots.is_empty() {
            return Err(TrustError::NoAuthorities("the PEM text holds no certificate".to_owned()));
        }
        Self::with_roots(roots)
    }

    /// Also connects to this machine, there by `http` as well. For tests, and for an authorization server beside this one.
    #[must_use]
    pub const fn allow_loopback(mut self) -> Self {
        self.policy.loopback = true;
        self
    }

    /// Also connects to private networks (10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16, fc00::/7), by `https`.
    #[must_use]
    pub const fn allow_private(mut self) -> Self {
        self.policy.private = true;
        self
    }

    fn with_roots(roots: RootCertStore) -> Result<Self, TrustError> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: Arc::new(config).into(), names: Arc::new(SystemNames), policy: Policy::default() })
    }

    async fn answer(&self, request: FetchRequest) -> Result<FetchResponse, FetchError> {
        let target = Target::of(&request, self.policy)?;
        let limit = request.time_limit();
        let stream = connect::open(&*self.names, &target, self.policy, limit).await?;
        if !target.is_secured() {
            return exchange(stream, &target, request).await;
        }
        let secured = self.tls.connect(target.server_name()?, stream).await;
        exchange(secured.map_err(|error| broken("the TLS handshake", &error))?, &target, request).await
    }
}

impl fmt::Debug for HttpFetch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpFetch").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[async_trait]
impl Fetch for HttpFetch {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, FetchError> {
        let limit = request.time_limit();
        tokio::time::timeout(limit, self.answer(request)).await.unwrap_or(Err(FetchError::TimedOut))
    }
}

impl Policy {
    /// The rule that forbids the address, if one does. What is not secured stays on this machine.
    const fn forbids(self, reach: Reach, is_secured: bool) -> Option<&'static str> {
        match reach {
            Reach::Loopback if self.loopback => None,
            Reach::Loopback => Some("it is on this machine, which is not allowed here"),
            _ if !is_secured => Some("plain http is for this machine alone"),
            Reach::Public => None,
            Reach::Private if self.private => None,
            Reach::Private => Some("it is in a private network, which is not allowed here"),
            Reach::LinkLocal => Some("it is link-local"),
            Reach::Reserved => Some("it is reserved and no host's"),
        }
    }
}

/// Sends the request and reads the answer, while the connection is driven beside it.
async fn exchange<S>(stream: S, target: &Target, request: FetchRequest) -> Result<FetchResponse, FetchError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let bound = (request.maximum_bytes(), request.content_type().map(str::to_owned));
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(LARGEST_HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken("the connection", &error))?;
    let request = encoded(target, request)?;
    let mut answer = pin!(async move {
        let response = sender.send_request(request).await.map_err(|error| broken("the exchange", &error))?;
        collected(response, bound.0, bound.1.as_deref()).await
    });
    let mut connection = pin!(connection);
    let mut is_open = true;
    poll_fn(|context| {
        // Once the peer has closed it, what came before is still to be read.
        is_open = is_open && connection.as_mut().poll(context).is_pending();
        match answer.as_mut().poll(context) {
            Poll::Pending if is_open => {
                // What the answer asked for since then is up to the connection.
                is_open = connection.as_mut().poll(context).is_pending();
                Poll::Pending
            }
            outcome => outcome,
        }
    })
    .await
}

fn encoded(target: &Target, request: FetchRequest) -> Result<Request<Full<Bytes>>, FetchError> {
    let headers = request.headers().clone();
    let method = if request.form().is_some() { Method::POST } else { Method::GET };
    // Shares the form instead of copying it, so that it is wiped when the last who has it is done.
    let body = request.form().is_some().then(|| Bytes::from_owner(Form(request)));
    let mut encoded = Request::new(Full::new(body.unwrap_or_default()));
    *encoded.method_mut() = method;
    *encoded.uri_mut() = Uri::from(target.path().clone());
    *encoded.headers_mut() = headers;
    let host = HeaderValue::from_str(target.authority()).map_err(|_| forbidden("it is no address"))?;
    encoded.headers_mut().insert(header::HOST, host);
    let agent = HeaderValue::from_static(concat!("mcp-http/", env!("CARGO_PKG_VERSION")));
    encoded.headers_mut().entry(header::USER_AGENT).or_insert(agent);
    Ok(encoded)
}

/// A request whose form is sent.
struct Form(FetchRequest);

impl AsRef<[u8]> for Form {
    fn as_ref(&self) -> &[u8] {
        self.0.form().unwrap_or_default().as_bytes()
    }
}

async fn collected(
    response: Response<Incoming>,
    maximum: usize,
    content_type: Option<&str>,
) -> Result<FetchResponse, FetchError> {
    let (head, body) = response.into_parts();
    if head.status.is_success()
        && let Some(wanted) = content_type
    {
        let named = head.headers.get(header::CONTENT_TYPE).map(|value| value.as_bytes());
        let essence = named.and_then(|value| value.split(|byte| *byte == b';').next()).unwrap_or_default();
        if !essence.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes()) {
            return Err(FetchError::ContentType);
        }
    }
    // Who announces too much is not listened to.
    if usize::try_from(body.size_hint().lower()).map_or(true, |announced| announced > maximum) {
        return Err(FetchError::TooLarge);
    }
    let body = Limited::new(body, maximum).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() { FetchError::TooLarge } else { broken("the answer", &*error) }
    })?;
    Ok(FetchResponse::new(head.status, body.to_bytes().into()))
}

fn forbidden(rule: &'static str) -> FetchError {
    FetchError::Forbidden { rule }
}

/// With all that lies behind it: hyper and rustls tell the cause of a cause.
fn broken(what: &str, error: &dyn std::error::Error) -> FetchError {
    let mut reason = format!("{what}: {error}");
    let mut cause = error.source();
    while let Some(deeper) = cause {
        reason.push_str(": ");
        reason.push_str(&deeper.to_string());
        cause = deeper.source();
    }
    FetchError::Connection { reason }
}
