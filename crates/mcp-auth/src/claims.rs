//! Whether the claims of a token hold, and whom they name.
//!
//! Why here: a JWT and an answer of introspection say the same things and are judged by the same rules.
//! Invariants: pure, `now` is a parameter; what is missing or of the wrong kind counts against the token.
//! Spec: 2026-07-28 basic/authorization, "Token Handling"; RFC 7519 4.1, RFC 8707 2, RFC 9068 4

use std::time::{Duration, UNIX_EPOCH};

use mcp_core::Principal;
use serde_json::{Map, Value};

use crate::{AuthError, InvalidOption};

/// What claims are held to.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    provider: &'static str,
    audiences: Vec<Box<str>>,
    /// Seconds by which clocks may differ.
    skew: u64,
    scope_claim: Box<str>,
}

/// Why claims do not hold; for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    Early,
    #[error("a time in it is missing or no whole number of seconds")]
    Time,
    #[error("it was issued for another audience, or for none")]
    Audience,
    #[error("it names no subject")]
    Subject,
    #[error("it is bound to a key, whose possession a bearer token cannot prove")]
    Bound,
}

impl From<Refusal> for AuthError {
    fn from(refusal: Refusal) -> Self {
        if refusal == Refusal::Expired { Self::Expired } else { Self::InvalidToken }
    }
}

impl Rules {
    /// Rules with a skew of 60 seconds and scopes in `scope`.
    pub(crate) fn new<S: Into<Box<str>>>(
        provider: &'static str,
        audiences: impl IntoIterator<Item = S>,
    ) -> Result<Self, InvalidOption> {
        let audiences: Vec<Box<str>> = audiences.into_iter().map(Into::into).collect();
        if audiences.is_empty() || audiences.iter().any(|audience| audience.is_empty()) {
            return Err(InvalidOption::new(provider, "audience", "must not be empty"));
        }
        Ok(Self { provider, audiences, skew: 60, scope_claim: "scope".into() })
    }

    pub(crate) fn with_skew(mut self, skew: Duration) -> Result<Self, InvalidOption> {
        if skew > Duration::from_secs(300) {
            return Err(InvalidOption::new(self.provider, "skew", "must not exceed five minutes"));
        }
        self.skew = skew.as_secs();
        Ok(self)
    }

    #[cfg(feature = "jwt")]
    pub(crate) fn with_scope_claim(mut self, name: &str) -> Self {
        self.scope_claim = name.into();
        self
    }

    /// Whom `claims`, which `issuer` made, name at `now` (seconds since the epoch).
    ///
    /// `exp` may be missing only if `endless` is set.
    pub(crate) fn judge(
        &self,
        issuer: &str,
        claims: Map<String, Value>,
        endless: bool,
        now: u64,
    ) -> Result<Principal, Refusal> {
        let expires = seconds(&claims, "exp")?;
        if expires.is_none() && !endless {
            return Err(Refusal::Time);
        }
        if expires.is_some_and(|expires| now >= expires.saturating_add(self.skew)) {
            return Err(Refusal::Expired);
        }
        if seconds(&claims, "nbf")?.is_some_and(|begins| begins > now.saturating_add(self.skew)) {
            return Err(Refusal::Early);
        }
        if !self.is_audience(claims.get("aud")) {
            return Err(Refusal::Audience);
        }
        if claims.contains_key("cnf") {
            return Err(Refusal::Bound);
        }
        let subject = claims.get("sub").and_then(Value::as_str).filter(|subject| !subject.is_empty());
        let subject = subject.ok_or(Refusal::Subject)?;
        let mut principal =
            Principal::new(self.provider, issuer, subject).with_scopes(scopes(claims.get(&*self.scope_claim)));
        if let Some(expires) = expires {
            // From then on the token is refused, and what is open under it ends.
            let refused = Duration::from_secs(expires.saturating_add(self.skew));
            let expires = UNIX_EPOCH.checked_add(refused).ok_or(Refusal::Time)?;
            principal = principal.with_expiry(expires);
        }
        Ok(principal.with_claims(claims))
    }

    /// One text, or a list of texts, among which is one of ours.
    fn is_audience(&self, claim: Option<&Value>) -> bool {
        let ours = |name: &Value| name.as_str().is_some_and(|name| self.audiences.iter().any(|ours| **ours == *name));
        match claim {
            Some(Value::Array(names)) => names.iter().all(Value::is_string) && names.iter().any(ours),
            Some(name) => ours(name),
            None => false,
        }
    }
}

/// RFC 7519 allows fractions; nobody sends them, and who does is told so.
fn seconds(claims: &Map<String, Value>, name: &str) -> Result<Option<u64>, Refusal> {
    claims.get(name).map(|value| value.as_u64().ok_or(Refusal::Time)).transpose()
}

