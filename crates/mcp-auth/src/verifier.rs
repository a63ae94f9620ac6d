//! Bearer tokens whose meaning somebody else knows: JWTs, introspection, or a verifier of the user's own.
//!
//! Why here: reading the header and wording the refusal is the same for every kind of token.
//! Invariants: a verifier sees well-formed tokens only, and no other part of the request; a token is in no log.
//! Spec: 2026-07-28 basic/authorization, "Token Handling"; RFC 6750 2.1

use std::fmt;

use async_trait::async_trait;
use http::HeaderName;
use mcp_core::Principal;

use crate::credential::{READ, bearer_token};
use crate::{AuthError, AuthProvider, AuthRequest, BearerChallenge, Challenge};

/// Says whom a bearer token stands for.
///
/// Implementations must check that the token was issued for this server (its audience): a token for another server,
/// accepted here, lets that server's operator act as its users.
#[async_trait]
pub trait TokenVerifier: Send + Sync + 'static {
    /// Whom `token` stands for, after whatever waiting that takes. Asked for every request.
    ///
    /// # Errors
    ///
    /// [`AuthError::NotRecognised`] for a token that may be another verifier's, so that a [`Chain`](crate::Chain) goes
    /// on; [`AuthError::InvalidToken`] or [`AuthError::Expired`] for one that is this verifier's and does not hold;
    /// [`AuthError::Unavailable`] if that cannot be told at present.
    async fn verify(&self, token: &str) -> Result<Principal, AuthError>;

    /// The answer, if it can be had without waiting; `None` (the default) leads to [`Self::verify`]. Where both answer
    /// they must agree.
    fn immediate(&self, token: &str) -> Option<Result<Principal, AuthError>> {
        let _ = token;
        None
    }
}

/// Lets in who presents a token that a [`TokenVerifier`] accepts, as `Authorization: Bearer <token>`.
///
/// Tokens have up to 16 KiB of RFC 6750's `b64token`; anything else is malformed. Challenges name the realm `mcp`.
///
/// ```
/// use async_trait::async_trait;
/// use mcp_auth::{AuthError, Bearer, TokenVerifier};
/// use mcp_core::Principal;
///
/// struct Sessions;
///
/// #[async_trait]
/// impl TokenVerifier for Sessions {
///     async fn verify(&self, token: &str) -> Result<Principal, AuthError> {
///         // Look the token up, and check that it was issued for this server.
///         # let _ = token;
///         Err(AuthError::NotRecognised)
///     }
/// }
///
/// let provider = Bearer::new(Sessions);
/// ```
pub struct Bearer {
    verifier: Box<dyn TokenVerifier>,
    challenge: BearerChallenge,
}

impl Bearer {
    /// Lets in whom `verifier` knows.
    #[must_use]
    pub fn new(verifier: impl TokenVerifier) -> Self {
        Self { verifier: Box::new(verifier), challenge: BearerChallenge::default() }
    }

    /// Replaces the realm, the scopes and the resource metadata that challenges name.
    #[must_use]
    pub fn with_challenge(mut self, challenge: BearerChallenge) -> Self {
        self.challenge = challenge;
        self
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Bearer").field("challenge", &self.challenge).finish_non_exhaustive()
    }
}

#[async_trait]
impl AuthProvider for Bearer {
    async fn authenticate(&self, request: AuthRequest<'_>) -> Result<Principal, AuthError> {
        self.verifier.verify(bearer_token(request.headers())?).await
    }

    fn challenge(&self, error: &AuthError) -> Challenge {
        self.challenge.answer(error)
    }

    fn immediate(&self, request: &AuthRequest<'_>) -> Option<Result<Principal, AuthError>> {
        match bearer_token(request.headers()) {
            Ok(token) => self.verifier.immediate(token),
            Err(error) => Some(Err(error)),
        }
    }

    fn headers(&self) -> &[HeaderName] {
        &READ
    }
}
