//! A set of keys at an address that is slow, silent, down, huge, lying or rotating, asked by the real client over the
//! network of this machine while callers come.
//!
//! When a set is asked for is decided in mcp-auth, whose own tests have an endpoint in memory; this is the whole way. Time
//! is moved by hand, and what travels does so in real time, so nothing depends on how fast the machine is.
//!
//! Spec: 2026-07-28 basic/authorization, "Token Handling"

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::{Duration, UNIX_EPOCH};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, Method, Uri, header::AUTHORIZATION};
use mcp_auth::{AuthError, AuthProvider as _, AuthRequest, Bearer, IssuerKeys, Jwks, JwtVerifier};
use mcp_http::fetch::HttpFetch;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::advance;

const ISSUER: &str = "https://login.example";
const AUDIENCE: &str = "https://tools.example/mcp";
const CROWD: usize = 50;

/// What an endpoint does with a request.
#[derive(Clone)]
enum Reply {
    /// Writes these bytes and closes.
    Bytes(Vec<u8>),
    /// Writes nothing, until it does something else.
    Nothing,
}

/// Answers on a port of this machine, one connection after the other, and counts.
struct Endpoint {
    address: SocketAddr,
    reply: watch::Sender<Reply>,
    asked: watch::Receiver<usize>,
    _serving: JoinSet<()>,
    /// Keeps tokio's clock from running ahead: it does not while there is blocking work.
    _still: mpsc::Sender<()>,
}

impl Endpoint {
    async fn new(first: Reply) -> Self {
        let (still, until) = mpsc::channel::<()>();
        #[expect(clippy::disallowed_methods, reason = "ends with the endpoint")]
        tokio::task::spawn_blocking(move || until.recv());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ((reply, mut replies), (count, asked)) = (watch::channel(first), watch::channel(0));
        let mut serving = JoinSet::new();
        #[expect(clippy::disallowed_methods, reason = "ends with the endpoint")]
        serving.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                serve(stream, &count, &mut replies).await;
            }
        });
        Self { address, reply, asked, _serving: serving, _still: still }
    }

    fn turns(&self, reply: Reply) {
        self.reply.send_replace(reply);
    }

    fn asked(&self) -> usize {
        *self.asked.borrow()
    }

    /// Waits until so many requests have come.
    async fn heard(&self, count: usize) {
        self.asked.clone().wait_for(|asked| *asked >= count).await.unwrap();
    }

    fn provider(&self) -> Arc<Bearer> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let fetch = Arc::new(HttpFetch::trusting(made.cert.pem().as_bytes()).unwrap().allow_loopback());
        let set = Jwks::new(&format!("http://{}/jwks", self.address), fetch).unwrap();
        let verifier = JwtVerifier::new([AUDIENCE]).and_then(|it| it.and_issuer(ISSUER, IssuerKeys::fetched(set)));
        Arc::new(Bearer::new(verifier.unwrap().with_clock(|| UNIX_EPOCH + Duration::from_secs(1_800_000_000))))
    }
}

async fn serve(mut stream: TcpStream, count: &watch::Sender<usize>, replies: &mut watch::Receiver<Reply>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    assert!(head.starts_with(b"GET /jwks HTTP/1.1\r\n"));
    count.send_modify(|count| *count += 1);
    let answer = tokio::select! {
        reply = replies.wait_for(|reply| matches!(reply, Reply::Bytes(_))) => reply.map(|reply| reply.clone()),
        // The client gave up.
        _ = stream.read_u8() => return,
    };
    if let Ok(Reply::Bytes(bytes)) = answer {
        // It may also have gone in the middle of what it did not like.
        let _gone = stream.write_all(&bytes).await;
    }
}

struct Signer(Ed25519KeyPair);

impl Signer {
    fn new() -> Self {
        Self(Ed25519KeyPair::generate().unwrap())
    }

    fn key(&self, id: &str) -> Value {
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key());
        json!({ "kty": "OKP", "kid": id, "crv": "Ed25519", "x": x })
    }

    fn token(&self, id: &str) -> String {
        let header = json!({ "alg": "EdDSA", "kid": id, "typ": "at+jwt" });
        let claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": 1_900_000_000 });
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(self.0.sign(signed.as_bytes())))
    }
}

