//! What is stored of secrets: a hash or a key is taken exactly if an oracle says that its form and its costs are in order,
//! and a provider can be built of everything that was taken.
#![no_main]

use arbitrary::Arbitrary;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use libfuzzer_sys::fuzz_target;
use mcp_auth::{ApiKeyTable, ApiKeys, AuthProvider as _, AuthRequest, Basic, BasicUsers, Pepper};
use mcp_core::Principal;

#[derive(Arbitrary, Debug)]
enum Input {
    Hash(Hash),
    Text(String),
    Key(String),
}

#[derive(Arbitrary, Debug)]
struct Hash {
    algorithm: u8,
    version: u8,
    parameters: Vec<(u8, u32)>,
    salt: Vec<u8>,
    output: Option<Vec<u8>>,
    rest: String,
}

const ALGORITHMS: [&str; 8] =
    ["argon2id", "argon2id", "argon2id", "argon2id", "argon2i", "argon2d", "scrypt", "ARGON2ID"];
const VERSIONS: [&str; 6] = ["$v=19", "$v=19", "$v=19", "$v=16", "", "$v=019"];

fuzz_target!(|input: Input| match input {
    Input::Hash(hash) => password_hash(&written(&hash)),
    Input::Text(text) => {
        password_hash(&text);
        stored_key(&text);
        stored_key(&format!("hmac-sha256${text}"));
    }
    Input::Key(key) => key_of_a_caller(&key),
});

fn written(hash: &Hash) -> String {
    let pick = |list: &[&'static str], which: u8| list[usize::from(which) % list.len()];
    let mut text = format!("${}{}", pick(&ALGORITHMS, hash.algorithm), pick(&VERSIONS, hash.version));
    for (index, (name, value)) in hash.parameters.iter().enumerate() {
        // Most in bounds, some just outside of them.
        let name = pick(&["m", "t", "p", "m", "t", "p", "x", "keyid"], *name);
        let value = match name {
            "m" => [7167, 7168, 19456, 1_048_576, 1_048_577, *value][*value as usize % 6],
            "x" | "keyid" => *value,
            _ => [0, 1, 2, 16, 17, *value][*value as usize % 6],
        };
        let before = if index == 0 { '$' } else { ',' };
        text.push_str(&format!("{before}{name}={value}"));
    }
    let encoded = |bytes: &[u8]| STANDARD_NO_PAD.encode(&bytes[..bytes.len().min(80)]);
    text.push_str(&format!("${}", encoded(&hash.salt)));
    if let Some(output) = &hash.output {
        text.push_str(&format!("${}", encoded(output)));
    }
    text + &hash.rest
}

fn password_hash(text: &str) {
    let principal = || Principal::new("basic", "", "ann");
    let outcome = BasicUsers::new().and("ann", text, principal());
    match is_hash_within_bounds(text) {
        Some(expected) => assert_eq!(outcome.is_ok(), expected, "{text}"),
        // Parameters that argon2 may or may not know.
        None => {}
    }
    match outcome {
        Ok(users) => {
            let twice = users.and("ben", text, principal()).expect("the costs are the same");
            assert!(Basic::new(twice).is_ok(), "nothing can be built of {text}");
        }
        Err(error) => assert_eq!((error.provider(), error.option()), ("basic", "hash"), "{text}"),
    }
}

/// Nothing where there are parameters beside the three.
fn is_hash_within_bounds(text: &str) -> Option<bool> {
    let fields: Vec<&str> = text.split('$').collect();
    let (parameters, salt, output) = match *fields {
        ["", "argon2id", "v=19", salt, output] if !salt.contains('=') => ("", salt, output),
        ["", "argon2id", "v=19", parameters, salt, output] if !parameters.is_empty() => (parameters, salt, output),
        _ => return Some(false),
    };
    let decoded = |text: &str| STANDARD_NO_PAD.decode(text).map_or(0, |bytes| bytes.len());
    if !(8..=48).contains(&decoded(salt)) || !(16..=64).contains(&decoded(output)) {
        return Some(false);
    }
    let (mut memory, mut passes, mut lanes) = (19_456, 2, 1);
    let mut seen = Vec::new();
    for parameter in parameters.split(',').filter(|_| !parameters.is_empty()) {
        let Some((name, digits)) = parameter.split_once('=') else { return Some(false) };
        if seen.contains(&name) {
            return Some(false);
        }
        seen.push(name);
        let kept = match name {
            "m" => &mut memory,
            "t" => &mut passes,
            "p" => &mut lanes,
            _ => return None,
        };
        let is_plain = digits == "0" || (!digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(number) = digits.parse::<u32>().ok().filter(|_| is_plain) else { return Some(false) };
        *kept = number;
    }
    Some((7168..=1_048_576).contains(&memory) && (1..=16).contains(&passes) && (1..=16).contains(&lanes))
}

fn stored_key(text: &str) {
    let digits = text.strip_prefix("hmac-sha256$");
    let is_one = digits.is_some_and(|digits| {
        digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    });
    let table = ApiKeyTable::new().and(text, Principal::new("api key", "", "ann"));
    assert_eq!(table.is_ok(), is_one, "{text}");
}

/// What is stored of a key lets in who presents the key.
fn key_of_a_caller(key: &str) {
    let pepper = Pepper::new(&[7; 32]).expect("the pepper is long enough");
    let stored = pepper.stored_form(key);
    let is_fit = (16..=512).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    assert_eq!(stored.is_ok(), is_fit, "{key}");
    let Ok(stored) = stored else { return };
    assert!(!stored.contains(key), "{key} is stored as {stored}");
    let table = ApiKeyTable::new().and(&stored, Principal::new("api key", "", "ann")).expect("what was made is taken");
    let provider = ApiKeys::new(pepper, table);
    let value = HeaderValue::from_str(key).expect("visible characters are a header");
    let headers = HeaderMap::from_iter([(HeaderName::from_static("x-api-key"), value)]);
    let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
    let outcome = provider.immediate(&AuthRequest::new(&method, &uri, &headers));
    assert!(matches!(outcome, Some(Ok(ann)) if ann.subject() == "ann"), "{key} does not let in");
}
