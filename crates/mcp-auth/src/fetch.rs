//! The seam to the HTTP client by which providers ask others.
//!
//! Why here: key sets and introspection need one bounded request each and no client of their own, so that a program has
//! one client and one policy.
//! Invariants: what is asked names its bounds; what comes back is held to them here as well, whatever the client did.
//! Spec: 2026-07-28 basic/authorization, "Communication Security"

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use zeroize::Zeroizing;

use crate::address::is_private_address;

/// Makes one request on behalf of a provider.
///
/// An implementation
/// - verifies certificates, and never goes from `https` to `http`;
/// - follows no redirect: the answer of a redirect is the redirect;
/// - stops reading behind [`FetchRequest::maximum_bytes`], with [`FetchError::TooLarge`];
/// - refuses an answer of success that is not of [`FetchRequest::content_type`], with [`FetchError::ContentType`];
/// - ends within [`FetchRequest::time_limit`], and when its future is dropped.
///
/// The addresses come from the server's own configuration, never from a caller.
#[async_trait]
pub trait Fetch: Send + Sync + 'static {
    /// The answer, whatever its status.
    ///
    /// # Errors
    ///
    /// [`FetchError`]: there was none, or none within the bounds.
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, FetchError>;
}

/// A GET, or a POST of a form. `Debug` prints neither form nor headers.
pub struct FetchRequest {
    url: Box<str>,
    headers: HeaderMap,
    form: Option<Zeroizing<String>>,
    content_type: Option<&'static str>,
    maximum_bytes: usize,
    time_limit: Duration,
}

impl FetchRequest {
    /// A GET of `url` that asks for JSON, within 64 KiB and 5 seconds.
    #[must_use]
    pub fn new(url: &str) -> Self {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("application/json"))]);
        Self {
            url: url.into(),
            headers,
            form: None,
            content_type: None,
            maximum_bytes: 64 * 1024,
            time_limit: Duration::from_secs(5),
        }
    }

    /// Makes it a POST of `form`, which is encoded already.
    #[must_use]
    pub fn with_form(mut self, form: &str) -> Self {
        let encoding = HeaderValue::from_static("application/x-www-form-urlencoded");
        self.headers.insert(header::CONTENT_TYPE, encoding);
        self.form = Some(Zeroizing::new(form.to_owned()));
        self
    }

    /// Adds or replaces an `Authorization` header; it is marked as sensitive.
    #[must_use]
    pub fn with_authorization(mut self, mut value: HeaderValue) -> Self {
        value.set_sensitive(true);
        self.headers.insert(header::AUTHORIZATION, value);
        self
    }

    /// Takes no answer of success but of this media type, whatever its parameters. Default: any.
    #[must_use]
    pub const fn with_content_type(mut self, media_type: &'static str) -> Self {
        self.content_type = Some(media_type);
        self
    }

    /// Replaces the bounds.
    #[must_use]
    pub const fn with_bounds(mut self, maximum_bytes: usize, time_limit: Duration) -> Self {
        self.maximum_bytes = maximum_bytes;
        self.time_limit = time_limit;
        self
    }

    /// Where to.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether the address keeps what it carries from others: `https`, or `http` on a loopback host, and no name and
    /// password in it.
    #[must_use]
    pub fn is_private(&self) -> bool {
        is_private_address(&self.url)
    }

    /// The headers to send.
    #[must_use]
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body of a POST; a request without one is a GET.
    #[must_use]
    pub fn form(&self) -> Option<&str> {
        self.form.as_ref().map(|form| form.as_str())
    }

    /// The one media type that an answer of success may have.
    #[must_use]
    pub const fn content_type(&self) -> Option<&'static str> {
        self.content_type
    }

    /// How many bytes of a body may be read.
    #[must_use]
    pub const fn maximum_bytes(&self) -> usize {
        self.maximum_bytes
    }

    /// How long it may all take.
    #[must_use]
    pub const fn time_limit(&self) -> Duration {
        self.time_limit
    }
}

impl fmt::Debug for FetchRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FetchRequest")
            .field("url", &self.url)
            .field("maximum_bytes", &self.maximum_bytes)
            .field("time_limit", &self.time_limit)
            .finish_non_exhaustive()
    }
}

/// What came back. `Debug` prints no body.
pub struct FetchResponse {
    status: StatusCode,
    body: Vec<u8>,
}

impl FetchResponse {
    /// A whole response.
    #[must_use]
    pub const fn new(status: StatusCode, body: Vec<u8>) -> Self {
        Self { status, body }
    }

    /// Its status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Its body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

impl fmt::Debug for FetchResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FetchResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Why nothing came back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The client's policy forbids the address.
    #[error("the address is not allowed: {rule}")]
    Forbidden {
        /// Which rule forbids it, as a sentence about the address.
        rule: &'static str,
    },
    /// Nobody was reached, or the connection broke.
    #[error("the connection failed: {reason}")]
    Connection {
        /// What the client says; for the log.
        reason: String,
    },
    /// It took longer than it may.
    #[error("there was no answer in time")]
    TimedOut,
    /// The body has more bytes than may be read.
    #[error("the answer is too large")]
    TooLarge,
    /// The answer is of another media type than was asked for.
    #[error("the answer is of another kind")]
    ContentType,
}

/// The body of a 200 within its bounds, held to them whatever the client did.
///
/// # Errors
///
/// A text for the log.
#[cfg(any(feature = "jwt", feature = "introspection"))]
pub(crate) async fn fetch_body(fetch: &dyn Fetch, request: FetchRequest) -> Result<Vec<u8>, String> {
    let (maximum, limit) = (request.maximum_bytes, request.time_limit);
    let outcome = tokio::time::timeout(limit, fetch.fetch(request)).await.unwrap_or(Err(FetchError::TimedOut));
    match outcome {
        Ok(response) if response.body.len() > maximum => Err(FetchError::TooLarge.to_string()),
        Ok(response) if response.status == StatusCode::OK => Ok(response.body),
        Ok(response) => Err(format!("the answer has status {}", response.status.as_u16())),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_holds_no_form_no_credentials_and_no_body() {
        let request = FetchRequest::new("https://as.example/introspect")
            .with_form("token=secret-value")
            .with_authorization(HeaderValue::from_static("Basic secret-value"));
        let response = FetchResponse::new(StatusCode::OK, b"secret-value".to_vec());
        let printed = format!("{request:?} {response:?} {:?}", request.headers());
        assert!(printed.contains("introspect") && !printed.contains("secret-value"), "{printed}");
    }
}
