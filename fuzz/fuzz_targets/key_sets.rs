//! Key sets: a set lets a token in exactly if the key that made it is in it and may verify it; what is wrong with a set is
//! said, and keys beside it change nothing.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use mcp_auth::{AuthError, IssuerKeys, JwtVerifier, TokenVerifier as _};
use mcp_fuzz::claims::{Changes, ISSUER, PUBLIC_KEYS, clock};
use serde_json::{Map, Value, json};

#[derive(Arbitrary, Debug)]
enum Input {
    Text(String),
    Keys(Vec<Key>),
    /// So many keys of nobody's, and the right one behind them.
    Many(u8),
}

#[derive(Arbitrary, Debug)]
struct Key {
    kind: u8,
    changes: Changes,
}

/// Made by the key in [`PUBLIC_KEYS`], which it calls `bench`, by ES256, and good until the year 2100.
const TOKEN: &str = concat!(
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImJlbmNoIiwidHlwIjoiYXQrand0In0",
    ".eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUiLCJhdWQiOiJodHRwczovL2JlbmNoLmV4YW1wbGUvbWNwIiwic3ViIjoiYmVuY2giLCJleHAiOjQxMDI0NDQ4MDB9",
    ".IOa2bn2Ya9rYHUL14OpZMd-bLqXfZ2MagFWH-XVGtVDjiMqcBBvUOcWXR7bLsPpf4QPekPzy6MOS9bCIYD2nqA",
);

/// How many keys a set may have, and how many are tried for one token.
const MAXIMUM: usize = 100;
const TRIED: usize = 8;

fuzz_target!(|input: Input| {
    let text = match &input {
        Input::Text(text) => text.clone(),
        Input::Keys(keys) => json!({ "keys": keys.iter().map(key).collect::<Vec<_>>() }).to_string(),
        Input::Many(count) => {
            let mut keys = vec![stranger(); (*count).into()];
            keys.push(Value::Object(right()));
            json!({ "keys": keys }).to_string()
        }
    };
    let listed = match serde_json::from_str(&text) {
        Ok(Value::Object(set)) => set.get("keys").and_then(Value::as_array).cloned(),
        _ => None,
    };
    let keys = match IssuerKeys::fixed(&text) {
        Ok(keys) => keys,
        Err(error) => {
            let expected = match &listed {
                None => "is no JSON object with a list of keys",
                Some(listed) if listed.len() > MAXIMUM => "has too many keys",
                Some(listed) => {
                    assert!(!listed.iter().any(is_right), "the right key is in {text}");
                    "has no key that verifies a signature here"
                }
            };
            assert_eq!((error.provider(), error.option(), error.reason()), ("jwt", "key set", expected), "{text}");
            return;
        }
    };
    let listed = listed.expect("what is accepted has a list");
    assert!(listed.len() <= MAXIMUM, "{} keys", listed.len());
    let verifier = JwtVerifier::new(["https://bench.example/mcp"]).and_then(|it| it.and_issuer(ISSUER, keys));
    let verifier = verifier.expect("the issuer has a name").with_clock(clock);
    let outcome = verifier.immediate(TOKEN).expect("fixed keys are at hand");
    match outcome {
        Ok(principal) => {
            assert_eq!(principal.subject(), "bench");
            assert!(listed.iter().any(is_right), "let in by {text}");
        }
        Err(error) => {
            assert_eq!(error, AuthError::InvalidToken);
            assert!(!listed.iter().take(TRIED).any(is_right), "kept out by {text}");
        }
    }
});

fn right() -> Map<String, Value> {
    let set: Value = serde_json::from_str(PUBLIC_KEYS).expect("the set is JSON");
    set["keys"][0].as_object().expect("its key is an object").clone()
}

/// Of the same kind.
fn stranger() -> Value {
    json!({
        "kty": "EC",
        "crv": "P-256",
        "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
        "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
    })
}

fn key(key: &Key) -> Value {
    let bytes = |count: usize| base64(count);
    let mut made = match key.kind % 6 {
        0 | 1 => right(),
        2 => stranger().as_object().cloned().unwrap_or_default(),
        3 => {
            Map::from_iter([("kty".into(), "RSA".into()), ("n".into(), bytes(256).into()), ("e".into(), "AQAB".into())])
        }
        4 => Map::from_iter([
            ("kty".into(), "OKP".into()),
            ("crv".into(), "Ed25519".into()),
            ("x".into(), bytes(32).into()),
        ]),
        _ => Map::from_iter([("kty".into(), "oct".into()), ("k".into(), bytes(32).into())]),
    };
    let names = ["kty", "crv", "x", "y", "n", "e", "k", "kid", "use", "key_ops", "alg", "x5c"];
    let words = ["EC", "RSA", "OKP", "oct", "P-256", "P-384", "Ed25519", "bench", "other", "sig", "enc", "AQAB", ""];
    let mut values = words.map(Value::from).to_vec();
    values.extend(["ES256", "ES384", "HS256", "RS256", "none", &bytes(31), &bytes(255)].map(Value::from));
    values.extend([json!(["verify"]), json!(["sign", "verify"]), json!(["encrypt"]), json!([]), Value::Null]);
    key.changes.apply(&mut made, &names, &values);
    Value::Object(made)
}

/// So many bytes of ones.
fn base64(count: usize) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(vec![0xff; count])
}

/// Whether it is the key that made the token, and nothing in it speaks against that use.
fn is_right(key: &Value) -> bool {
    let Some(key) = key.as_object() else { return false };
    let is = |name: &str, allowed: &[Value]| allowed.contains(key.get(name).unwrap_or(&Value::Null));
    let is_same = right().iter().all(|(name, value)| key.get(name) == Some(value));
    let operations = match key.get("key_ops") {
        None | Some(Value::Null) => true,
        Some(Value::Array(list)) => list.iter().all(Value::is_string) && list.iter().any(|one| one == "verify"),
        Some(_) => false,
    };
    let is_for_this =
        is("use", &[Value::Null, json!("sig")]) && operations && is("kid", &[Value::Null, json!("bench")]);
    let names_no_other = !key.contains_key("alg") || is("alg", &[json!("ES256")]);
    // Of a wrong kind, it makes the whole key one that is not understood.
    let certificates =
        ["x5u", "x5t", "x5t#S256"].iter().all(|name| key.get(*name).is_none_or(|it| it.is_null() || it.is_string()));
    let chain = key
        .get("x5c")
        .is_none_or(|it| it.is_null() || it.as_array().is_some_and(|list| list.iter().all(Value::is_string)));
    is_same && is_for_this && names_no_other && certificates && chain
}
