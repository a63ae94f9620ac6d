//! The providers of these tests: what is right for each, what is not, and what it says then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::header::AUTHORIZATION;
use http::{HeaderName, StatusCode};
use mcp_auth::{
    ApiKeyTable, ApiKeys, AuthProvider, Basic, BasicUsers, Bearer, BearerChallenge, Chain, Fetch, FetchError,
    FetchRequest, FetchResponse, Introspection, IssuerKeys, JwtVerifier, Pepper, ProtectedResource, RequiredScopes,
    StaticBearer,
};
use mcp_core::Principal;
use mcp_http::server::HttpConfig;
use serde_json::{Value, json};
use tokio::time::Instant;

pub(super) const ISSUER: &str = "https://login.example";
pub(super) const AUDIENCE: &str = "https://tools.example/mcp";
const METADATA: &str = "https://tools.example/.well-known/oauth-protected-resource/mcp";

pub(super) fn resource() -> ProtectedResource {
    ProtectedResource::new(AUDIENCE, [ISSUER]).and_then(|resource| resource.with_scopes(["read"])).unwrap()
}

/// The wall clock as a server has it: goes on with tokio's.
pub(super) fn clock() -> impl Fn() -> SystemTime + Clone + Send + Sync + 'static {
    #[expect(clippy::disallowed_methods, reason = "tokens expire by the wall; from here on the test's clock goes on")]
    let (wall, started) = (SystemTime::now(), Instant::now());
    move || wall + started.elapsed()
}

pub(super) fn seconds(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Signs tokens as the issuer, or as somebody else.
pub(super) struct Signer(Ed25519KeyPair);

impl Signer {
    pub(super) fn new() -> Self {
        Self(Ed25519KeyPair::generate().unwrap())
    }

    fn public(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.public_key())
    }

    fn keys(&self) -> IssuerKeys {
        let key = json!({ "kty": "OKP", "kid": "k1", "crv": "Ed25519", "x": self.public() });
        IssuerKeys::fixed(&json!({ "keys": [key] }).to_string()).unwrap()
    }

    fn token(&self, header: Value, claims: Value) -> String {
        let signed = unsigned(&header, &claims);
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(self.0.sign(signed.as_bytes())))
    }
}

fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(claims.to_string()))
}

pub(super) fn jwts(signer: &Signer, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Bearer {
    let verifier =
        JwtVerifier::new([AUDIENCE]).and_then(|verifier| verifier.and_issuer(ISSUER, signer.keys())).unwrap();
    Bearer::new(verifier.with_clock(now)).with_challenge(BearerChallenge::for_resource(&resource()).unwrap())
}

/// An authorization server that calls two tokens active, until they are revoked.
#[derive(Clone, Default)]
pub(super) struct Login {
    pub(super) revoked: Arc<AtomicBool>,
}

#[async_trait]
impl Fetch for Login {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, FetchError> {
        let form = request.form().unwrap();
        let says = |token: &str| form.split('&').any(|field| field == format!("token={token}"));
        let answer = if says("opaqueOfAnn") && !self.revoked.load(SeqCst) {
            json!({ "active": true, "sub": "ann", "aud": AUDIENCE })
        } else if says("opaqueForOthers") {
            json!({ "active": true, "sub": "ann", "aud": "https://other.example/mcp" })
        } else {
            json!({ "active": false })
        };
        Ok(FetchResponse::new(StatusCode::OK, answer.to_string().into_bytes()))
    }
}

pub(super) fn opaque(login: &Login) -> Bearer {
    let asked = Introspection::new(ISSUER, "https://login.example/introspect", [AUDIENCE], Arc::new(login.clone()));
    Bearer::new(asked.unwrap()).with_challenge(BearerChallenge::for_resource(&resource()).unwrap())
}

pub(super) const KEY: &str = "kJ3vQ0rUuY7nM2xW";

pub(super) fn keys() -> ApiKeys {
    let pepper = Pepper::new(&[7; 32]).unwrap();
    let stored = pepper.stored_form(KEY).unwrap();
    let table = ApiKeyTable::new().and(&stored, Principal::new("api key", "", "ann")).unwrap();
    ApiKeys::new(pepper, table)
}

/// Ann, whose password is `secret`; the hash is the cheapest that is accepted.
pub(super) fn passwords() -> Basic {
    let hash = "$argon2id$v=19$m=7168,t=1,p=1$c2FsdC1vZi1zZWNyZXQtMA$oGTw5h8GmA6cvFqsdc7h2nct507HwuxbplhRwptZ8g0";
    Basic::new(BasicUsers::new().and("ann", hash, Principal::new("basic", "", "ann")).unwrap()).unwrap()
}

pub(super) const FIXED: &str = "2f0a9c51d3e84b7f";

pub(super) fn fixed() -> StaticBearer {
    StaticBearer::new(FIXED, Principal::new("static", "", "ann").with_scopes(["read"]))
        .and_then(|tokens| tokens.and("b81c5e6f90a2d347", Principal::new("static", "", "ben")))
        .unwrap()
}

/// What a request proves itself with: headers that replace those of the harness.
pub(super) type Credentials = Vec<(HeaderName, String)>;

pub(super) fn bearer(token: &str) -> Credentials {
    vec![(AUTHORIZATION, format!("Bearer {token}"))]
}

pub(super) fn basic(text: &str) -> Credentials {
    vec![(AUTHORIZATION, format!("Basic {}", STANDARD.encode(text)))]
}

pub(super) fn key(text: &str) -> Credentials {
    vec![(HeaderName::from_static("x-api-key"), text.to_owned())]
}

/// Why somebody is not let in, as far as they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Missing,
    Invalid,
    Malformed,
    Lacking,
}