/// A text with spaces between, or a list of texts. Anything else grants nothing.
fn scopes(claim: Option<&Value>) -> Vec<&str> {
    match claim {
        Some(Value::String(text)) => text.split_ascii_whitespace().collect(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn rules() -> Rules {
        Rules::new("jwt", ["https://h/mcp", "mcp"]).unwrap()
    }

    /// Claims that hold, with `changes` over them; null removes one.
    #[expect(clippy::needless_pass_by_value, reason = "tests write JSON where they need it")]
    fn claims(changes: Value) -> Map<String, Value> {
        let mut claims = json!({ "sub": "ann", "aud": "https://h/mcp", "exp": NOW + 60, "scope": "read write" });
        for (name, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => claims.as_object_mut().unwrap().remove(name),
                value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
            };
        }
        claims.as_object().unwrap().clone()
    }

    fn judge(changes: Value) -> Result<Principal, Refusal> {
        rules().judge("https://as", claims(changes), false, NOW)
    }

    #[test]
    fn claims_that_hold_name_a_principal() {
        let ann = judge(json!({})).unwrap();
        assert_eq!((ann.provider(), ann.issuer(), ann.subject()), ("jwt", "https://as", "ann"));
        assert_eq!(ann.scopes().collect::<Vec<_>>(), ["read", "write"]);
        assert_eq!(ann.expires_at(), Some(UNIX_EPOCH + Duration::from_secs(NOW + 60 + 60)));
        assert_eq!(ann.claims().unwrap()["aud"], "https://h/mcp");
    }

    #[test]
    fn each_claim_is_held_to_its_rule() {
        use Refusal::{Audience, Bound, Early, Expired, Subject, Time};
        for (changes, refusal) in [
            (json!({ "exp": NOW - 59 }), None),
            (json!({ "exp": NOW - 60 }), Some(Expired)),
            (json!({ "exp": 0 }), Some(Expired)),
            (json!({ "exp": null }), Some(Time)),
            (json!({ "exp": NOW as f64 + 60.5 }), Some(Time)),
            (json!({ "exp": (NOW + 60).to_string() }), Some(Time)),
            (json!({ "exp": -1 }), Some(Time)),
            (json!({ "exp": u64::MAX }), Some(Time)),
            (json!({ "nbf": NOW + 60 }), None),
            (json!({ "nbf": NOW + 61 }), Some(Early)),
            (json!({ "nbf": "soon" }), Some(Time)),
            (json!({ "nbf": u64::MAX }), Some(Early)),
            (json!({ "aud": "mcp" }), None),
            (json!({ "aud": ["other", "mcp"] }), None),
            (json!({ "aud": null }), Some(Audience)),
            (json!({ "aud": "" }), Some(Audience)),
            (json!({ "aud": "https://h/mcp/" }), Some(Audience)),
            (json!({ "aud": "https://H/mcp" }), Some(Audience)),
            (json!({ "aud": "https://h" }), Some(Audience)),
            (json!({ "aud": [] }), Some(Audience)),
            (json!({ "aud": ["other"] }), Some(Audience)),
            (json!({ "aud": ["mcp", 1] }), Some(Audience)),
            (json!({ "aud": { "mcp": true } }), Some(Audience)),
            (json!({ "sub": null }), Some(Subject)),
            (json!({ "sub": "" }), Some(Subject)),
            (json!({ "sub": 7 }), Some(Subject)),
            (json!({ "cnf": { "jkt": "x" } }), Some(Bound)),
            (json!({ "scope": null }), None),
            (json!({ "scope": { "read": true } }), None),
        ] {
            assert_eq!(judge(changes.clone()).err(), refusal, "{changes}");
        }
    }

    #[test]
    fn scopes_come_as_a_text_or_as_a_list_in_the_claim_that_was_named() {
        let scopes = |rules: Rules, changes| {
            let principal = rules.judge("https://as", claims(changes), false, NOW).unwrap();
            principal.scopes().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(scopes(rules(), json!({ "scope": ["a", "b c", 1] })), ["a", "b c"]);
        assert_eq!(scopes(rules(), json!({ "scope": "  a  b " })), ["a", "b"]);
        assert_eq!(scopes(rules(), json!({ "scope": 7 })), [""; 0]);
        assert_eq!(scopes(rules().with_scope_claim("scp"), json!({ "scp": "a" })), ["a"]);
        assert_eq!(scopes(rules().with_scope_claim("scp"), json!({})), [""; 0]);
    }

    #[test]
    fn the_skew_may_be_changed_within_reason() {
        let strict = rules().with_skew(Duration::ZERO).unwrap();
        assert_eq!(strict.judge("i", claims(json!({ "exp": NOW })), false, NOW).err(), Some(Refusal::Expired));
        assert!(strict.judge("i", claims(json!({ "exp": NOW + 1 })), false, NOW).is_ok());
        assert_eq!(rules().with_skew(Duration::from_secs(301)).unwrap_err().option(), "skew");
    }

    #[test]
    fn only_where_that_is_allowed_a_token_may_be_without_an_end() {
        let endless = rules().judge("i", claims(json!({ "exp": null })), true, NOW).unwrap();
        assert_eq!(endless.expires_at(), None);
    }

    #[test]
    fn no_audience_and_an_empty_one_are_refused_at_start() {
        assert_eq!(Rules::new("jwt", [""; 0]).unwrap_err().to_string(), "jwt: audience must not be empty");
        assert_eq!(Rules::new("jwt", ["mcp", ""]).unwrap_err().option(), "audience");
    }

    proptest! {
        #[test]
        fn whoever_is_let_in_has_our_audience_and_time_left(
            expires in any::<u64>(),
            begins in any::<Option<u64>>(),
            audience in "(mcp|[a-z]{0,4})",
            now in any::<u64>(),
        ) {
            let claims = claims(json!({ "exp": expires, "nbf": begins, "aud": audience.as_str() }));
            if rules().judge("i", claims, false, now).is_ok() {
                prop_assert_eq!(audience, "mcp");
                prop_assert!(now.saturating_sub(60) < expires);
                prop_assert!(begins.is_none_or(|begins| begins.saturating_sub(60) <= now));
            }
        }
    }
}
