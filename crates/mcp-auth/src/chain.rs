//! Several providers behind one another.
//!
//! Why here: a server with two kinds of callers has two kinds of credentials, and one place decides which provider
//! speaks.
//! Invariants: the first provider that recognises the credentials decides; credentials that nobody recognised never
//! become the anonymous caller.

use std::fmt;

use async_trait::async_trait;
use http::{HeaderName, HeaderValue};
use mcp_core::Principal;

use crate::{AuthError, AuthProvider, AuthRequest, Challenge};

/// Asks providers in their order: the first that recognises the credentials decides.
///
/// A provider does not recognise them if it answers [`AuthError::Missing`] (none of its scheme) or
/// [`AuthError::NotRecognised`] (a token that may be another's); every other answer is final. If nobody recognises them
/// the answer is [`AuthError::NotRecognised`] if some were sent and [`AuthError::Missing`] if not. Challenges name the
/// schemes of all, the first provider's first.
///
/// ```
/// use mcp_auth::{Anonymous, Chain, StaticBearer};
/// use mcp_core::Principal;
///
/// let tokens = StaticBearer::new("2f0a9c51d3e84b7f", Principal::new("static", "", "build-server"))?;
/// // Whoever presents a token has to present a right one; whoever presents none is anonymous.
/// let provider = Chain::new(tokens).and(Anonymous);
/// # Ok::<(), mcp_auth::StaticBearerError>(())
/// ```
pub struct Chain {
    first: Box<dyn AuthProvider>,
    others: Vec<Box<dyn AuthProvider>>,
    headers: Vec<HeaderName>,
}

impl Chain {
    /// Asks `provider` first.
    #[must_use]
    pub fn new(provider: impl AuthProvider) -> Self {
        let headers = provider.headers().to_vec();
        Self { first: Box::new(provider), others: Vec::new(), headers }
    }

    /// Asks `provider` if those before it do not recognise the credentials.
    #[must_use]
    pub fn and(mut self, provider: impl AuthProvider) -> Self {
        for header in provider.headers() {
            if !self.headers.contains(header) {
                self.headers.push(header.clone());
            }
        }
        self.others.push(Box::new(provider));
        self
    }

    fn providers(&self) -> impl Iterator<Item = &dyn AuthProvider> {
        std::iter::once(&*self.first).chain(self.others.iter().map(AsRef::as_ref))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Chain").field("providers", &(1 + self.others.len())).finish_non_exhaustive()
    }
}

#[async_trait]
impl AuthProvider for Chain {
    async fn authenticate(&self, request: AuthRequest<'_>) -> Result<Principal, AuthError> {
        let mut tally = Tally(AuthError::Missing);
        for provider in self.providers() {
            let outcome = match provider.immediate(&request) {
                Some(outcome) => outcome,
                None => provider.authenticate(request).await,
            };
            if let Some(decision) = tally.judge(outcome) {
                return decision;
            }
        }
        Err(tally.0)
    }

    fn challenge(&self, error: &AuthError) -> Challenge {
        let mut challenge = self.first.challenge(error);
        let mut named: Vec<HeaderValue> = Vec::new();
        for header in self.providers().filter_map(|provider| provider.challenge(error).www_authenticate) {
            if !named.contains(&header) {
                named.push(header);
            }
        }
        let joined = named.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b", "[..]);
        // Parts of header values, joined by text, are a header value.
        challenge.www_authenticate = HeaderValue::from_bytes(&joined).ok().filter(|header| !header.is_empty());
        challenge
    }

    fn immediate(&self, request: &AuthRequest<'_>) -> Option<Result<Principal, AuthError>> {
        let mut tally = Tally(AuthError::Missing);
        for provider in self.providers() {
            if let Some(decision) = tally.judge(provider.immediate(request)?) {
                return Some(decision);
            }
        }
        Some(Err(tally.0))
    }

    fn headers(&self) -> &[HeaderName] {
        &self.headers
    }
}

/// What those who have been asked came to.
struct Tally(AuthError);

