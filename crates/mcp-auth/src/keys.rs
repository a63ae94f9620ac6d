//! Keys that verify JWTs, and the tokens they verify.
//!
//! Why here: fixed and fetched keys are chosen by the same rules, and what cannot be trusted is parsed in one place.
//! Invariants: pure; a key of a set never verifies an HMAC, and each key only the algorithms of its own kind, so that the
//! word `alg` of a token chooses among what fits and nothing else. No key is printed.
//! Spec: 2026-07-28 basic/authorization, "Token Handling"; RFC 7515 4.1, RFC 7517 4, RFC 7518 3, RFC 8725 3.1

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Map, Value};

/// How a JWT may be signed, by the names of RFC 7518 and RFC 8037.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JwtAlgorithm {
    /// HMAC with SHA-256, with a shared secret.
    Hs256,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA over P-256 with SHA-256.
    Es256,
    /// ECDSA over P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

use JwtAlgorithm::{EdDsa, Es256, Es384, Hs256, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};

impl JwtAlgorithm {
    /// Those whose verifiers cannot sign.
    pub(crate) const PUBLIC: [Self; 9] = [Rs256, Rs384, Rs512, Ps256, Ps384, Ps512, Es256, Es384, EdDsa];

    const fn theirs(self) -> Algorithm {
        match self {
            Hs256 => Algorithm::HS256,
            Rs256 => Algorithm::RS256,
            Rs384 => Algorithm::RS384,
            Rs512 => Algorithm::RS512,
            Ps256 => Algorithm::PS256,
            Ps384 => Algorithm::PS384,
            Ps512 => Algorithm::PS512,
            Es256 => Algorithm::ES256,
            Es384 => Algorithm::ES384,
            EdDsa => Algorithm::EdDSA,
        }
    }

    /// To the letter, as names are in JOSE.
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "HS256" => Hs256,
            "RS256" => Rs256,
            "RS384" => Rs384,
            "RS512" => Rs512,
            "PS256" => Ps256,
            "PS384" => Ps384,
            "PS512" => Ps512,
            "ES256" => Es256,
            "ES384" => Es384,
            "EdDSA" => EdDsa,
            _ => return None,
        })
    }
}

/// A JWT taken apart. Nothing in it is true before its signature is verified.
pub(crate) struct Token<'a> {
    signed: &'a str,
    signature: Vec<u8>,
    /// `None`: unknown, `none` included.
    pub(crate) algorithm: Option<JwtAlgorithm>,
    pub(crate) key_id: Option<String>,
    /// Whether it is a token of this use, and has no extension that had to be understood.
    pub(crate) is_plain: bool,
    pub(crate) claims: Map<String, Value>,
}

impl<'a> Token<'a> {
    /// `None` for what is no signed JWT, such as an opaque token.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let object = |part: &str| -> Option<Map<String, Value>> {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
        };
        let (header, claims) = (object(header)?, object(claims)?);
        let word = |name: &str| header.get(name).and_then(Value::as_str);
        Some(Self {
            signed,
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
            algorithm: word("alg").and_then(JwtAlgorithm::of),
            key_id: word("kid").map(str::to_owned),
            is_plain: !header.contains_key("crit") && header.get("typ").is_none_or(is_access_token),
            claims,
        })
    }

    pub(crate) fn issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Value::as_str)
    }
}

/// RFC 8725 3.11: a logout token, an assertion or a proof is no access token, whoever signed it.
fn is_access_token(kind: &Value) -> bool {
    let kind = kind.as_str().unwrap_or_default();
    ["JWT", "at+jwt", "application/at+jwt"].iter().any(|allowed| kind.eq_ignore_ascii_case(allowed))
}

/// The keys of one issuer.
pub(crate) struct KeySet {
    keys: Vec<Key>,
}

struct Key {
    id: Option<String>,
    algorithms: &'static [JwtAlgorithm],
    /// The only one, if the set says so.
    only: Option<JwtAlgorithm>,
    key: DecodingKey,
}

/// Why a text is no set of keys; for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeySetError {
    #[error("is no JSON object with a list of keys")]
    Form,
    #[error("has more than {MAXIMUM_KEYS} keys")]
    TooMany,
    #[error("has no key that verifies a signature here")]
    NoneUsable,
}

/// Far more than an issuer has at a time.
const MAXIMUM_KEYS: usize = 100;
/// What a token without a key's name may cost.
const MAXIMUM_ATTEMPTS: usize = 8;

