//! The provider of a server that is open to everyone.
//!
//! Why here: being open is a choice that has to be named, so it is a provider like any other.
//! Invariants: never refuses, reads no header, allocates nothing.

use async_trait::async_trait;
use mcp_core::Principal;

use crate::{AuthError, AuthProvider, AuthRequest, BearerChallenge, Challenge};

/// Lets every request in as [`Principal::anonymous`].
///
/// All callers then own the same things: what one of them starts, each of them can see where its id is known.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct is written as a value; it will never have fields")]
pub struct Anonymous;

#[async_trait]
impl AuthProvider for Anonymous {
    async fn authenticate(&self, _request: AuthRequest<'_>) -> Result<Principal, AuthError> {
        Ok(Principal::anonymous())
    }

    /// Only reached for a refusal that came after authentication, such as a tool's missing scope.
    fn challenge(&self, error: &AuthError) -> Challenge {
        BearerChallenge::default().answer(error)
    }

    fn immediate(&self, _request: &AuthRequest<'_>) -> Option<Result<Principal, AuthError>> {
        Some(Ok(Principal::anonymous()))
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Method, Uri, header::AUTHORIZATION};

    use super::*;

    #[test]
    fn credentials_make_no_difference_to_an_open_server() {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer whatever"))]);
        let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
        let answer = Anonymous.immediate(&AuthRequest::new(&method, &uri, &headers));
        assert!(answer.unwrap().unwrap().is_anonymous());
    }
}
