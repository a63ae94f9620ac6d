//! Credentials: whatever `Authorization` and `x-api-key` lines come, each provider says of them what an oracle says, and
//! several behind one another say what the first says that recognises them.
#![no_main]

use std::cell::RefCell;

use arbitrary::Arbitrary;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, Method, Uri};
use libfuzzer_sys::fuzz_target;
use mcp_auth::{
    ApiKeyTable, ApiKeys, AuthError, AuthProvider, AuthRequest, Basic, BasicUsers, Bearer, Chain, Pepper, TokenVerifier,
};
use mcp_core::Principal;
use tokio::runtime::{Builder, Runtime};

#[derive(Arbitrary, Debug)]
struct Input {
    authorization: Vec<Line>,
    api_keys: Vec<Line>,
}

#[derive(Arbitrary, Debug)]
struct Line {
    scheme: Scheme,
    blanks: u8,
    rest: Rest,
}

#[derive(Arbitrary, Debug)]
enum Scheme {
    Known(u8),
    None,
    Bytes(Vec<u8>),
}

#[derive(Arbitrary, Debug)]
enum Rest {
    Token,
    Password,
    Bytes(Vec<u8>),
    /// In base64.
    Pair(String, String),
    /// So many letters.
    Long(u16),
}

const SCHEMES: [&str; 7] = ["Bearer", "bEARER", "Basic", "BASIC", "ApiKey", "apikey", "Digest"];
/// Good as a token and as a key.
const TOKEN: &str = "kJ3vQ0rUuY7nM2xW";
/// The hash of `secret` at the lowest costs.
const HASH: &str = "$argon2id$v=19$m=7168,t=1,p=1$c2FsdC1vZi1zZWNyZXQtMA$oGTw5h8GmA6cvFqsdc7h2nct507HwuxbplhRwptZ8g0";

/// Which provider let the caller in; nothing if that takes a hash and the pair is wrong.
type Outcome = Option<Result<String, AuthError>>;

fuzz_target!(|input: Input| {
    let mut headers = HeaderMap::new();
    for (name, lines) in [("authorization", &input.authorization), ("x-api-key", &input.api_keys)] {
        for value in lines.iter().take(3).filter_map(|line| HeaderValue::from_bytes(&bytes(line)).ok()) {
            headers.append(name, value);
        }
    }
    let lines = |name: &str| headers.get_all(name).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>();
    let (authorization, keys) = (lines("authorization"), lines("x-api-key"));
    let expected: [Outcome; 3] =
        [Some(bearer(&authorization)), basic(&authorization), Some(api_key(&keys, &authorization))];
    with_providers(|providers| {
        for (provider, expected) in providers.each.iter().zip(&expected) {
            assert_eq!(&providers.ask(&**provider, &headers, expected.is_none()), expected, "{headers:?}");
        }
        let expected = first_decision(expected);
        assert_eq!(providers.ask(&providers.chain, &headers, expected.is_none()), expected, "{headers:?}");
    });
});

/// What providers behind one another come to.
fn first_decision(outcomes: [Outcome; 3]) -> Outcome {
    let mut so_far = AuthError::Missing;
    for outcome in outcomes {
        match outcome {
            Some(Err(AuthError::Missing)) => {}
            Some(Err(AuthError::NotRecognised)) => so_far = AuthError::NotRecognised,
            decision => return decision,
        }
    }
    Some(Err(so_far))
}

fn bytes(line: &Line) -> Vec<u8> {
    let mut bytes = match &line.scheme {
        Scheme::Known(which) => SCHEMES[usize::from(*which) % SCHEMES.len()].as_bytes().to_vec(),
        Scheme::None => Vec::new(),
        Scheme::Bytes(bytes) => bytes.clone(),
    };
    bytes.extend(std::iter::repeat_n(b' ', usize::from(line.blanks) % 4));
    match &line.rest {
        Rest::Token => bytes.extend(TOKEN.bytes()),
        Rest::Password => bytes.extend(STANDARD.encode("ann:secret").bytes()),
        Rest::Bytes(more) => bytes.extend(more),
        Rest::Pair(name, password) => bytes.extend(STANDARD.encode(format!("{name}:{password}")).bytes()),
        Rest::Long(count) => bytes.extend(std::iter::repeat_n(b'k', usize::from(*count) % 20_000)),
    }
    bytes
}

/// What stands behind the scheme on the only line.
fn behind<'a>(lines: &[&'a [u8]], scheme: &str) -> Result<&'a [u8], AuthError> {
    match lines {
        [] => Err(AuthError::Missing),
        [line] => {
            let mut words = line.splitn(2, |byte| *byte == b' ');
            let is_it = words.next().is_some_and(|word| word.to_ascii_lowercase() == scheme.as_bytes());
            is_it.then(|| trimmed(words.next().unwrap_or_default())).ok_or(AuthError::Missing)
        }
        _ => Err(AuthError::Malformed),
    }
}