impl KeySet {
    /// A JWK set (RFC 7517 5). Keys that are not understood, too weak, secret, or for another use are left out.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, KeySetError> {
        let set: Map<String, Value> = serde_json::from_slice(text).map_err(|_| KeySetError::Form)?;
        let listed = set.get("keys").and_then(Value::as_array).ok_or(KeySetError::Form)?;
        if listed.len() > MAXIMUM_KEYS {
            return Err(KeySetError::TooMany);
        }
        let keys: Vec<Key> = listed.iter().filter_map(Key::parse).collect();
        if keys.is_empty() { Err(KeySetError::NoneUsable) } else { Ok(Self { keys }) }
    }

    /// The one key of an issuer that shares a secret.
    pub(crate) fn shared(secret: &[u8]) -> Self {
        Self { keys: vec![Key { id: None, algorithms: &[Hs256], only: None, key: DecodingKey::from_secret(secret) }] }
    }

    /// Whether there is a key that could verify such a token.
    pub(crate) fn fits(&self, key_id: Option<&str>, algorithm: JwtAlgorithm) -> bool {
        self.fitting(key_id, algorithm).next().is_some()
    }

    /// Whether one of the keys made the token's signature.
    pub(crate) fn verifies(&self, token: &Token<'_>, algorithm: JwtAlgorithm) -> bool {
        let mut fitting = self.fitting(token.key_id.as_deref(), algorithm).take(MAXIMUM_ATTEMPTS);
        fitting.any(|key| {
            let verifier = (DEFAULT_PROVIDER.verifier_factory)(&algorithm.theirs(), &key.key);
            verifier.is_ok_and(|verifier| verifier.verify(token.signed.as_bytes(), &token.signature).is_ok())
        })
    }

    /// A key without a name may be anybody's; its signature decides.
    fn fitting(&self, key_id: Option<&str>, algorithm: JwtAlgorithm) -> impl Iterator<Item = &Key> {
        self.keys.iter().filter(move |key| {
            let named = key.id.as_deref().zip(key_id).is_none_or(|(name, wanted)| name == wanted);
            named && key.algorithms.contains(&algorithm) && key.only.is_none_or(|only| only == algorithm)
        })
    }
}

