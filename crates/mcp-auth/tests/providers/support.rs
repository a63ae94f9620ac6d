//! Issuers that sign, endpoints that follow a script, and a wall clock that goes on with tokio's paused one.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use aws_lc_rs::{hmac, rsa};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use mcp_auth::{AuthError, AuthProvider, AuthRequest, Fetch, FetchError, FetchRequest, FetchResponse};
use mcp_core::Principal;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

pub(crate) const ISSUER: &str = "https://login.example";
pub(crate) const AUDIENCE: &str = "https://tools.example/mcp";
/// When tests begin, in seconds since the epoch.
pub(crate) const NOW: u64 = 1_800_000_000;

/// The wall clock of a test: begins at [`NOW`] and goes on with tokio's.
pub(crate) fn clock() -> impl Fn() -> SystemTime + Send + Sync + 'static {
    let started = tokio::time::Instant::now();
    move || UNIX_EPOCH + Duration::from_secs(NOW) + started.elapsed()
}

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// What is logged on this thread while it lives, as text.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<String>>);

impl Log {
    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let mut text = self.0.lock().unwrap();
        text.push_str(&format!("{field}={value:?}\n"));
    }
}

impl Subscriber for Log {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _attributes: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// A key that signs.
pub(crate) enum Signer {
    Ed(Ed25519KeyPair),
    Ec(EcdsaKeyPair),
    Rsa(Box<RsaKeyPair>),
    Secret(Vec<u8>),
}

impl Signer {
    pub(crate) fn ed() -> Self {
        Self::Ed(Ed25519KeyPair::generate().unwrap())
    }

    pub(crate) fn ec() -> Self {
        Self::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    pub(crate) fn rsa() -> Self {
        Self::Rsa(Box::new(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()))
    }

    pub(crate) const fn algorithm(&self) -> &'static str {
        match self {
            Self::Ed(_) => "EdDSA",
            Self::Ec(_) => "ES256",
            Self::Rsa(_) => "RS256",
            Self::Secret(_) => "HS256",
        }
    }

    /// The public half, or, for a secret, the secret.
    pub(crate) fn jwk(&self, id: &str) -> Value {
        match self {
            Self::Ed(pair) => {
                json!({ "kty": "OKP", "kid": id, "crv": "Ed25519", "x": encode(pair.public_key()), "use": "sig" })
            }
            Self::Ec(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "kid": id, "crv": "P-256", "x": encode(x), "y": encode(y), "alg": "ES256" })
            }
            Self::Rsa(pair) => {
                let public = rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({ "kty": "RSA", "kid": id, "n": encode(public.n), "e": encode(public.e) })
            }
            Self::Secret(secret) => json!({ "kty": "oct", "kid": id, "k": encode(secret), "alg": "HS256" }),
        }
    }

    /// A token with exactly this header and these claims.
    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let (message, random) = (signed.as_bytes(), SystemRandom::new());
        let signature = match self {
            Self::Ed(pair) => pair.sign(message).as_ref().to_vec(),
            Self::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
            Self::Secret(secret) => hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message).as_ref().to_vec(),
        };
        format!("{signed}.{}", encode(signature))
    }

    /// A token that holds until 5 minutes after [`NOW`], but for `changes` to its claims; null removes one.
    pub(crate) fn token(&self, id: &str, changes: &Value) -> String {
        self.sign(&json!({ "alg": self.algorithm(), "kid": id, "typ": "at+jwt" }), &claims(changes))
    }
}

/// Claims that hold, but for `changes`.
pub(crate) fn claims(changes: &Value) -> Value {
    let mut claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW + 300, "scope": "read write" });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let members = claims.as_object_mut().unwrap();
    members.retain(|_, value| !value.is_null());
    claims
}

pub(crate) fn key_set(keys: &[Value]) -> Vec<u8> {
    json!({ "keys": keys }).to_string().into_bytes()
}

/// What an endpoint does with a request.
#[derive(Clone)]
pub(crate) enum Reply {
    Body(u16, Vec<u8>),
    Late(Duration, u16, Vec<u8>),
    Never,
    Down,
    Panic,
}

type Script = Box<dyn FnMut(&FetchRequest) -> Reply + Send>;

/// An endpoint in memory that does what it is told to, and counts.
pub(crate) struct Endpoint {
    script: Mutex<Script>,
    asked: AtomicUsize,
    open: AtomicUsize,
    most_open: AtomicUsize,
}

impl Endpoint {
    pub(crate) fn new(reply: Reply) -> Arc<Self> {
        let endpoint = Self {
            script: Mutex::new(Box::new(|_| Reply::Down)),
            asked: AtomicUsize::default(),
            open: AtomicUsize::default(),
            most_open: AtomicUsize::default(),
        };
        endpoint.turns(reply);
        Arc::new(endpoint)
    }

    /// From now on does this.
    pub(crate) fn turns(&self, reply: Reply) {
        self.follows(move |_| reply.clone());
    }

    pub(crate) fn follows(&self, script: impl FnMut(&FetchRequest) -> Reply + Send + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    /// How many requests there were.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }

    /// How many of them at a time.
    pub(crate) fn most_open(&self) -> usize {
        self.most_open.load(SeqCst)
    }
}

struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[async_trait]
impl Fetch for Endpoint {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, FetchError> {
        self.asked.fetch_add(1, SeqCst);
        let open = self.open.fetch_add(1, SeqCst) + 1;
        self.most_open.fetch_max(open, SeqCst);
        let _open = Open(&self.open);
        let reply = (self.script.lock().unwrap())(&request);
        // An answer takes at least one turn of the others.
        tokio::task::yield_now().await;
        let response = |status, body| FetchResponse::new(StatusCode::from_u16(status).unwrap(), body);
        match reply {
            Reply::Body(status, body) => Ok(response(status, body)),
            Reply::Late(delay, status, body) => {
                tokio::time::sleep(delay).await;
                Ok(response(status, body))
            }
            Reply::Never => std::future::pending().await,
            Reply::Down => Err(FetchError::Connection { reason: "refused".to_owned() }),
            Reply::Panic => panic!("the client has a bug"),
        }
    }
}

pub(crate) fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

/// What the provider answers, without waiting if it can.
pub(crate) async fn ask(provider: &dyn AuthProvider, headers: &HeaderMap) -> Result<Principal, AuthError> {
    let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
    let request = AuthRequest::new(&method, &uri, headers);
    match provider.immediate(&request) {
        Some(outcome) => outcome,
        None => provider.authenticate(request).await,
    }
}

/// The same for a bearer token.
pub(crate) async fn present(provider: &dyn AuthProvider, token: &str) -> Result<Principal, AuthError> {
    ask(provider, &headers(&[("authorization", &format!("Bearer {token}"))])).await
}

/// All of them at once, each in a task of its own.
#[expect(clippy::disallowed_methods, reason = "ends with the set, which the test waits for")]
pub(crate) async fn together<T: Send + 'static>(
    work: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let mut running = JoinSet::new();
    for future in work {
        running.spawn(future);
    }
    running.join_all().await
}
