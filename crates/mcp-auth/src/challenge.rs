//! What a refused request is answered with.
//!
//! Why here: every provider refuses in the same words, so that refusals tell an attacker nothing.
//! Invariants: a value inside `WWW-Authenticate` cannot end its quotes; all failed verifications read alike.
//! Spec: 2026-07-28 basic/authorization, "Error Handling"

use std::borrow::Cow;

use http::{HeaderValue, StatusCode};

use crate::AuthError;

/// The answer to a refused request: a status, a challenge and a small JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// The response's status.
    pub status: StatusCode,
    /// The `WWW-Authenticate` header, where there is one.
    pub www_authenticate: Option<HeaderValue>,
    /// The body, of type `application/json`.
    pub body: Cow<'static, str>,
}

impl Challenge {
    /// A challenge of any scheme. `body` must be JSON.
    #[must_use]
    pub fn new(status: StatusCode, www_authenticate: Option<HeaderValue>, body: impl Into<Cow<'static, str>>) -> Self {
        Self { status, www_authenticate, body: body.into() }
    }

    /// Also says where the metadata of `resource` are, if there is a challenge at all and it does not say so yet: in the
    /// Bearer challenge that the header begins with, or else in one that is added.
    #[cfg(feature = "server")]
    #[must_use]
    pub fn leading_to(mut self, resource: &crate::ProtectedResource) -> Self {
        let Some(header) = &self.www_authenticate else { return self };
        let said = header.as_bytes();
        if said.windows(PARAMETER.len()).any(|window| window.eq_ignore_ascii_case(PARAMETER)) {
            return self;
        }
        let parameter = format!("resource_metadata=\"{}\"", resource.url());
        let led = match said.split_at_checked(BEARER.len()) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(BEARER) && !rest.trim_ascii().is_empty() => {
                [scheme, parameter.as_bytes(), b", ", rest].concat()
            }
            _ => [said, b", Bearer ", parameter.as_bytes()].concat(),
        };
        // Parts of header values and an address that is one, joined by text.
        self.www_authenticate = HeaderValue::from_bytes(&led).ok().or(self.www_authenticate);
        self
    }
}

#[cfg(feature = "server")]
const PARAMETER: &[u8] = b"resource_metadata=";
#[cfg(feature = "server")]
const BEARER: &[u8] = b"Bearer ";

/// Writes challenges of the Bearer scheme (RFC 6750, RFC 9728).
///
/// Default: realm `mcp`, no resource metadata, no scopes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BearerChallenge {
    realm: Box<str>,
    resource_metadata: Option<Box<str>>,
    scopes: Vec<String>,
}

/// A text that cannot stand in a `WWW-Authenticate` header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidChallenge {
    /// A realm is printable ASCII.
    #[error("a realm may hold printable ASCII characters only")]
    Realm,
    /// An address is ASCII without spaces, quotes and backslashes.
    #[error("the address of the resource metadata is not a plain ASCII address")]
    ResourceMetadata,
    /// A scope is ASCII without spaces, quotes and backslashes.
    #[error("a scope may hold printable ASCII characters only, and no space, quote or backslash")]
    Scope,
}

