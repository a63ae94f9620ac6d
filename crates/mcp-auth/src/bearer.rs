//! Fixed bearer tokens, each standing for one principal.
//!
//! Why here: the smallest way to protect a server that has no authorisation server.
//! Invariants: tokens are kept as digests only; a check compares with every entry in constant time; a token is
//! never printed, nor is its digest.
//! Spec: 2026-07-28 basic/authorization, "Access Token Usage"; RFC 6750 2.1

use std::fmt;

use async_trait::async_trait;
use http::{HeaderMap, HeaderName};
use mcp_core::Principal;
use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};

use crate::credential::{READ, bearer_token, is_b64token};
use crate::{AuthError, AuthProvider, AuthRequest, BearerChallenge, Challenge};

/// Lets in who presents one of a fixed set of tokens as `Authorization: Bearer <token>`.
///
/// A check takes time linear in the number of tokens, whichever is presented: meant for a handful. Tokens have to be
/// random, because they are digested without salt; `openssl rand -base64 32` makes a good one.
#[derive(Debug)]
pub struct StaticBearer {
    entries: Vec<Entry>,
    challenge: BearerChallenge,
}

struct Entry {
    digest: [u8; 32],
    principal: Principal,
}

/// Without the digest: a token that was not random after all could be found from it.
impl fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.principal.fmt(formatter)
    }
}

/// Why a token cannot be served. The token itself is not in the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StaticBearerError {
    /// An empty token would let in anybody who sends the scheme alone.
    #[error("the token is empty")]
    Empty,
    /// A short token can be guessed.
    #[error("the token has {length} characters, at least {MINIMUM_LENGTH} are needed")]
    TooShort {
        /// How many it has.
        length: usize,
    },
    /// A longer one would never be accepted.
    #[error("the token has {length} characters, at most {MAXIMUM_LENGTH} are accepted")]
    TooLong {
        /// How many it has.
        length: usize,
    },
    /// A bearer token consists of letters, digits and `-._~+/`, with `=` at the end only.
    #[error("the token has a character that is not allowed in a bearer token")]
    Characters,
    /// The same token twice could stand for two principals.
    #[error("the token was given before")]
    Duplicate,
    /// Whoever serves fixed tokens reads no clock.
    #[error("a fixed token cannot stand for a principal that expires")]
    Expires,
}

impl StaticBearer {
    /// Lets in who presents `token`, as `principal`. Challenges name the realm `mcp`.
    ///
    /// # Errors
    ///
    /// [`StaticBearerError`]: a token has 16 to 4096 characters of RFC 6750's `b64token`, and the principal no expiry.
    pub fn new(token: &str, principal: Principal) -> Result<Self, StaticBearerError> {
        Self { entries: Vec::new(), challenge: BearerChallenge::default() }.and(token, principal)
    }

    /// Lets in who presents `token` as well, as `principal`.
    ///
    /// # Errors
    ///
    /// As for [`Self::new`], and [`StaticBearerError::Duplicate`] for a token that was given before.
    pub fn and(mut self, token: &str, principal: Principal) -> Result<Self, StaticBearerError> {
        let length = token.len();
        match length {
            0 => return Err(StaticBearerError::Empty),
            _ if !is_b64token(token.as_bytes()) => return Err(StaticBearerError::Characters),
            _ if length < MINIMUM_LENGTH => return Err(StaticBearerError::TooShort { length }),
            _ if length > MAXIMUM_LENGTH => return Err(StaticBearerError::TooLong { length }),
            _ => {}
        }
        if principal.expires_at().is_some() {
            return Err(StaticBearerError::Expires);
        }
        let digest = Sha256::digest(token).into();
        if self.entries.iter().any(|entry| entry.digest == digest) {
            return Err(StaticBearerError::Duplicate);
        }
        self.entries.push(Entry { digest, principal });
        Ok(self)
    }

    /// Replaces the realm and the resource metadata that challenges name.
    #[must_use]
    pub fn with_challenge(mut self, challenge: BearerChallenge) -> Self {
        self.challenge = challenge;
        self
    }

    fn check(&self, headers: &HeaderMap) -> Result<Principal, AuthError> {
        let token = bearer_token(headers)?;
        if token.len() > MAXIMUM_LENGTH {
            return Err(AuthError::NotRecognised);
        }
        let digest: [u8; 32] = Sha256::digest(token).into();
        let mut found = u64::MAX;
        for (index, entry) in (0_u64..).zip(&self.entries) {
            found.conditional_assign(&index, entry.digest[..].ct_eq(&digest[..]));
        }
        usize::try_from(found)
            .ok()
            .and_then(|index| self.entries.get(index))
            .map(|entry| entry.principal.clone())
            .ok_or(AuthError::NotRecognised)
    }
}

#[async_trait]
impl AuthProvider for StaticBearer {
    async fn authenticate(&self, request: AuthRequest<'_>) -> Result<Principal, AuthError> {
        self.check(request.headers())
    }

    fn challenge(&self, error: &AuthError) -> Challenge {
        self.challenge.answer(error)
    }

