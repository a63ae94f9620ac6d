//! The seam between transports and the ways to authenticate a request.
//!
//! Why here: transports know no scheme and providers no transport; this is all they share.
//! Invariants: a provider sees the head of a request only; `AuthError::status` is the one place that picks the status.

use std::net::SocketAddr;

use http::{HeaderMap, Method, StatusCode, Uri};
#[cfg(feature = "server")]
use {crate::Challenge, async_trait::async_trait, http::HeaderName, mcp_core::Principal};

/// Finds out who sent a request. Asked once for every request, also within a session.
///
/// A transport asks [`Self::immediate`] first, and [`Self::authenticate`] only if that has no answer.
#[cfg(feature = "server")]
#[async_trait]
pub trait AuthProvider: Send + Sync + 'static {
    /// Who sent the request, after whatever waiting that takes.
    ///
    /// # Errors
    ///
    /// Why the sender could not be authenticated; the transport answers with [`Self::challenge`] of it.
    async fn authenticate(&self, request: AuthRequest<'_>) -> Result<Principal, AuthError>;

    /// What a refused request is answered with.
    fn challenge(&self, error: &AuthError) -> Challenge;

    /// The answer, if it can be had without waiting. `None` (the default) sends the request to
    /// [`Self::authenticate`].
    ///
    /// Exists because an `async` method of an object costs an allocation per call: a provider that only looks at
    /// memory answers here, and a request pays nothing. Where both answer they must agree.
    fn immediate(&self, request: &AuthRequest<'_>) -> Option<Result<Principal, AuthError>> {
        let _ = request;
        None
    }

    /// The request headers this provider reads, so that browsers on other origins may be allowed to send them.
    /// Default: none.
    fn headers(&self) -> &[HeaderName] {
        &[]
    }
}

/// The head of a request, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct AuthRequest<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    peer: Option<SocketAddr>,
}

impl<'a> AuthRequest<'a> {
    /// A request whose sender's address is not known.
    #[must_use]
    pub const fn new(method: &'a Method, uri: &'a Uri, headers: &'a HeaderMap) -> Self {
        Self { method, uri, headers, peer: None }
    }

    /// Adds the address at the other end of the connection, which may be a proxy's.
    #[must_use]
    pub const fn with_peer(mut self, peer: SocketAddr) -> Self {
        self.peer = Some(peer);
        self
    }

    /// The request's method.
    #[must_use]
    pub const fn method(&self) -> &'a Method {
        self.method
    }

    /// The request's target as it was sent.
    #[must_use]
    pub const fn uri(&self) -> &'a Uri {
        self.uri
    }

    /// The request's headers.
    #[must_use]
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// The address at the other end of the connection, if the transport knows one.
    #[must_use]
    pub const fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }
}

/// Why a request was not authenticated.
///
/// The texts are for the server's own log. What a client reads is fixed by [`Challenge`](crate::Challenge) and does
/// not tell one failed verification from another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The request has no credentials of a scheme the provider takes.
    #[error("the request carries no credentials")]
    Missing,
    /// A token was sent that does not hold.
    #[error("the token is not valid")]
    InvalidToken,
    /// Credentials were sent that may be another provider's: a [`Chain`](crate::Chain) asks the next one. To the caller
    /// it reads like any failed verification.
    #[error("the credentials are of no kind known here")]
    NotRecognised,
    /// A token was sent that was valid once.
    #[error("the token has expired")]
    Expired,
    /// A name with a wrong secret, or an unknown name.
    #[error("the credentials are not valid")]
    InvalidCredentials,
    /// The sender is known and may not do this.
    #[error("the caller lacks a scope; needed are {needed:?}")]
    InsufficientScope {
        /// All scopes the operation needs, those included that the caller has.
        needed: Vec<String>,
    },
    /// The credentials are not well formed, or were sent more than once.
    #[error("the credentials are malformed or repeated")]
    Malformed,
    /// Whoever has to be asked about the credentials cannot be reached.
    #[error("the credentials cannot be verified at present")]
    Unavailable,
}

impl AuthError {
    /// The status a request refused for this reason is answered with: 401, 403, 400 or 503.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Missing | Self::InvalidToken | Self::NotRecognised | Self::Expired | Self::InvalidCredentials => {
                StatusCode::UNAUTHORIZED
            }
            Self::InsufficientScope { .. } => StatusCode::FORBIDDEN,
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use super::*;
    use crate::{Anonymous, BearerChallenge};

    struct Directory;

    #[async_trait]
    impl AuthProvider for Directory {
        async fn authenticate(&self, request: AuthRequest<'_>) -> Result<Principal, AuthError> {
            match request.peer() {
                Some(peer) if peer.ip().is_loopback() => Ok(Principal::new("directory", "", "local")),
                Some(_) => Err(AuthError::InvalidCredentials),
                None => Err(AuthError::Missing),
            }
        }

        fn challenge(&self, error: &AuthError) -> Challenge {
            BearerChallenge::default().answer(error)
        }
    }

    #[tokio::test]
    async fn a_provider_of_ones_own_needs_two_methods_and_works_as_an_object() {
        let provider: Box<dyn AuthProvider> = Box::new(Directory);
        let (method, uri, headers) = (Method::POST, Uri::from_static("/mcp"), HeaderMap::new());
        let request = AuthRequest::new(&method, &uri, &headers);
        assert!(provider.immediate(&request).is_none());
        assert!(provider.headers().is_empty());
        assert_eq!(provider.authenticate(request).await, Err(AuthError::Missing));
        let local = request.with_peer(([127, 0, 0, 1], 4000).into());
        assert_eq!(provider.authenticate(local).await.unwrap().subject(), "local");
    }

    #[tokio::test]
    async fn both_halves_of_a_provider_that_needs_no_waiting_agree() {
        let (method, uri, headers) = (Method::GET, Uri::from_static("/mcp"), HeaderMap::new());
        let request = AuthRequest::new(&method, &uri, &headers);
        assert_eq!(Anonymous.immediate(&request), Some(Anonymous.authenticate(request).await));
    }
}
