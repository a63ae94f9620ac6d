//! How long refusals take, sample by sample, for `cargo xtask auth-timing` to compare.
//!
//! Why here: a difference in time would tell a name that exists from one that does not, or how much of a secret was right.
//! Invariants: both kinds of refusal are measured in turns, and chance decides who begins one, so that whatever else the
//! machine does meets both alike. Each turn has other credentials, because what a look-up takes depends a little on where
//! in a table they would be. Two kinds that are the same must not differ, however quiet the machine is.
#![expect(clippy::print_stdout, reason = "the samples are the program's output")]

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use mcp_auth::{
    ApiKeyTable, ApiKeys, AuthProvider, AuthRequest, Basic, BasicUsers, Bearer, Fetch, FetchError, FetchRequest,
    FetchResponse, Introspection, InvalidOption, IssuerKeys, Jwks, JwtVerifier, Pepper, StaticBearer,
};
use mcp_core::Principal;
use tokio::time::Instant;

/// Pairs of samples, after those that warm up.
const PAIRS: usize = 2000;
const WARM_UP: usize = 100;
/// Secrets that the fast providers know.
const KNOWN: usize = 64;
const ISSUER: &str = "https://login.example";
const AUDIENCE: &str = "https://tools.example/mcp";

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    // Tests build and start this program as well; only `cargo bench` says so.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let mut tokens = StaticBearer::new(&secret(0), named("static"))?;
    let pepper = Pepper::new(&[7; 32])?;
    let mut table = ApiKeyTable::new().and(&pepper.stored_form(&secret(0))?, named("api key"))?;
    for number in 1..KNOWN {
        tokens = tokens.and(&secret(number), named("static"))?;
        table = table.and(&pepper.stored_form(&secret(number))?, named("api key"))?;
    }
    measure("fixed tokens", &tokens, 16, guesses(bearer)?).await?;
    let keys = guesses(|key| header("x-api-key", key))?;
    measure("api keys", &ApiKeys::new(pepper, table), 16, keys).await?;

    // The hash of `secret` at the lowest costs that are accepted; what is measured does not depend on them.
    let hash = "$argon2id$v=19$m=7168,t=1,p=1$c2FsdC1vZi1zZWNyZXQtMA$oGTw5h8GmA6cvFqsdc7h2nct507HwuxbplhRwptZ8g0";
    let users = Basic::new(BasicUsers::new().and("ann", hash, named("basic"))?)?;
    let basic = |text: &str| header("authorization", &format!("Basic {}", STANDARD.encode(text)));
    measure("passwords", &users, 1, [vec![basic("eve:wrong")?], vec![basic("ann:wrong")?]]).await?;

    measure("shared secrets", &of_issuer(IssuerKeys::shared_secret(&[7; 32])?)?, 16, shared_secrets()?).await?;
    let (set, kinds) = signatures()?;
    measure("fixed keys", &of_issuer(IssuerKeys::fixed(&set)?)?, 1, kinds.clone()).await?;
    let served: Arc<dyn Fetch> = Arc::new(KeySet(set));
    let fetched = of_issuer(IssuerKeys::fetched(Jwks::new("https://login.example/jwks", served)?))?;
    measure("fetched keys", &fetched, 1, kinds).await?;

    let active = Arc::new(Active((0..KNOWN).map(secret).collect()));
    let endpoint = "https://login.example/introspect";
    let introspection = Bearer::new(Introspection::new(ISSUER, endpoint, [AUDIENCE], active)?);
    measure("introspection", &introspection, 4, guesses(bearer)?).await
}

fn secret(number: usize) -> String {
    format!("kJ3vQ0rUuY7nM2xW5tB8cD{number:04}")
}

/// Secrets that have nothing of a known one, and those that have all but its end. Both have the same kinds of characters at
/// the same places: what a caller's own text takes to be written into a form is no secret.
fn guesses(shown: impl Fn(&str) -> Outcome<HeaderMap>) -> Outcome<[Vec<HeaderMap>; 2]> {
    let mut kinds = [Vec::new(), Vec::new()];
    for number in KNOWN..KNOWN + WARM_UP + PAIRS {
        kinds[0].push(shown(&secret(number).chars().map(another).collect::<String>())?);
        kinds[1].push(shown(&secret(number))?);
    }
    Ok(kinds)
}

fn another(character: char) -> char {
    match character {
        'a'..='m' | 'A'..='M' => char::from_u32(u32::from(character) + 13).unwrap_or(character),
        'n'..='z' | 'N'..='Z' => char::from_u32(u32::from(character) - 13).unwrap_or(character),
        '0'..='4' => char::from_u32(u32::from(character) + 5).unwrap_or(character),
        '5'..='9' => char::from_u32(u32::from(character) - 5).unwrap_or(character),
        other => other,
    }
}

fn named(provider: &str) -> Principal {
    Principal::new(provider, "", "ann")
}

fn header(name: &'static str, value: &str) -> Outcome<HeaderMap> {
    Ok(HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_str(value)?)]))
}

fn bearer(token: &str) -> Outcome<HeaderMap> {
    header("authorization", &format!("Bearer {token}"))
}

fn of_issuer(keys: IssuerKeys) -> Result<Bearer, InvalidOption> {
    Ok(Bearer::new(JwtVerifier::new([AUDIENCE])?.and_issuer(ISSUER, keys)?))
}