    fn immediate(&self, request: &AuthRequest<'_>) -> Option<Result<Principal, AuthError>> {
        Some(self.check(request.headers()))
    }

    fn headers(&self) -> &[HeaderName] {
        &READ
    }
}

/// Below this a token is too easy to guess: 16 characters of base64 are 96 bits.
const MINIMUM_LENGTH: usize = 16;
/// Bounds what is digested for a caller that nobody knows yet. A longer token may be another provider's.
const MAXIMUM_LENGTH: usize = 4096;

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use http::header::AUTHORIZATION;
    use http::{HeaderValue, Method, Uri};
    use proptest::prelude::*;

    use super::*;

    const ANN: &str = "aaaaaaaaaaaaaaaa";
    const BEN: &str = "bbbbbbbbbbbbbbbb-._~+/==";

    fn named(subject: &str) -> Principal {
        Principal::new("static", "", subject)
    }

    fn provider() -> StaticBearer {
        StaticBearer::new(ANN, named("ann")).and_then(|provider| provider.and(BEN, named("ben"))).unwrap()
    }

    fn answer(lines: &[&str]) -> Result<Principal, AuthError> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
        provider().immediate(&AuthRequest::new(&method, &uri, &headers)).unwrap()
    }

    #[test]
    fn each_token_stands_for_its_own_principal() {
        assert_eq!(answer(&[&format!("Bearer {ANN}")]), Ok(named("ann")));
        assert_eq!(answer(&[&format!("Bearer {BEN}")]), Ok(named("ben")));
    }

    #[test]
    fn the_scheme_is_read_in_any_case_and_with_any_number_of_spaces() {
        for scheme in ["bearer ", "BEARER ", "BeArEr   "] {
            assert_eq!(answer(&[&format!("{scheme}{ANN}")]), Ok(named("ann")), "{scheme}");
        }
    }

    #[test]
    fn a_token_that_differs_in_any_way_is_not_recognised() {
        for token in ["aaaaaaaaaaaaaaab", "aaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaa", "AAAAAAAAAAAAAAAA", "x"] {
            assert_eq!(answer(&[&format!("Bearer {token}")]), Err(AuthError::NotRecognised), "{token}");
        }
    }

    #[test]
    fn a_token_that_is_too_long_to_be_one_of_ours_is_left_to_others() {
        let long = format!("Bearer {}", "a".repeat(MAXIMUM_LENGTH + 1));
        assert_eq!(answer(&[&long]), Err(AuthError::NotRecognised));
        assert_eq!(answer(&["Bearer"]), Err(AuthError::Malformed));
        assert_eq!(answer(&[]), Err(AuthError::Missing));
    }

    #[test]
    fn unfit_tokens_are_refused_at_start() {
        let refusal = |token: &str| StaticBearer::new(token, named("ann")).unwrap_err();
        assert_eq!(refusal(""), StaticBearerError::Empty);
        assert_eq!(refusal("aaaaaaaaaaaaaaa"), StaticBearerError::TooShort { length: 15 });
        assert_eq!(refusal("aaaaaaaa aaaaaaaaa"), StaticBearerError::Characters);
        assert_eq!(refusal("aaaaaaaa=aaaaaaaaa"), StaticBearerError::Characters);
        assert_eq!(refusal("================"), StaticBearerError::Characters);
        assert_eq!(refusal("aaaaaaaaaaaaaaaä"), StaticBearerError::Characters);
        assert_eq!(refusal(&"a".repeat(4097)), StaticBearerError::TooLong { length: 4097 });
        let again = provider().and(ANN, named("eve")).unwrap_err();
        assert_eq!(again, StaticBearerError::Duplicate);
        let expiring = named("ann").with_expiry(SystemTime::UNIX_EPOCH);
        assert_eq!(StaticBearer::new(ANN, expiring).unwrap_err(), StaticBearerError::Expires);
    }

    #[test]
    fn debug_output_and_errors_hold_no_token() {
        let short = "secret-value";
        let error = StaticBearer::new(short, named("ann")).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(short));
        assert!(!format!("{:?}", provider()).contains(ANN));
    }

    #[test]
    fn browsers_may_be_allowed_to_send_the_header() {
        assert_eq!(provider().headers(), [AUTHORIZATION]);
    }

    #[test]
    fn a_challenge_names_the_realm_that_was_set() {
        let challenge = BearerChallenge::new("docs").unwrap();
        let refused = provider().with_challenge(challenge).challenge(&AuthError::InvalidToken);
        let header = refused.www_authenticate.unwrap();
        assert!(header.to_str().unwrap().starts_with("Bearer realm=\"docs\", error=\"invalid_token\""));
    }

    proptest! {
        #[test]
        fn nothing_but_a_known_token_lets_anybody_in(value in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut headers = HeaderMap::new();
            for prefix in [&b""[..], b"Bearer "] {
                if let Ok(value) = HeaderValue::from_bytes(&[prefix, &value].concat()) {
                    headers.insert(AUTHORIZATION, value);
                    prop_assert!(provider().check(&headers).is_err());
                }
            }
        }
    }
}