impl Told {
    pub(super) const fn status(self) -> u16 {
        match self {
            Self::Missing | Self::Invalid => 401,
            Self::Malformed => 400,
            Self::Lacking => 403,
        }
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Missing => ("unauthorized", "credentials are needed"),
            Self::Invalid => ("invalid_token", "the credentials are not valid"),
            Self::Malformed => ("invalid_request", "the credentials are malformed or repeated"),
            Self::Lacking => ("insufficient_scope", "the credentials do not permit this"),
        }
    }

    /// `, error=".."` and what belongs to it; nothing for who sent nothing.
    fn error(self) -> String {
        let (code, description) = self.words();
        if self == Self::Missing {
            return String::new();
        }
        format!(", error=\"{code}\", error_description=\"{description}\"")
    }

    pub(super) fn body(self) -> String {
        let (code, description) = self.words();
        format!("{{\"error\":\"{code}\",\"error_description\":\"{description}\"}}")
    }
}

/// The challenge of a provider that names the resource and its scopes.
fn of_resource(told: Told) -> String {
    let scope = if told == Told::Malformed { "" } else { ", scope=\"read\"" };
    format!("Bearer realm=\"mcp\"{}{scope}, resource_metadata=\"{METADATA}\"", told.error())
}

/// The challenge of a provider that knows of no resource, while the endpoint does.
pub(super) fn led(told: Told) -> String {
    let scope = if told == Told::Lacking { ", scope=\"read\"" } else { "" };
    format!("Bearer resource_metadata=\"{METADATA}\", realm=\"mcp\"{}{scope}", told.error())
}

/// A provider, what is right for it, and what is not.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) config: HttpConfig,
    pub(super) right: Credentials,
    pub(super) wrong: Vec<(&'static str, Credentials, Told)>,
    pub(super) challenge: fn(Told) -> String,
}

impl Case {
    fn new(name: &'static str, provider: impl AuthProvider, right: Credentials, challenge: fn(Told) -> String) -> Self {
        Self { name, config: HttpConfig::new(provider), right, wrong: Vec::new(), challenge }
    }

    fn with_resource(mut self) -> Self {
        self.config = self.config.protected_resource(resource());
        self
    }