fn trimmed(mut bytes: &[u8]) -> &[u8] {
    // No other blanks get into a header.
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// RFC 6750: letters, digits and six marks, then any number of `=`; 16 KiB at most.
fn bearer(lines: &[&[u8]]) -> Result<String, AuthError> {
    let token = behind(lines, "bearer")?;
    let text = String::from_utf8(token.to_vec()).map_err(|_| AuthError::Malformed)?;
    let body = text.trim_end_matches('=');
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-._~+/".contains(letter);
    if body.is_empty() || !body.chars().all(fits) || text.len() > 16 * 1024 {
        return Err(AuthError::Malformed);
    }
    if text == TOKEN { Ok("bearer".to_owned()) } else { Err(AuthError::NotRecognised) }
}

/// Nothing for a pair that takes a hash to judge.
fn basic(lines: &[&[u8]]) -> Outcome {
    let text = match behind(lines, "basic") {
        Ok(encoded) => encoded,
        Err(error) => return Some(Err(error)),
    };
    let pair =
        STANDARD.decode(text).ok().filter(|_| text.len() <= 2048).and_then(|bytes| String::from_utf8(bytes).ok());
    match pair {
        Some(pair) if !pair.contains(':') || pair.chars().any(char::is_control) => Some(Err(AuthError::Malformed)),
        Some(pair) => (pair == "ann:secret").then(|| Ok("basic".to_owned())),
        None => Some(Err(AuthError::Malformed)),
    }
}

/// One to 512 visible characters, by one of the two ways.
fn api_key(keys: &[&[u8]], authorization: &[&[u8]]) -> Result<String, AuthError> {
    let key = match (keys, behind(authorization, "apikey")) {
        ([], outcome) => outcome?,
        ([key], Err(AuthError::Missing)) => trimmed(key),
        _ => return Err(AuthError::Malformed),
    };
    if key.is_empty() || key.len() > 512 || !key.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Err(AuthError::Malformed);
    }
    if key == TOKEN.as_bytes() { Ok("api key".to_owned()) } else { Err(AuthError::NotRecognised) }
}

/// Knows one token.
struct Tokens;

#[async_trait]
impl TokenVerifier for Tokens {
    async fn verify(&self, token: &str) -> Result<Principal, AuthError> {
        self.immediate(token).expect("a look-up takes no waiting")
    }

    fn immediate(&self, token: &str) -> Option<Result<Principal, AuthError>> {
        Some(if token == TOKEN { Ok(Principal::new("bearer", "", "ann")) } else { Err(AuthError::NotRecognised) })
    }
}

struct Providers {
    each: [Box<dyn AuthProvider>; 3],
    chain: Chain,
    /// With the clock of the machine: hashes are computed on other threads.
    runtime: Runtime,
}

impl Providers {
    /// What is answered at once, or else after waiting, for a pair that is not known to be wrong.
    fn ask(&self, provider: &dyn AuthProvider, headers: &HeaderMap, is_wrong: bool) -> Outcome {
        let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
        let request = AuthRequest::new(&method, &uri, headers);
        let outcome = match provider.immediate(&request) {
            None if is_wrong => return None,
            None => self.runtime.block_on(provider.authenticate(request)),
            Some(outcome) => outcome,
        };
        Some(outcome.map(|principal| principal.provider().to_owned()))
    }
}

fn providers() -> (Bearer, Basic, ApiKeys) {
    let named = |provider| Principal::new(provider, "", "ann");
    let pepper = Pepper::new(&[7; 32]).expect("the pepper is long enough");
    let stored = pepper.stored_form(TOKEN).expect("the key is long enough");
    let table = ApiKeyTable::new().and(&stored, named("api key")).expect("what was made is accepted");
    let users = BasicUsers::new().and("ann", HASH, named("basic")).expect("the hash is in order");
    let basic = Basic::new(users).expect("there is randomness");
    (Bearer::new(Tokens), basic, ApiKeys::new(pepper, table))
}

fn with_providers<T>(with: impl FnOnce(&Providers) -> T) -> T {
    thread_local! {
        static PROVIDERS: RefCell<Option<Providers>> = const { RefCell::new(None) };
    }
    let make = || {
        let (bearer, basic, keys) = providers();
        let chain = Chain::new(bearer).and(basic).and(keys);
        let (bearer, basic, keys) = providers();
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime needs nothing else");
        Providers { each: [Box::new(bearer), Box::new(basic), Box::new(keys)], chain, runtime }
    };
    PROVIDERS.with(|providers| with(providers.borrow_mut().get_or_insert_with(make)))
}