impl Key {
    fn parse(value: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value.clone()).ok()?;
        if jwk.common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
            return None;
        }
        if jwk.common.key_operations.as_ref().is_some_and(|allowed| !allowed.contains(&KeyOperations::Verify)) {
            return None;
        }
        let octets = |text: &str| URL_SAFE_NO_PAD.decode(text).ok().map(|bytes| bytes.len());
        let algorithms: &[JwtAlgorithm] = match &jwk.algorithm {
            // 2048 bits: less is broken or will be (RFC 7518 3.3).
            AlgorithmParameters::RSA(key) if octets(&key.n)? >= 256 => &[Rs256, Rs384, Rs512, Ps256, Ps384, Ps512],
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => &[Es256],
                EllipticCurve::P384 => &[Es384],
                EllipticCurve::P521 | EllipticCurve::Ed25519 => return None,
            },
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => &[EdDsa],
            // A secret in a set that everybody reads is none.
            AlgorithmParameters::RSA(_) | AlgorithmParameters::OctetKeyPair(_) | AlgorithmParameters::OctetKey(_) => {
                return None;
            }
        };
        let named = value.get("alg").map(|name| name.as_str().and_then(JwtAlgorithm::of));
        let only = match named {
            Some(None) => return None,
            Some(Some(only)) if !algorithms.contains(&only) => return None,
            named => named.flatten(),
        };
        Some(Self { id: jwk.common.key_id.clone(), algorithms, only, key: DecodingKey::from_jwk(&jwk).ok()? })
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KeySet").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn token(header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.c2ln", part(header), part(claims))
    }

    fn octets(count: usize) -> String {
        URL_SAFE_NO_PAD.encode(vec![0xff; count])
    }

    #[expect(clippy::needless_pass_by_value, reason = "tests write JSON where they need it")]
    fn set(keys: Value) -> Result<KeySet, KeySetError> {
        KeySet::parse(json!({ "keys": keys }).to_string().as_bytes())
    }

    #[test]
    fn a_token_is_taken_apart_without_being_believed() {
        let text = token(&json!({ "alg": "ES256", "kid": "k1", "typ": "at+JWT" }), &json!({ "iss": "https://as" }));
        let token = Token::parse(&text).unwrap();
        assert_eq!((token.algorithm, token.key_id.as_deref()), (Some(Es256), Some("k1")));
        assert_eq!((token.issuer(), token.is_plain), (Some("https://as"), true));
    }

    #[test]
    fn what_is_no_signed_jwt_is_no_token() {
        let good = token(&json!({ "alg": "ES256" }), &json!({}));
        assert!(Token::parse(&good).is_some());
        let padded = good.replace('.', "=.");
        for text in ["", ".", "..", "a", "a.b", "a.b.c", "opaque-token", "W10.e30.", "bnVsbA.e30.x", &padded] {
            assert!(Token::parse(text).is_none(), "{text}");
        }
        assert!(Token::parse(&format!("{good}.{good}")).is_none());
    }

    #[test]
    fn unknown_algorithms_are_none_and_other_uses_are_told_apart() {
        let parse = |header: Value| {
            let text = token(&header, &json!({}));
            let token = Token::parse(&text).unwrap();
            (token.algorithm, token.is_plain)
        };
        for name in ["none", "NONE", "None", "hs256", "HS256 ", "ES512", ""] {
            assert_eq!(parse(json!({ "alg": name })).0, None, "{name}");
        }
        assert_eq!(parse(json!({ "alg": ["RS256"] })).0, None);
        for kind in ["JWT", "jwt", "at+jwt", "application/at+jwt"] {
            assert!(parse(json!({ "alg": "RS256", "typ": kind })).1, "{kind}");
        }
        for kind in
            [json!("dpop+jwt"), json!("logout+jwt"), json!("oauth-id-jag+jwt"), json!(""), json!(7), json!(null)]
        {
            assert!(!parse(json!({ "alg": "RS256", "typ": kind })).1, "{kind}");
        }
        assert!(!parse(json!({ "alg": "RS256", "crit": ["b64"], "b64": false })).1);
    }

    #[test]
    fn each_key_verifies_only_the_algorithms_of_its_kind() {
        let rsa = json!({ "kty": "RSA", "kid": "r", "n": octets(256), "e": "AQAB" });
        let p256 = json!({ "kty": "EC", "kid": "p", "crv": "P-256", "x": octets(32), "y": octets(32) });
        let p384 = json!({ "kty": "EC", "kid": "q", "crv": "P-384", "x": octets(48), "y": octets(48) });
        let ed = json!({ "kty": "OKP", "kid": "e", "crv": "Ed25519", "x": octets(32) });
        let set = set(json!([rsa, p256, p384, ed])).unwrap();
        for (id, fitting) in [
            ("r", &[Rs256, Rs384, Rs512, Ps256, Ps384, Ps512][..]),
            ("p", &[Es256]),
            ("q", &[Es384]),
            ("e", &[EdDsa]),
            ("x", &[]),
        ] {
            for algorithm in JwtAlgorithm::PUBLIC.into_iter().chain([Hs256]) {
                assert_eq!(set.fits(Some(id), algorithm), fitting.contains(&algorithm), "{id} {algorithm:?}");
            }
        }
        assert!(set.fits(None, Es256) && !set.fits(None, Hs256));
    }

    #[test]
    fn a_key_that_names_its_algorithm_verifies_no_other() {
        let keys = set(json!([{ "kty": "RSA", "alg": "PS256", "n": octets(256), "e": "AQAB" }])).unwrap();
        assert!(keys.fits(Some("any"), Ps256) && !keys.fits(Some("any"), Rs256));
    }

    #[test]
    fn keys_that_must_not_verify_are_left_out_and_a_set_of_such_keys_is_none() {
        let good = json!({ "kty": "OKP", "crv": "Ed25519", "x": octets(32) });
        for bad in [
            json!({ "kty": "oct", "k": octets(32) }),
            json!({ "kty": "oct", "k": octets(32), "alg": "HS256" }),
            json!({ "kty": "RSA", "n": octets(255), "e": "AQAB" }),
            json!({ "kty": "RSA", "n": octets(256), "e": "AQAB", "use": "enc" }),
            json!({ "kty": "RSA", "n": octets(256), "e": "AQAB", "key_ops": ["encrypt"] }),
            json!({ "kty": "RSA", "n": octets(256), "e": "AQAB", "alg": "HS256" }),
            json!({ "kty": "RSA", "n": octets(256), "e": "AQAB", "alg": "RSA-OAEP" }),
            json!({ "kty": "RSA", "n": octets(256), "e": "AQAB", "alg": "ES256" }),
            json!({ "kty": "RSA", "n": "!", "e": "AQAB" }),
            json!({ "kty": "RSA" }),
            json!({ "kty": "EC", "crv": "P-521", "x": octets(66), "y": octets(66) }),
            json!({ "kty": "OKP", "crv": "X25519", "x": octets(32) }),
            json!({ "kty": "new" }),
            json!({}),
            json!(7),
        ] {
            assert_eq!(set(json!([bad])).unwrap_err(), KeySetError::NoneUsable, "{bad}");
            assert_eq!(set(json!([bad, good])).unwrap().keys.len(), 1, "{bad}");
        }
    }

    #[test]
    fn what_is_no_set_of_keys_is_told_by_its_reason() {
        for text in ["", "<html>", "{}", "[]", "{\"keys\":{}}", "null"] {
            assert_eq!(KeySet::parse(text.as_bytes()).unwrap_err(), KeySetError::Form, "{text}");
        }
        assert_eq!(set(json!([])).unwrap_err(), KeySetError::NoneUsable);
        assert_eq!(set(Value::Array(vec![json!({}); 101])).unwrap_err(), KeySetError::TooMany);
    }

    #[test]
    fn debug_output_holds_no_key() {
        assert_eq!(format!("{:?}", KeySet::shared(b"secret-value")), "KeySet { keys: 1, .. }");
    }

    proptest! {
        #[test]
        fn no_text_panics_as_a_token_or_a_set(text in "\\PC{0,60}", bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = KeySet::parse(&bytes);
            let shared = KeySet::shared(&[7; 32]);
            if let Some(token) = Token::parse(&text) {
                prop_assert!(!shared.verifies(&token, Hs256));
            }
        }

        #[test]
        fn only_three_parts_of_base64_make_a_token(parts in proptest::collection::vec("[A-Za-z0-9_-]{0,12}", 0..5)) {
            let text = parts.join(".");
            if Token::parse(&text).is_some() {
                prop_assert_eq!(parts.len(), 3);
            }
        }
    }
}