/// What a JWT's signature is made of, for the user with this number. Which keys and issuers there are is public, so both
/// kinds of token name those that are known.
fn signed_part(algorithm: &str, number: usize) -> String {
    let header = format!(r#"{{"alg":"{algorithm}","kid":"k1"}}"#);
    let claims = format!(r#"{{"iss":"{ISSUER}","aud":"{AUDIENCE}","sub":"{number:06}","exp":4102444800}}"#);
    format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims))
}

/// Tokens whose signature is wrong from the first byte on, and those where it is the last byte alone.
fn shared_secrets() -> Outcome<[Vec<HeaderMap>; 2]> {
    let key = Key::new(HMAC_SHA256, &[7; 32]);
    let mut kinds = [Vec::new(), Vec::new()];
    for number in 0..KNOWN {
        let signed = signed_part("HS256", number);
        let right = sign(&key, signed.as_bytes());
        for (kind, first_wrong) in kinds.iter_mut().zip([0, 31]) {
            let mut signature = right.as_ref().to_vec();
            signature.iter_mut().skip(first_wrong).for_each(|byte| *byte ^= 0x55);
            kind.push(bearer(&format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))?);
        }
    }
    Ok(kinds)
}

/// A key set, tokens that a stranger signed, and tokens of the issuer's in which the user was changed afterwards.
fn signatures() -> Outcome<(String, [Vec<HeaderMap>; 2])> {
    let generate = || EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING);
    let (issuer, stranger, random) = (generate()?, generate()?, SystemRandom::new());
    let mut kinds = [Vec::new(), Vec::new()];
    // How long a verification takes depends on the numbers in the signature, so no two turns have the same.
    for number in 0..WARM_UP + PAIRS {
        for (kind, key, user) in [(0, &stranger, number), (1, &issuer, number + PAIRS * 2)] {
            let signature = key.sign(&random, signed_part("ES256", user).as_bytes())?;
            let signature = URL_SAFE_NO_PAD.encode(signature);
            kinds[kind].push(bearer(&format!("{}.{signature}", signed_part("ES256", number)))?);
        }
    }
    let (x, y) = issuer.public_key().as_ref()[1..].split_at(32);
    let [x, y] = [x, y].map(|number| URL_SAFE_NO_PAD.encode(number));
    let set = format!(r#"{{"keys":[{{"kty":"EC","kid":"k1","crv":"P-256","x":"{x}","y":"{y}","alg":"ES256"}}]}}"#);
    Ok((set, kinds))
}

/// Serves a key set.
struct KeySet(String);

#[async_trait]
impl Fetch for KeySet {
    async fn fetch(&self, _request: FetchRequest) -> Result<FetchResponse, FetchError> {
        Ok(FetchResponse::new(StatusCode::OK, self.0.clone().into_bytes()))
    }
}

/// Says which tokens are active.
struct Active(HashSet<String>);

#[async_trait]
impl Fetch for Active {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, FetchError> {
        let fields = request.form().unwrap_or_default().split('&');
        let active = fields.filter_map(|field| field.strip_prefix("token=")).any(|token| self.0.contains(token));
        Ok(FetchResponse::new(StatusCode::OK, format!(r#"{{"active":{active}}}"#).into_bytes()))
    }
}

/// Prints what `repeat` refusals of each kind take, in nanoseconds, one line for each turn: those of the unknown and those
/// of the wrong. Each turn has the next credentials of either kind.
async fn measure(name: &str, provider: &dyn AuthProvider, repeat: usize, kinds: [Vec<HeaderMap>; 2]) -> Outcome<()> {
    let mut chance = Chance(1);
    let kinds = scattered(&kinds, &mut chance)?;
    let mut samples = Vec::with_capacity(PAIRS);
    for turn in 0..WARM_UP + PAIRS {
        let mut took = [0; 2];
        for kind in if chance.below(2) == 0 { [0, 1] } else { [1, 0] } {
            let headers = &kinds[kind][turn % kinds[kind].len()];
            let began = Instant::now();
            for _ in 0..repeat {
                refused(provider, headers).await?;
            }
            took[kind] = began.elapsed().as_nanos();
        }
        if turn >= WARM_UP {
            samples.push(took);
        }
    }
    // At the end, because whoever is measured after a write finds its caches cold.
    for [unknown, wrong] in samples {
        println!("{name}\t{unknown}\t{wrong}");
    }
    Ok(())
}

/// Numbers without a pattern, the same in each run: Knuth's generator.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// Copies, made in no order: what was made in turns would lie in turns, one kind always at the better half of a cache line.
fn scattered(kinds: &[Vec<HeaderMap>; 2], chance: &mut Chance) -> Outcome<[Vec<HeaderMap>; 2]> {
    let mut places: Vec<_> = (0..2).flat_map(|kind| (0..kinds[kind].len()).map(move |index| (kind, index))).collect();
    for place in (1..places.len()).rev() {
        places.swap(place, chance.below(place + 1));
    }
    let mut copies = kinds.clone();
    for (kind, index) in places {
        let mut copy = HeaderMap::new();
        for (name, value) in &kinds[kind][index] {
            copy.insert(name, HeaderValue::from_bytes(value.as_bytes())?);
        }
        copies[kind][index] = copy;
    }
    Ok(copies)
}

async fn refused(provider: &dyn AuthProvider, headers: &HeaderMap) -> Outcome<()> {
    let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
    let request = AuthRequest::new(&method, &uri, headers);
    let outcome = match provider.immediate(&request) {
        Some(outcome) => outcome,
        None => provider.authenticate(request).await,
    };
    if outcome.is_ok() { Err("wrong credentials were let in".into()) } else { Ok(()) }
}