fn response(status: u16, body: &str) -> Reply {
    Reply::Bytes(format!("HTTP/1.1 {status} So\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes())
}

fn serving(keys: &[Value]) -> Reply {
    response(200, &json!({ "keys": keys }).to_string())
}

async fn present(provider: &Bearer, token: &str) -> Result<String, AuthError> {
    let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
    let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
    let request = AuthRequest::new(&method, &uri, &headers);
    let outcome = match provider.immediate(&request) {
        Some(outcome) => outcome,
        None => provider.authenticate(request).await,
    };
    outcome.map(|principal| principal.subject().to_owned())
}

/// Callers with this token, all at once.
fn crowd(provider: &Arc<Bearer>, token: &str) -> JoinSet<Result<String, AuthError>> {
    let mut crowd = JoinSet::new();
    for _ in 0..CROWD {
        let (provider, token) = (Arc::clone(provider), token.to_owned());
        #[expect(clippy::disallowed_methods, reason = "ends with the set, which the test joins")]
        crowd.spawn(async move { present(&provider, &token).await });
    }
    crowd
}

fn ann() -> Result<String, AuthError> {
    Ok("ann".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_crowd_waits_for_one_slow_answer() {
    let signer = Signer::new();
    let endpoint = Endpoint::new(Reply::Nothing).await;
    let mut callers = crowd(&endpoint.provider(), &signer.token("k1"));
    endpoint.heard(1).await;
    advance(Duration::from_millis(4900)).await;
    assert!(callers.try_join_next().is_none(), "nobody is let in or refused before there is an answer");
    endpoint.turns(serving(&[signer.key("k1")]));
    assert_eq!(callers.join_all().await, vec![ann(); CROWD]);
    assert_eq!(endpoint.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_silent_costs_five_seconds_and_one_connection() {
    let signer = Signer::new();
    let endpoint = Endpoint::new(Reply::Nothing).await;
    let provider = endpoint.provider();
    let callers = crowd(&provider, &signer.token("k1"));
    endpoint.heard(1).await;
    advance(Duration::from_secs(5)).await;
    assert_eq!(callers.join_all().await, vec![Err(AuthError::Unavailable); CROWD]);
    assert_eq!(present(&provider, &signer.token("k1")).await, Err(AuthError::Unavailable), "without waiting");
    endpoint.turns(serving(&[signer.key("k1")]));
    advance(Duration::from_secs(10)).await;
    assert_eq!(crowd(&provider, &signer.token("k1")).join_all().await, vec![ann(); CROWD]);
    assert_eq!(endpoint.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn whatever_comes_in_the_place_of_a_set_the_last_good_one_serves_and_no_other_key_is_believed() {
    let (signer, stranger) = (Signer::new(), Signer::new());
    let theirs = json!({ "keys": [stranger.key("k2")] }).to_string();
    let chunked = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{theirs}\r\n", theirs.len());
    let blanks = " ".repeat(1 << 20);
    for (kind, bad) in [
        ("down", Reply::Bytes(Vec::new())),
        ("no HTTP", Reply::Bytes(theirs.clone().into_bytes())),
        ("an error", response(500, &theirs)),
        ("a redirect", response(302, &theirs)),
        ("another document", response(200, "<html>Welcome</html>")),
        ("a set without keys", serving(&[])),
        ("huge", response(200, &format!("{theirs}{blanks}"))),
        ("endless", Reply::Bytes(format!("{chunked}{:x}\r\n{blanks}\r\n", blanks.len()).into_bytes())),
        ("cut off", Reply::Bytes(format!("HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n{theirs}").into_bytes())),
        ("never ended", Reply::Bytes(chunked.into_bytes())),
    ] {
        let endpoint = Endpoint::new(serving(&[signer.key("k1")])).await;
        let provider = endpoint.provider();
        assert_eq!(present(&provider, &signer.token("k1")).await, ann());
        endpoint.turns(bad);
        advance(Duration::from_secs(600)).await;
        assert_eq!(crowd(&provider, &signer.token("k1")).join_all().await, vec![ann(); CROWD], "{kind}");
        endpoint.heard(2).await;
        // Whoever needs another key waits for the answer, which has none.
        for id in ["k2", "k1"] {
            let refused = crowd(&provider, &stranger.token(id)).join_all().await;
            assert_eq!(refused, vec![Err(AuthError::InvalidToken); CROWD], "{kind}");
        }
        assert_eq!(present(&provider, &signer.token("k1")).await, ann(), "{kind}");
        assert_eq!(endpoint.asked(), 2, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_rotate_under_load_are_found_by_one_question() {
    let (old, new) = (Signer::new(), Signer::new());
    let endpoint = Endpoint::new(serving(&[old.key("k1")])).await;
    let provider = endpoint.provider();
    assert_eq!(present(&provider, &old.token("k1")).await, ann());
    endpoint.turns(serving(&[new.key("k2")]));
    // Too early: so soon nobody asks again, however many ask for it.
    let early = crowd(&provider, &new.token("k2")).join_all().await;
    assert_eq!((early, endpoint.asked()), (vec![Err(AuthError::InvalidToken); CROWD], 1));
    advance(Duration::from_secs(10)).await;
    let (strangers, callers) = (crowd(&provider, &old.token("k2")), crowd(&provider, &new.token("k2")));
    assert_eq!(callers.join_all().await, vec![ann(); CROWD]);
    assert_eq!(strangers.join_all().await, vec![Err(AuthError::InvalidToken); CROWD]);
    assert_eq!(present(&provider, &old.token("k1")).await, Err(AuthError::InvalidToken), "the old key is gone");
    assert_eq!(endpoint.asked(), 2);
}
