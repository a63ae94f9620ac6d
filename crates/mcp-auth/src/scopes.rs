//! Scopes that every request needs.
//!
//! Why here: what a caller may do is asked behind the provider that found out who it is, whichever that was.
//! Invariants: fails closed: a caller without scopes lacks them all; all that are needed are named, not the missing ones.
//! Spec: 2026-07-28 basic/authorization, "Scope Challenge Handling"

use async_trait::async_trait;
use http::HeaderName;
use mcp_core::Principal;

use crate::challenge::is_scope;
use crate::{AuthError, AuthProvider, AuthRequest, Challenge, InvalidOption};

/// Lets in whom another provider lets in and who has all of a few scopes; others are answered with 403.
///
/// Name the scopes in [`BearerChallenge::with_scopes`](crate::BearerChallenge::with_scopes) as well, so that callers
/// ask for them from the start.
#[derive(Debug)]
pub struct RequiredScopes<P> {
    provider: P,
    scopes: Vec<String>,
}

impl<P: AuthProvider> RequiredScopes<P> {
    /// Asks `provider` who is calling, then for all of `scopes`.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] for no scopes, or one that a token could not hold (RFC 6749 3.3).
    pub fn new<S: Into<String>>(provider: P, scopes: impl IntoIterator<Item = S>) -> Result<Self, InvalidOption> {
        let scopes: Vec<String> = scopes.into_iter().map(Into::into).collect();
        let refuse = |reason| Err(InvalidOption::new("required scopes", "scopes", reason));
        match scopes.iter().all(|scope| is_scope(scope)) {
            _ if scopes.is_empty() => refuse("must not be empty"),
            false => refuse("hold a character that is not allowed in a scope"),
            true => Ok(Self { provider, scopes }),
        }
    }

    fn check(&self, principal: Principal) -> Result<Principal, AuthError> {
        if self.scopes.iter().all(|scope| principal.has_scope(scope)) {
            Ok(principal)
        } else {
            Err(AuthError::InsufficientScope { needed: self.scopes.clone() })
        }
    }
}

#[async_trait]
impl<P: AuthProvider> AuthProvider for RequiredScopes<P> {
    async fn authenticate(&self, request: AuthRequest<'_>) -> Result<Principal, AuthError> {
        self.provider.authenticate(request).await.and_then(|principal| self.check(principal))
    }

    fn challenge(&self, error: &AuthError) -> Challenge {
        let AuthError::InsufficientScope { needed } = error else { return self.provider.challenge(error) };
        // Who asks for what one operation lacks must not lose what every request needs.
        let mut all = self.scopes.clone();
        all.extend(needed.iter().filter(|scope| !self.scopes.contains(scope)).cloned());
        self.provider.challenge(&AuthError::InsufficientScope { needed: all })
    }

    fn immediate(&self, request: &AuthRequest<'_>) -> Option<Result<Principal, AuthError>> {
        let outcome = self.provider.immediate(request)?;
        Some(outcome.and_then(|principal| self.check(principal)))
    }

    fn headers(&self) -> &[HeaderName] {
        self.provider.headers()
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Method, Uri, header::AUTHORIZATION};

    use super::*;
    use crate::{Anonymous, StaticBearer};

    #[test]
    fn only_callers_with_every_scope_are_let_in() {
        let named = |subject, scopes: &[&str]| Principal::new("static", "", subject).with_scopes(scopes.to_vec());
        let tokens = StaticBearer::new("aaaaaaaaaaaaaaaa", named("ann", &["write", "read"]))
            .and_then(|tokens| tokens.and("bbbbbbbbbbbbbbbb", named("ben", &["read"])))
            .and_then(|tokens| tokens.and("cccccccccccccccc", named("cid", &[])))
            .unwrap();
        let provider = RequiredScopes::new(tokens, ["read", "write"]).unwrap();
        let answer = |token: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::try_from(token).unwrap())]);
            let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
            provider.immediate(&AuthRequest::new(&method, &uri, &headers)).unwrap()
        };
        let lacking = AuthError::InsufficientScope { needed: vec!["read".to_owned(), "write".to_owned()] };
        assert_eq!(answer("Bearer aaaaaaaaaaaaaaaa").unwrap().subject(), "ann");
        assert_eq!(answer("Bearer bbbbbbbbbbbbbbbb"), Err(lacking.clone()));
        assert_eq!(answer("Bearer cccccccccccccccc"), Err(lacking.clone()));
        assert_eq!(answer("Bearer dddddddddddddddd"), Err(AuthError::NotRecognised));
        let header = provider.challenge(&lacking).www_authenticate.unwrap();
        assert!(header.to_str().unwrap().contains(r#"error="insufficient_scope""#));
        assert!(header.to_str().unwrap().contains(r#"scope="read write""#));
        assert_eq!(provider.headers(), [AUTHORIZATION]);
        let of_a_tool = AuthError::InsufficientScope { needed: vec!["admin".to_owned(), "read".to_owned()] };
        let header = provider.challenge(&of_a_tool).www_authenticate.unwrap();
        assert!(header.to_str().unwrap().contains(r#"scope="read write admin""#), "{header:?}");
    }

    #[test]
    fn no_scopes_and_impossible_ones_are_refused_at_start() {
        assert_eq!(RequiredScopes::new(Anonymous, [""; 0]).unwrap_err().reason(), "must not be empty");
        for scope in ["", "a b", "a\"b", "ä"] {
            let refusal = RequiredScopes::new(Anonymous, ["read", scope]).unwrap_err();
            assert_eq!(refusal.to_string(), "required scopes: scopes hold a character that is not allowed in a scope");
        }
    }
}
