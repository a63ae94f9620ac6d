//! Opaque bearer tokens, about which their authorization server is asked.
//!
//! Why here: such tokens mean nothing by themselves; what they mean is judged like the claims of a JWT.
//! Invariants: without a cache every request asks, so that a revoked token is refused at the next one; what is
//! remembered is bounded in number and time, and is a digest of the token; nothing is remembered of a failure to ask.
//! Spec: 2026-07-28 basic/authorization, "Token Handling"; RFC 7662 2

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use mcp_core::Principal;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::address::is_private_address;
use crate::claims::Rules;
use crate::clock::Clock;
use crate::fetch::fetch_body;
use crate::{AuthError, Fetch, FetchRequest, InvalidOption, TokenVerifier};

/// Asks an authorization server about each token (RFC 7662); to be served by [`Bearer`](crate::Bearer).
///
/// A token holds if the server says it is active, and what it says of audience, subject and times holds as for a
/// [JWT](https://www.rfc-editor.org/rfc/rfc9068#section-4): `aud` and `sub` have to be there, `exp` may be missing. A
/// server that does not name audiences does not say whom a token is for, and needs a
/// [`TokenVerifier`] of your own that finds out.
///
/// At most 32 questions are asked at a time, each for 5 seconds at most; who waits for a turn longer than that is
/// answered with 503, as is everybody while the server cannot be asked.
///
/// ```
/// use std::sync::Arc;
/// use mcp_auth::{Bearer, Fetch, Introspection};
///
/// fn provider(fetch: Arc<dyn Fetch>, secret: &str) -> Result<Bearer, mcp_auth::InvalidOption> {
///     let introspection = Introspection::new(
///         "https://login.example",
///         "https://login.example/introspect",
///         ["https://tools.example/mcp"],
///         fetch,
///     )?
///     .with_client("tools", secret)?;
///     Ok(Bearer::new(introspection))
/// }
/// ```
pub struct Introspection {
    issuer: Box<str>,
    endpoint: Box<str>,
    rules: Rules,
    fetch: Arc<dyn Fetch>,
    client: Option<Zeroizing<String>>,
    turns: Semaphore,
    cache: Cache,
    clock: Clock,
}

const PROVIDER: &str = "introspection";
const TIME_LIMIT: Duration = Duration::from_secs(5);
const MAXIMUM_BYTES: usize = 64 * 1024;
const TURNS: usize = 32;
const MAXIMUM_ENTRIES: usize = 1024;

impl Introspection {
    /// Asks `endpoint`, an address of the server that calls itself `issuer`, about tokens for `audiences`.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] without an issuer or an audience, or if `endpoint` is neither `https` nor on a loopback host.
    pub fn new<S: Into<Box<str>>>(
        issuer: &str,
        endpoint: &str,
        audiences: impl IntoIterator<Item = S>,
        fetch: Arc<dyn Fetch>,
    ) -> Result<Self, InvalidOption> {
        if issuer.is_empty() {
            return Err(InvalidOption::new(PROVIDER, "issuer", "must not be empty"));
        }
        if !is_private_address(endpoint) {
            return Err(InvalidOption::new(PROVIDER, "endpoint", "needs an https address"));
        }
        Ok(Self {
            issuer: issuer.into(),
            endpoint: endpoint.into(),
            rules: Rules::new(PROVIDER, audiences)?,
            fetch,
            client: None,
            turns: Semaphore::new(TURNS),
            cache: Cache { lifetime: Duration::ZERO, entries: Mutex::default() },
            clock: Clock::system(),
        })
    }

    /// Names this server to the other, by HTTP Basic (RFC 6749 2.3.1). Most servers answer nobody else.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] for an empty name or secret.
    pub fn with_client(mut self, id: &str, secret: &str) -> Result<Self, InvalidOption> {
        if id.is_empty() || secret.is_empty() {
            return Err(InvalidOption::new(PROVIDER, "client", "needs a name and a secret"));
        }
        let pair = Zeroizing::new(format!("{}:{}", *encoded(id), *encoded(secret)));
        self.client = Some(Zeroizing::new(format!("Basic {}", *Zeroizing::new(STANDARD.encode(pair.as_bytes())))));
        Ok(self)
    }

    /// Remembers answers for `lifetime`, at most 60 seconds and 1024 tokens; a token that expires sooner is forgotten
    /// sooner. Default: nothing is remembered, because a revoked token would be let in for that long.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] for more than 60 seconds.
    pub fn with_cache(mut self, lifetime: Duration) -> Result<Self, InvalidOption> {
        if lifetime > Duration::from_secs(60) {
            return Err(InvalidOption::new(PROVIDER, "cache", "must not outlive 60 seconds"));
        }
        self.cache.lifetime = lifetime;
        Ok(self)
    }

    /// Replaces by how much clocks may differ: whole seconds, up to 5 minutes. Default: 60 seconds.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] above that.
    pub fn with_skew(mut self, skew: Duration) -> Result<Self, InvalidOption> {
        self.rules = self.rules.with_skew(skew)?;
        Ok(self)
    }