impl BearerChallenge {
    /// Challenges that name `realm`. Quotes and backslashes in it are escaped.
    ///
    /// # Errors
    ///
    /// [`InvalidChallenge::Realm`] for a character outside printable ASCII.
    pub fn new(realm: &str) -> Result<Self, InvalidChallenge> {
        if !realm.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(InvalidChallenge::Realm);
        }
        Ok(Self { realm: realm.into(), ..Self::default() })
    }

    /// Also says where the protected resource's metadata are.
    ///
    /// # Errors
    ///
    /// [`InvalidChallenge::ResourceMetadata`] if `url` could not stand between quotes as it is.
    pub fn with_resource_metadata(mut self, url: &str) -> Result<Self, InvalidChallenge> {
        if url.is_empty() || !url.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')) {
            return Err(InvalidChallenge::ResourceMetadata);
        }
        self.resource_metadata = Some(url.into());
        Ok(self)
    }

    /// Also says which scopes to ask for, to a caller who is not authenticated. What an operation needs beyond them
    /// is said when it is refused.
    ///
    /// # Errors
    ///
    /// [`InvalidChallenge::Scope`] for a scope that could not be asked for.
    pub fn with_scopes<S: Into<String>>(
        mut self,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<Self, InvalidChallenge> {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        if self.scopes.iter().all(|scope| is_scope(scope)) { Ok(self) } else { Err(InvalidChallenge::Scope) }
    }

    /// The answer to a request that was refused because of `error`.
    #[must_use]
    pub fn answer(&self, error: &AuthError) -> Challenge {
        let (code, description) = public_words(error);
        let mut parameters = String::new();
        // RFC 6750 3.1: who sent no credentials gets no error code.
        if *error != AuthError::Missing {
            parameters.push_str(&format!(r#", error="{code}", error_description="{description}""#));
        }
        let scopes = if let AuthError::InsufficientScope { needed } = error { needed } else { &self.scopes };
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).filter(|scope| is_scope(scope)).collect();
        // A malformed request is not helped by scopes.
        if !scopes.is_empty() && *error != AuthError::Malformed {
            parameters.push_str(&format!(r#", scope="{}""#, scopes.join(" ")));
        }
        self.answer_in("Bearer", &parameters, error)
    }

    /// The answer in the words of `scheme`. `parameters` follow the realm, each behind a comma, and are ASCII.
    pub(crate) fn answer_in(&self, scheme: &str, parameters: &str, error: &AuthError) -> Challenge {
        let mut text = format!("{scheme} realm={}{parameters}", Quoted(&self.realm));
        if let Some(url) = &self.resource_metadata {
            text.push_str(&format!(r#", resource_metadata="{url}""#));
        }
        let www_authenticate = match error {
            // Authenticating anew would not help.
            AuthError::Unavailable => None,
            // Every part is printable ASCII by now.
            _ => HeaderValue::try_from(text).ok(),
        };
        let (code, description) = public_words(error);
        let body = format!(r#"{{"error":"{code}","error_description":"{description}"}}"#);
        Challenge::new(error.status(), www_authenticate, body)
    }
}

impl Default for BearerChallenge {
    fn default() -> Self {
        Self { realm: "mcp".into(), resource_metadata: None, scopes: Vec::new() }
    }
}

/// What the client may know. The words hold no character that JSON or a quoted string would escape.
const fn public_words(error: &AuthError) -> (&'static str, &'static str) {
    match error {
        AuthError::Missing => ("unauthorized", "credentials are needed"),
        AuthError::InvalidToken | AuthError::NotRecognised | AuthError::Expired | AuthError::InvalidCredentials => {
            ("invalid_token", "the credentials are not valid")
        }
        AuthError::InsufficientScope { .. } => ("insufficient_scope", "the credentials do not permit this"),
        AuthError::Malformed => ("invalid_request", "the credentials are malformed or repeated"),
        AuthError::Unavailable => ("temporarily_unavailable", "the credentials cannot be verified at present"),
    }
}

/// RFC 6749 3.3: printable ASCII without space, quote and backslash. Other scopes could not be asked for anyway.
pub(crate) fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write;
        formatter.write_char('"')?;
        for character in self.0.chars() {
            if matches!(character, '"' | '\\') {
                formatter.write_char('\\')?;
            }
            formatter.write_char(character)?;
        }
        formatter.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(challenge: &Challenge) -> &str {
        challenge.www_authenticate.as_ref().unwrap().to_str().unwrap()
    }

    #[test]
    fn each_reason_has_its_status() {
        let insufficient = AuthError::InsufficientScope { needed: Vec::new() };
        for (error, status) in [
            (AuthError::Missing, 401),
            (AuthError::InvalidToken, 401),
            (AuthError::NotRecognised, 401),
            (AuthError::Expired, 401),
            (AuthError::InvalidCredentials, 401),
            (insufficient, 403),
            (AuthError::Malformed, 400),
            (AuthError::Unavailable, 503),
        ] {
            assert_eq!(error.status(), status, "{error:?}");
            assert_eq!(BearerChallenge::default().answer(&error).status, status, "{error:?}");
        }
    }

    #[cfg(feature = "server")]
    #[test]
    fn a_challenge_is_led_to_the_metadata_once() {
        let resource = crate::ProtectedResource::new("https://h/mcp", ["https://login.example"]).unwrap();
        let led = |said: &'static str| {
            let challenge = Challenge::new(StatusCode::UNAUTHORIZED, Some(HeaderValue::from_static(said)), "{}");
            header(&challenge.leading_to(&resource)).to_owned()
        };
        const TO: &str = "resource_metadata=\"https://h/.well-known/oauth-protected-resource/mcp\"";
        assert_eq!(led("Bearer realm=\"mcp\""), format!("Bearer {TO}, realm=\"mcp\""));
        assert_eq!(led("bearer realm=\"a\", ApiKey x=\"y\""), format!("bearer {TO}, realm=\"a\", ApiKey x=\"y\""));
        assert_eq!(led("Basic realm=\"mcp\""), format!("Basic realm=\"mcp\", Bearer {TO}"));
        assert_eq!(led("Bearer"), format!("Bearer, Bearer {TO}"));
        let named = "Bearer realm=\"mcp\", Resource_Metadata=\"https://elsewhere\"";
        assert_eq!(led(named), named);
        let outage = BearerChallenge::default().answer(&AuthError::Unavailable);
        assert_eq!(outage.clone().leading_to(&resource), outage);
    }

    #[test]
    fn a_request_without_credentials_gets_no_error_code_in_the_header() {
        let challenge = BearerChallenge::default().answer(&AuthError::Missing);
        assert_eq!(header(&challenge), r#"Bearer realm="mcp""#);
        assert_eq!(challenge.body, r#"{"error":"unauthorized","error_description":"credentials are needed"}"#);
    }

    #[test]
    fn failed_verifications_cannot_be_told_apart() {
        let challenges = BearerChallenge::default();
        let first = challenges.answer(&AuthError::InvalidToken);
        assert!(header(&first).contains(r#"error="invalid_token""#));
        assert_eq!(first, challenges.answer(&AuthError::Expired));
        assert_eq!(first, challenges.answer(&AuthError::InvalidCredentials));
        assert_eq!(first, challenges.answer(&AuthError::NotRecognised));
    }

    #[test]
    fn a_missing_scope_is_answered_with_all_that_are_needed() {
        let needed = ["files:read", "files:write", "no\"t one", ""].map(str::to_owned).to_vec();
        let challenge = BearerChallenge::new("docs")
            .and_then(|challenge| {
                challenge.with_resource_metadata("https://h/.well-known/oauth-protected-resource/mcp")
            })
            .unwrap()
            .answer(&AuthError::InsufficientScope { needed });
        assert_eq!(
            header(&challenge),
            "Bearer realm=\"docs\", error=\"insufficient_scope\", \
             error_description=\"the credentials do not permit this\", scope=\"files:read files:write\", \
             resource_metadata=\"https://h/.well-known/oauth-protected-resource/mcp\""
        );
    }

    #[test]
    fn who_is_not_authenticated_is_told_what_to_ask_for() {
        let challenges = BearerChallenge::default().with_scopes(["files:read", "mcp"]).unwrap();
        let missing = challenges.answer(&AuthError::Missing);
        assert_eq!(header(&missing), r#"Bearer realm="mcp", scope="files:read mcp""#);
        assert!(header(&challenges.answer(&AuthError::Expired)).ends_with(r#", scope="files:read mcp""#));
        assert!(!header(&challenges.answer(&AuthError::Malformed)).contains("scope"));
        for scope in ["", "a b", "a\"", "ä"] {
            let refused = BearerChallenge::default().with_scopes([scope]);
            assert_eq!(refused, Err(InvalidChallenge::Scope), "{scope}");
        }
    }

    #[test]
    fn an_outage_is_no_reason_to_log_in_again() {
        assert_eq!(BearerChallenge::default().answer(&AuthError::Unavailable).www_authenticate, None);
    }

    #[test]
    fn quotes_in_a_realm_are_escaped_and_other_bytes_refused() {
        let challenge = BearerChallenge::new(r#"a"b\c"#).unwrap().answer(&AuthError::Missing);
        assert_eq!(header(&challenge), r#"Bearer realm="a\"b\\c""#);
        for realm in ["a\r\nb", "tab\t", "grün"] {
            assert_eq!(BearerChallenge::new(realm), Err(InvalidChallenge::Realm));
        }
        for url in ["", "https://h/\"", "https://h/ x", "https://h/\\"] {
            let refused = BearerChallenge::default().with_resource_metadata(url);
            assert_eq!(refused, Err(InvalidChallenge::ResourceMetadata));
        }
    }

    proptest! {
        #[test]
        fn no_realm_or_scope_breaks_out_of_its_quotes(realm in any::<String>(), scope in any::<String>()) {
            if let Ok(challenge) = BearerChallenge::new(&realm) {
                let answer = challenge.answer(&AuthError::InsufficientScope { needed: vec![scope] });
                let text = header(&answer);
                let (mut quoted, mut escaped, mut commas) = (false, false, 0);
                for byte in text.bytes() {
                    match byte {
                        _ if escaped => escaped = false,
                        b'\\' if quoted => escaped = true,
                        b'"' => quoted = !quoted,
                        b',' if !quoted => commas += 1,
                        _ => {}
                    }
                }
                prop_assert!(!quoted && !escaped);
                prop_assert!((2..=3).contains(&commas), "{}", text);
            }
        }
    }
}
