//! JWTs as bearer tokens, of one or several issuers.
//!
//! Why here: joins what is decided purely, which keys fit and whether the claims hold, with where the keys come from.
//! Invariants: the issuer is chosen by `iss`, its keys and algorithms by configuration; no claim counts before the
//! signature is verified; all refusals read alike outside, and their reasons are logged without the token.
//! Spec: 2026-07-28 basic/authorization, "Token Handling"; RFC 8725, RFC 9068 4

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use mcp_core::Principal;

use crate::claims::Rules;
use crate::clock::Clock;
use crate::jwks::Jwks;
use crate::keys::{JwtAlgorithm, KeySet, Token};
use crate::{AuthError, InvalidOption, TokenVerifier};

/// Verifies JWTs; to be served by [`Bearer`](crate::Bearer).
///
/// A token holds if its issuer is known, its signature was made with a key and an algorithm of that issuer, it names one
/// of our audiences and a subject, and its times say that it is valid now: `exp` has to be there and, as `nbf`, be whole
/// seconds; clocks may differ by 60 seconds. Tokens of another use (`typ`), with extensions (`crit`) or bound to a key
/// (`cnf`) are refused. The principal is issuer and subject, with the scopes and all claims.
///
/// ```
/// use mcp_auth::{Bearer, IssuerKeys, JwtVerifier};
///
/// # let secret = [7; 32];
/// let verifier = JwtVerifier::new(["https://tools.example/mcp"])?
///     .and_issuer("https://login.example", IssuerKeys::shared_secret(&secret)?)?;
/// let provider = Bearer::new(verifier);
/// # Ok::<(), mcp_auth::InvalidOption>(())
/// ```
#[derive(Debug)]
pub struct JwtVerifier {
    rules: Rules,
    issuers: Vec<Issuer>,
    clock: Clock,
}

#[derive(Debug)]
struct Issuer {
    name: Box<str>,
    keys: IssuerKeys,
}

/// What verifies the tokens of an issuer: a shared secret, fixed public keys, or a set at an address.
///
/// A shared secret verifies HS256 and nothing else, public keys every algorithm of [`JwtAlgorithm`] but that one.
#[derive(Debug)]
pub struct IssuerKeys {
    source: Source,
    algorithms: Vec<JwtAlgorithm>,
}

#[derive(Debug)]
enum Source {
    Fixed(Arc<KeySet>),
    Fetched(Jwks),
}

const PROVIDER: &str = "jwt";

impl IssuerKeys {
    /// A secret that is shared with the issuer, for HS256. Whoever has it can make tokens.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] below 32 bytes (RFC 7518 3.2).
    pub fn shared_secret(secret: &[u8]) -> Result<Self, InvalidOption> {
        if secret.len() < 32 {
            return Err(InvalidOption::new(PROVIDER, "secret", "must have at least 32 bytes"));
        }
        Ok(Self { source: Source::Fixed(Arc::new(KeySet::shared(secret))), algorithms: vec![JwtAlgorithm::Hs256] })
    }

    /// Public keys that do not change, as the JSON of a JWK set (RFC 7517 5).
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] for another form, over 100 keys, or if none of the keys verifies a signature: RSA keys need
    /// 2048 bits, and secrets do not belong in a set.
    pub fn fixed(jwk_set: &str) -> Result<Self, InvalidOption> {
        let keys = KeySet::parse(jwk_set.as_bytes()).map_err(|error| {
            use crate::keys::KeySetError::{Form, NoneUsable, TooMany};
            let reason = match error {
                Form => "is no JSON object with a list of keys",
                TooMany => "has too many keys",
                NoneUsable => "has no key that verifies a signature here",
            };
            InvalidOption::new(PROVIDER, "key set", reason)
        })?;
        Ok(Self { source: Source::Fixed(Arc::new(keys)), algorithms: JwtAlgorithm::PUBLIC.to_vec() })
    }

    /// The public keys that the issuer publishes.
    #[must_use]
    pub fn fetched(set: Jwks) -> Self {
        Self { source: Source::Fetched(set), algorithms: JwtAlgorithm::PUBLIC.to_vec() }
    }

    /// Accepts only `algorithms`, all of which these keys must be able to verify.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] for none, HS256 beside public keys, or any other beside a secret.
    pub fn with_algorithms(
        mut self,
        algorithms: impl IntoIterator<Item = JwtAlgorithm>,
    ) -> Result<Self, InvalidOption> {
        let chosen: Vec<JwtAlgorithm> = algorithms.into_iter().collect();
        if chosen.is_empty() || !chosen.iter().all(|algorithm| self.algorithms.contains(algorithm)) {
            return Err(InvalidOption::new(PROVIDER, "algorithms", "are empty or not for keys of this kind"));
        }
        self.algorithms = chosen;
        Ok(self)
    }
}

impl JwtVerifier {
    /// Accepts tokens for `audiences`, of which a token has to name one to the letter: the public address of the endpoint,
    /// as clients send it in `resource` (RFC 8707). Add issuers with [`Self::and_issuer`]: without any, no token holds.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] without an audience, or for an empty one.
    pub fn new<S: Into<Box<str>>>(audiences: impl IntoIterator<Item = S>) -> Result<Self, InvalidOption> {
        Ok(Self { rules: Rules::new(PROVIDER, audiences)?, issuers: Vec::new(), clock: Clock::system() })
    }