    /// Replaces the clock that expiry is judged by; for tests. Default: the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(clock);
        self
    }

    /// What the server says of the token: claims, or nothing if it is not active.
    async fn ask(&self, token: &str) -> Result<Option<Map<String, Value>>, AuthError> {
        let form = Zeroizing::new(format!("token={}&token_type_hint=access_token", *encoded(token)));
        // RFC 7662 2.2.
        let mut request = FetchRequest::new(&self.endpoint).with_form(&form).with_content_type("application/json");
        request = request.with_bounds(MAXIMUM_BYTES, TIME_LIMIT);
        if let Some(client) = &self.client {
            let value = HeaderValue::from_str(client).map_err(|_| AuthError::Unavailable)?;
            request = request.with_authorization(value);
        }
        let answer = match fetch_body(&*self.fetch, request).await {
            Ok(body) => answer(&body).ok_or_else(|| "the answer is none".to_owned()),
            Err(reason) => Err(reason),
        };
        answer.map_err(|reason| {
            tracing::warn!(endpoint = %self.endpoint, reason, "a token could not be introspected");
            AuthError::Unavailable
        })
    }

    fn judge(&self, claims: Option<Map<String, Value>>) -> Result<Principal, AuthError> {
        let claims = claims.ok_or(AuthError::InvalidToken)?;
        let refuse = |reason: &dyn fmt::Display| {
            tracing::debug!(issuer = %self.issuer, %reason, "an introspected token was refused");
        };
        if claims.get("iss").is_some_and(|issuer| issuer != &*self.issuer) {
            refuse(&"it is of another issuer");
            return Err(AuthError::InvalidToken);
        }
        if claims.get("token_type").is_some_and(|kind| !is_bearer(kind)) {
            refuse(&"it is no bearer token");
            return Err(AuthError::InvalidToken);
        }
        self.rules.judge(&self.issuer, claims, true, self.clock.now()).map_err(|refusal| {
            refuse(&refusal);
            refusal.into()
        })
    }
}

#[async_trait]
impl TokenVerifier for Introspection {
    async fn verify(&self, token: &str) -> Result<Principal, AuthError> {
        if let Some(outcome) = self.immediate(token) {
            return outcome;
        }
        let turn = tokio::time::timeout(TIME_LIMIT, self.turns.acquire()).await;
        let Ok(Ok(_turn)) = turn else { return Err(AuthError::Unavailable) };
        // Somebody may have asked about the same token meanwhile.
        if let Some(outcome) = self.immediate(token) {
            return outcome;
        }
        let claims = self.ask(token).await?;
        self.cache.keep(token, &claims, Instant::now());
        self.judge(claims)
    }

    fn immediate(&self, token: &str) -> Option<Result<Principal, AuthError>> {
        Some(self.judge(self.cache.find(token, Instant::now())?))
    }
}

impl fmt::Debug for Introspection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Introspection")
            .field("issuer", &self.issuer)
            .field("endpoint", &self.endpoint)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

/// What was answered, by the token's digest. Times are judged anew with each use.
struct Cache {
    lifetime: Duration,
    entries: Mutex<HashMap<[u8; 32], Entry>>,
}

struct Entry {
    claims: Option<Map<String, Value>>,
    until: Instant,
}

impl Cache {
    fn find(&self, token: &str, now: Instant) -> Option<Option<Map<String, Value>>> {
        if self.lifetime.is_zero() {
            return None;
        }
        self.entries().get(&digest(token)).filter(|entry| now < entry.until).map(|entry| entry.claims.clone())
    }

    /// Keeps nothing while full: to make room for a stranger's tokens would drop those of callers.
    fn keep(&self, token: &str, claims: &Option<Map<String, Value>>, now: Instant) {
        if self.lifetime.is_zero() {
            return;
        }
        let mut entries = self.entries();
        if entries.len() >= MAXIMUM_ENTRIES {
            entries.retain(|_, entry| now < entry.until);
        }
        if entries.len() < MAXIMUM_ENTRIES {
            entries.insert(digest(token), Entry { claims: claims.clone(), until: now + self.lifetime });
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<[u8; 32], Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// The claims of an active token, nothing for another; `None` if it is no answer at all.
fn answer(body: &[u8]) -> Option<Option<Map<String, Value>>> {
    let claims: Map<String, Value> = serde_json::from_slice(body).ok()?;
    match claims.get("active")? {
        Value::Bool(active) => Some(active.then_some(claims)),
        _ => None,
    }
}

fn is_bearer(kind: &Value) -> bool {
    let kind = kind.as_str().unwrap_or_default();
    // Some servers answer with the kind of token where its type is asked for.
    ["bearer", "access_token"].iter().any(|allowed| kind.eq_ignore_ascii_case(allowed))
}

fn encoded(text: &str) -> Zeroizing<String> {
    Zeroizing::new(utf8_percent_encode(text, NON_ALPHANUMERIC).to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_a_plain_yes_makes_a_token_active() {
        assert!(matches!(answer(br#"{"active":true}"#), Some(Some(_))));
        assert_eq!(answer(br#"{"active":false,"sub":"ann"}"#), Some(None));
        for body in ["", "{}", "true", "[]", "<html>", r#"{"active":"true"}"#, r#"{"active":1}"#, r#"{"active":null}"#]
        {
            assert_eq!(answer(body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded_and_ends() {
        let cache = Cache { lifetime: Duration::from_secs(10), entries: Mutex::default() };
        let start = Instant::now();
        for index in 0..MAXIMUM_ENTRIES + 10 {
            cache.keep(&index.to_string(), &None, start);
        }
        assert_eq!(cache.entries().len(), MAXIMUM_ENTRIES);
        assert_eq!(cache.find("0", start), Some(None));
        assert_eq!(cache.find(&MAXIMUM_ENTRIES.to_string(), start), None);
        let later = start + Duration::from_secs(10);
        assert_eq!(cache.find("0", later), None);
        cache.keep("new", &None, later);
        assert_eq!(cache.entries().len(), 1);
    }

    proptest! {
        #[test]
        fn no_token_ends_its_field_and_no_answer_panics(token in "\\PC{0,40}", body in proptest::collection::vec(any::<u8>(), 0..60)) {
            let form = encoded(&token);
            prop_assert!(form.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'%'));
            let decoded = percent_encoding::percent_decode_str(&form).decode_utf8().unwrap();
            prop_assert_eq!(decoded, token);
            let _ = answer(&body);
        }
    }
}
