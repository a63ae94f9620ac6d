//! JWTs: a token is let in exactly if an oracle says that it holds, as whom its claims say, and no other spelling of it is
//! taken for it; with the public key as a secret nobody signs anything.
#![no_main]

use std::cell::RefCell;

use arbitrary::Arbitrary;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use libfuzzer_sys::fuzz_target;
use mcp_auth::{AuthError, IssuerKeys, JwtVerifier, TokenVerifier as _};
use mcp_fuzz::claims::{AUDIENCE, Changes, ISSUER, PUBLIC_KEYS, check, claims, clock, judged};
use serde_json::{Map, Value, json};
use sha2::Sha256;

#[derive(Arbitrary, Debug)]
struct Input {
    header: Part,
    claims: Part,
    signer: Signer,
    forgery: Forgery,
}

#[derive(Arbitrary, Debug)]
enum Part {
    Good(Changes),
    Text(String),
}

#[derive(Arbitrary, Debug)]
enum Signer {
    Issuer,
    /// With what is public of the other issuer.
    PublicKey,
    Nobody,
    Anybody(Vec<u8>),
}

#[derive(Arbitrary, Debug)]
enum Forgery {
    None,
    Anything(String),
    Flip { at: u16, with: u8 },
    Cut(u16),
    Appended(String),
    Parts(Vec<String>),
}

const SECRET: [u8; 32] = [7; 32];
/// Its keys are public.
const OTHER_ISSUER: &str = "https://public.example";

fuzz_target!(|input: Input| {
    let header = part(&input.header, |changes| {
        let mut header = Map::from_iter([("alg".to_owned(), json!("HS256")), ("typ".to_owned(), json!("at+jwt"))]);
        let algorithms = ["HS256", "none", "hs256", "ES256", "RS256", "HS384", "EdDSA"].map(Value::from);
        let others = ["JWT", "at+jwt", "AT+JWT", "application/at+jwt", "dpop+jwt", "bench", "b64"].map(Value::from);
        let values: Vec<Value> = algorithms.into_iter().chain(others).collect();
        changes.apply(&mut header, &["alg", "typ", "kid", "crit", "jwk", "jku", "cty"], &values);
        header
    });
    let payload = part(&input.claims, claims);
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(&header), URL_SAFE_NO_PAD.encode(&payload));
    let signature = match &input.signer {
        Signer::Issuer => mac(&SECRET, &signed),
        Signer::PublicKey => mac(PUBLIC_KEYS.as_bytes(), &signed),
        Signer::Nobody => Vec::new(),
        Signer::Anybody(bytes) => bytes.clone(),
    };
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(&signature));
    let given = forge(&input.forgery, &token);
    let outcome = with_verifier(|verifier| verifier.immediate(&given).expect("fixed keys are at hand"));

    let is_signed = signature == mac(&SECRET, &signed);
    let (header, payload) = (object(&header), object(&payload));
    if given == token {
        let expected = header.zip(payload.clone()).ok_or(AuthError::NotRecognised);
        let expected = expected.and_then(|(header, payload)| expected_of(&header, &payload, is_signed));
        assert_eq!(outcome.as_ref().map(|_| ()).map_err(Clone::clone), expected, "{given}");
    } else if let Ok(principal) = &outcome {
        panic!("{given} was taken for {principal:?}");
    }
    if let Ok(principal) = outcome {
        check(&principal, "jwt", &payload.expect("claims are an object"));
    }
});

/// The text of a part.
fn part(part: &Part, good: impl FnOnce(&Changes) -> Map<String, Value>) -> String {
    match part {
        Part::Good(changes) => Value::Object(good(changes)).to_string(),
        Part::Text(text) => text.clone(),
    }
}

fn object(text: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// What a token of these parts has to come to.
fn expected_of(header: &Map<String, Value>, claims: &Map<String, Value>, is_signed: bool) -> Result<(), AuthError> {
    let is_of = |issuer: &str| claims.get("iss").is_some_and(|name| name == issuer);
    if !is_of(ISSUER) && !is_of(OTHER_ISSUER) {
        return Err(AuthError::NotRecognised);
    }
    let is_access_token = header.get("typ").is_none_or(|kind| {
        let kind = kind.as_str().map(str::to_ascii_lowercase);
        matches!(kind.as_deref(), Some("jwt" | "at+jwt" | "application/at+jwt"))
    });
    let is_right_kind = is_access_token && header.get("alg").is_some_and(|name| name == "HS256");
    if is_of(OTHER_ISSUER) || !is_right_kind || header.contains_key("crit") || !is_signed {
        return Err(AuthError::InvalidToken);
    }
    judged(claims, false)
}

fn mac(secret: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("an HMAC takes any key");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn forge(forgery: &Forgery, token: &str) -> String {
    let place = |at: u16| usize::from(at) % token.len();
    match forgery {
        Forgery::None => token.to_owned(),
        Forgery::Anything(text) => text.clone(),
        Forgery::Flip { at, with } => {
            let mut bytes = token.to_owned().into_bytes();
            bytes[place(*at)] = b"ABCDQw01-_.="[usize::from(*with) % 12];
            String::from_utf8(bytes).expect("a token is ASCII")
        }
        Forgery::Cut(at) => token[..place(*at)].to_owned(),
        Forgery::Appended(text) => format!("{token}{text}"),
        Forgery::Parts(parts) => parts.join("."),
    }
}

fn with_verifier<T>(with: impl FnOnce(&JwtVerifier) -> T) -> T {
    thread_local! {
        static VERIFIER: RefCell<Option<JwtVerifier>> = const { RefCell::new(None) };
    }
    VERIFIER.with(|verifier| {
        let make = || {
            let secret = IssuerKeys::shared_secret(&SECRET).expect("the secret is long enough");
            let public = IssuerKeys::fixed(PUBLIC_KEYS).expect("the keys are in order");
            let verifier = JwtVerifier::new([AUDIENCE]).expect("there is an audience");
            let verifier = verifier.and_issuer(ISSUER, secret).and_then(|it| it.and_issuer(OTHER_ISSUER, public));
            verifier.expect("the issuers differ").with_clock(clock)
        };
        with(verifier.borrow_mut().get_or_insert_with(make))
    })
}