impl Tally {
    /// The decision, if `outcome` is one.
    fn judge(&mut self, outcome: Result<Principal, AuthError>) -> Option<Result<Principal, AuthError>> {
        match outcome {
            Err(AuthError::Missing) => None,
            Err(AuthError::NotRecognised) => {
                self.0 = AuthError::NotRecognised;
                None
            }
            // A wrong token is refused; it does not make its bearer anonymous.
            Ok(principal) if principal.is_anonymous() && self.0 != AuthError::Missing => Some(Err(self.0.clone())),
            decision => Some(decision),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method, StatusCode, Uri, header::AUTHORIZATION};

    use super::*;
    use crate::{Anonymous, BearerChallenge, StaticBearer};

    /// Answers what it was told to, with or without waiting.
    struct Fixed {
        outcome: Result<Principal, AuthError>,
        waits: bool,
        scheme: &'static str,
        header: [HeaderName; 1],
    }

    impl Fixed {
        fn new(outcome: Result<&str, AuthError>, waits: bool) -> Self {
            let outcome = outcome.map(|subject| Principal::new("fixed", "", subject));
            Self { outcome, waits, scheme: "Bearer", header: [AUTHORIZATION] }
        }
    }

    #[async_trait]
    impl AuthProvider for Fixed {
        async fn authenticate(&self, _request: AuthRequest<'_>) -> Result<Principal, AuthError> {
            self.outcome.clone()
        }

        fn challenge(&self, error: &AuthError) -> Challenge {
            BearerChallenge::default().answer_in(self.scheme, "", error)
        }

        fn immediate(&self, _request: &AuthRequest<'_>) -> Option<Result<Principal, AuthError>> {
            (!self.waits).then(|| self.outcome.clone())
        }

        fn headers(&self) -> &[HeaderName] {
            &self.header
        }
    }

    async fn ask(chain: &Chain) -> Result<Principal, AuthError> {
        let (method, uri, headers) = (Method::POST, Uri::from_static("/mcp"), HeaderMap::new());
        let request = AuthRequest::new(&method, &uri, &headers);
        let waited = chain.authenticate(request).await;
        if let Some(immediate) = chain.immediate(&request) {
            assert_eq!(immediate, waited, "both halves agree");
        }
        waited
    }

    #[tokio::test]
    async fn the_first_provider_that_recognises_the_credentials_decides() {
        use AuthError::{Expired, InvalidToken, Malformed, Missing, NotRecognised, Unavailable};
        let ben = || Ok("ben");
        for (first, second, decision) in [
            (Ok("ann"), ben(), Ok("ann")),
            (Err(Missing), ben(), ben()),
            (Err(NotRecognised), ben(), ben()),
            (Err(InvalidToken), ben(), Err(InvalidToken)),
            (Err(Expired), ben(), Err(Expired)),
            (Err(Malformed), ben(), Err(Malformed)),
            (Err(Unavailable), ben(), Err(Unavailable)),
            (Err(Missing), Err(Missing), Err(Missing)),
            (Err(NotRecognised), Err(Missing), Err(NotRecognised)),
            (Err(Missing), Err(NotRecognised), Err(NotRecognised)),
            (Err(NotRecognised), Err(Expired), Err(Expired)),
        ] {
            for (waits, also) in [(false, false), (false, true), (true, false), (true, true)] {
                let chain = Chain::new(Fixed::new(first.clone(), waits)).and(Fixed::new(second.clone(), also));
                let outcome = ask(&chain).await;
                let named = outcome.as_ref().map(Principal::subject).map_err(Clone::clone);
                assert_eq!(named, decision, "{first:?} then {second:?}");
            }
        }
    }

    #[tokio::test]
    async fn credentials_that_nobody_recognised_do_not_make_an_anonymous_caller() {
        let open = |error| Chain::new(Fixed::new(Err(error), false)).and(Anonymous);
        assert!(ask(&open(AuthError::Missing)).await.unwrap().is_anonymous());
        assert_eq!(ask(&open(AuthError::NotRecognised)).await, Err(AuthError::NotRecognised));
    }

    #[test]
    fn a_chain_waits_only_from_the_first_provider_that_does() {
        let (method, uri, headers) = (Method::POST, Uri::from_static("/mcp"), HeaderMap::new());
        let request = AuthRequest::new(&method, &uri, &headers);
        let waiting = || Fixed::new(Ok("ann"), true);
        assert!(Chain::new(Fixed::new(Ok("ben"), false)).and(waiting()).immediate(&request).is_some());
        assert!(Chain::new(Fixed::new(Err(AuthError::Missing), false)).and(waiting()).immediate(&request).is_none());
    }

    #[test]
    fn a_challenge_names_each_scheme_once_and_none_in_an_outage() {
        let missing = || Fixed::new(Err(AuthError::Missing), false);
        let key = Fixed { scheme: "ApiKey", header: [HeaderName::from_static("x-api-key")], ..missing() };
        let chain = Chain::new(missing()).and(key).and(missing());
        let challenge = chain.challenge(&AuthError::Missing);
        assert_eq!(challenge.status, StatusCode::UNAUTHORIZED);
        assert_eq!(challenge.www_authenticate.unwrap(), r#"Bearer realm="mcp", ApiKey realm="mcp""#);
        assert_eq!(chain.challenge(&AuthError::Unavailable).www_authenticate, None);
        assert_eq!(chain.headers(), [AUTHORIZATION, HeaderName::from_static("x-api-key")]);
    }

    #[test]
    fn a_token_of_the_second_provider_passes_the_first() {
        let tokens = |token, subject| StaticBearer::new(token, Principal::new("static", "", subject)).unwrap();
        let chain = Chain::new(tokens("aaaaaaaaaaaaaaaa", "ann")).and(tokens("bbbbbbbbbbbbbbbb", "ben"));
        for (line, subject) in [("Bearer aaaaaaaaaaaaaaaa", "ann"), ("Bearer bbbbbbbbbbbbbbbb", "ben")] {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(line))]);
            let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
            let answer = chain.immediate(&AuthRequest::new(&method, &uri, &headers)).unwrap();
            assert_eq!(answer.unwrap().subject(), subject);
        }
    }
}