    fn refusing(mut self, wrong: impl IntoIterator<Item = (&'static str, Credentials, Told)>) -> Self {
        self.wrong.extend(wrong);
        self
    }
}

/// What nobody could take for a token.
fn no_tokens() -> Vec<(&'static str, Credentials, Told)> {
    vec![
        ("none", Vec::new(), Told::Missing),
        ("another scheme", vec![(AUTHORIZATION, "Digest a".to_owned())], Told::Missing),
        ("malformed", bearer("a b"), Told::Malformed),
        ("twice", [bearer("a"), bearer("a")].concat(), Told::Malformed),
        ("empty", vec![(AUTHORIZATION, "Bearer".to_owned())], Told::Malformed),
    ]
}

fn wrong_jwts(signer: &Signer, now: u64) -> Vec<(&'static str, Credentials, Told)> {
    let header = json!({ "alg": "EdDSA", "kid": "k1", "typ": "at+jwt" });
    let claims = |changes: Value| {
        let mut claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": now + 300 });
        claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        claims
    };
    let changed = |changes: Value| bearer(&signer.token(header.clone(), claims(changes)));
    let headed = |header: Value| bearer(&signer.token(header, claims(json!({}))));
    // Everybody knows the public key: whoever takes it for a secret is fooled by this.
    let confused = unsigned(&json!({ "alg": "HS256", "kid": "k1", "typ": "at+jwt" }), &claims(json!({})));
    let secret = hmac::Key::new(hmac::HMAC_SHA256, signer.0.public_key().as_ref());
    let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&secret, confused.as_bytes()));
    let none = unsigned(&json!({ "alg": "none", "kid": "k1", "typ": "at+jwt" }), &claims(json!({})));
    vec![
        ("unknown", bearer("b81c5e6f90a2d347"), Told::Invalid),
        ("expired", changed(json!({ "exp": now - 61 })), Told::Invalid),
        ("not valid yet", changed(json!({ "nbf": now + 90 })), Told::Invalid),
        ("wrong audience", changed(json!({ "aud": "https://other.example/mcp" })), Told::Invalid),
        ("wrong issuer", changed(json!({ "iss": "https://other.example" })), Told::Invalid),
        ("wrong algorithm", bearer(&format!("{confused}.{tag}")), Told::Invalid),
        ("alg none", bearer(&format!("{none}.")), Told::Invalid),
        ("key not in the set", headed(json!({ "alg": "EdDSA", "kid": "k2", "typ": "at+jwt" })), Told::Invalid),
        ("signed by another", bearer(&Signer::new().token(header.clone(), claims(json!({})))), Told::Invalid),
    ]
}

pub(super) fn right_jwt(signer: &Signer, expires: u64) -> Credentials {
    let claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": expires });
    bearer(&signer.token(json!({ "alg": "EdDSA", "kid": "k1", "typ": "at+jwt" }), claims))
}

pub(super) fn cases() -> Vec<Case> {
    let (signer, now) = (Signer::new(), clock());
    let seconds = seconds(now());
    let right = right_jwt(&signer, seconds + 300);
    let login = Login::default();
    let chain = || Chain::new(jwts(&signer, now.clone())).and(keys());
    vec![
        Case::new("fixed tokens", fixed(), bearer(FIXED), led).with_resource().refusing(no_tokens()).refusing([(
            "unknown",
            bearer("ffffffffffffffff"),
            Told::Invalid,
        )]),
        Case::new("scopes", RequiredScopes::new(fixed(), ["read"]).unwrap(), bearer(FIXED), led)
            .with_resource()
            .refusing([("without a scope", bearer("b81c5e6f90a2d347"), Told::Lacking)]),
        Case::new("jwt", jwts(&signer, now.clone()), right.clone(), of_resource)
            .refusing(no_tokens())
            .refusing(wrong_jwts(&signer, seconds)),
        Case::new("introspection", opaque(&login), bearer("opaqueOfAnn"), of_resource).refusing(no_tokens()).refusing(
            [
                ("unknown", bearer("opaqueOfNobody"), Told::Invalid),
                ("wrong audience", bearer("opaqueForOthers"), Told::Invalid),
            ],
        ),
        Case::new("api key", keys(), key(KEY), |_| "ApiKey realm=\"mcp\", header=\"x-api-key\"".to_owned()).refusing([
            ("none", Vec::new(), Told::Missing),
            ("another scheme", bearer(KEY), Told::Missing),
            ("malformed", key("a b"), Told::Malformed),
            ("twice", [key(KEY), key(KEY)].concat(), Told::Malformed),
            ("unknown", key("kJ3vQ0rUuY7nM2xX"), Told::Invalid),
        ]),
        Case::new("basic", passwords(), basic("ann:secret"), |_| "Basic realm=\"mcp\", charset=\"UTF-8\"".to_owned())
            .refusing([
                ("none", Vec::new(), Told::Missing),
                ("another scheme", bearer("YW5uOnNlY3JldA=="), Told::Missing),
                ("malformed", vec![(AUTHORIZATION, "Basic !".to_owned())], Told::Malformed),
                ("unknown name", basic("eve:secret"), Told::Invalid),
                ("wrong password", basic("ann:Secret"), Told::Invalid),
            ]),
        Case::new("chain", chain(), key(KEY), |told| {
            format!("{}, ApiKey realm=\"mcp\", header=\"x-api-key\"", of_resource(told))
        })
        .refusing([
            ("none", Vec::new(), Told::Missing),
            ("unknown to both", [bearer("aaaa"), key("kJ3vQ0rUuY7nM2xX")].concat(), Told::Invalid),
        ])
        .refusing(wrong_jwts(&signer, seconds)),
        Case::new("chain, its first", chain(), right, |told| {
            format!("{}, ApiKey realm=\"mcp\", header=\"x-api-key\"", of_resource(told))
        }),
    ]
}