    /// Accepts tokens whose `iss` is `issuer` to the letter, verified by `keys`.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] for an empty name, or one given before.
    pub fn and_issuer(mut self, issuer: &str, keys: IssuerKeys) -> Result<Self, InvalidOption> {
        if issuer.is_empty() {
            return Err(InvalidOption::new(PROVIDER, "issuer", "must not be empty"));
        }
        if self.issuer(issuer).is_some() {
            return Err(InvalidOption::new(PROVIDER, "issuer", "was given before"));
        }
        self.issuers.push(Issuer { name: issuer.into(), keys });
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

    /// Replaces the claim that holds the scopes, as a text with spaces between or as a list. Default: `scope`.
    #[must_use]
    pub fn with_scope_claim(mut self, name: &str) -> Self {
        self.rules = self.rules.with_scope_claim(name);
        self
    }

    /// Replaces the clock that expiry is judged by; for tests. Default: the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(clock);
        self
    }

    fn issuer(&self, name: &str) -> Option<&Issuer> {
        self.issuers.iter().find(|issuer| *issuer.name == *name)
    }

    /// The token taken apart, with its issuer and its algorithm, which are ours.
    fn read<'a>(&self, text: &'a str) -> Result<(Token<'a>, &Issuer, JwtAlgorithm), AuthError> {
        let token = Token::parse(text).ok_or(AuthError::NotRecognised)?;
        let issuer = token.issuer().and_then(|name| self.issuer(name)).ok_or(AuthError::NotRecognised)?;
        let algorithm = token.algorithm.filter(|algorithm| issuer.keys.algorithms.contains(algorithm));
        let algorithm = algorithm.filter(|_| token.is_plain).ok_or_else(|| {
            refused(issuer, "its header names another algorithm, another use, or an extension");
            AuthError::InvalidToken
        })?;
        Ok((token, issuer, algorithm))
    }

    fn judge(
        &self,
        token: Token<'_>,
        issuer: &Issuer,
        algorithm: JwtAlgorithm,
        keys: &KeySet,
    ) -> Result<Principal, AuthError> {
        if !keys.verifies(&token, algorithm) {
            refused(issuer, "no key of the issuer made its signature");
            return Err(AuthError::InvalidToken);
        }
        self.rules.judge(&issuer.name, token.claims, false, self.clock.now()).map_err(|refusal| {
            refused(issuer, refusal);
            refusal.into()
        })
    }
}

/// The token itself is a secret while it holds, and others may hold it longer.
fn refused(issuer: &Issuer, reason: impl std::fmt::Display) {
    tracing::debug!(issuer = %issuer.name, %reason, "a JWT was refused");
}

#[async_trait]
impl TokenVerifier for JwtVerifier {
    async fn verify(&self, text: &str) -> Result<Principal, AuthError> {
        let (token, issuer, algorithm) = self.read(text)?;
        let keys = match &issuer.keys.source {
            Source::Fixed(keys) => Arc::clone(keys),
            Source::Fetched(set) => set.keys(token.key_id.as_deref(), algorithm).await?,
        };
        self.judge(token, issuer, algorithm, &keys)
    }

    fn immediate(&self, text: &str) -> Option<Result<Principal, AuthError>> {
        let (token, issuer, algorithm) = match self.read(text) {
            Ok(read) => read,
            Err(error) => return Some(Err(error)),
        };
        let keys = match &issuer.keys.source {
            Source::Fixed(keys) => Arc::clone(keys),
            Source::Fetched(set) => set.at_hand(token.key_id.as_deref(), algorithm)?,
        };
        Some(self.judge(token, issuer, algorithm, &keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfit_options_are_refused_at_start_by_name_and_reason() {
        let refusal = |outcome: Result<IssuerKeys, InvalidOption>| outcome.unwrap_err().to_string();
        assert_eq!(refusal(IssuerKeys::shared_secret(&[0; 31])), "jwt: secret must have at least 32 bytes");
        assert_eq!(refusal(IssuerKeys::fixed("{}")), "jwt: key set is no JSON object with a list of keys");
        assert_eq!(
            refusal(IssuerKeys::fixed(r#"{"keys":[]}"#)),
            "jwt: key set has no key that verifies a signature here"
        );
        let secret = || IssuerKeys::shared_secret(&[7; 32]).unwrap();
        for algorithms in [&[][..], &[JwtAlgorithm::Rs256], &[JwtAlgorithm::Hs256, JwtAlgorithm::Es256]] {
            let refused = refusal(secret().with_algorithms(algorithms.to_vec()));
            assert_eq!(refused, "jwt: algorithms are empty or not for keys of this kind");
        }
        let verifier = || JwtVerifier::new(["mcp"]).unwrap();
        assert_eq!(verifier().and_issuer("", secret()).unwrap_err().to_string(), "jwt: issuer must not be empty");
        let twice = verifier().and_issuer("as", secret()).and_then(|verifier| verifier.and_issuer("as", secret()));
        assert_eq!(twice.unwrap_err().to_string(), "jwt: issuer was given before");
        assert!(JwtVerifier::new([""; 0]).is_err());
    }

    #[test]
    fn debug_output_holds_no_secret() {
        let keys = IssuerKeys::shared_secret(b"secret-value-secret-value-secret-value").unwrap();
        let verifier = JwtVerifier::new(["mcp"]).unwrap().and_issuer("as", keys).unwrap();
        assert!(!format!("{verifier:?}").contains("115, 101, 99") && !format!("{verifier:?}").contains("secret-value"));
    }
}
