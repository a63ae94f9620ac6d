//! Digests of JSON values that do not depend on how the value was written.
//!
//! Why here: a retried request carries the same arguments, but another JSON writer may have ordered or spaced them
//! differently; a question asked again is the same question.
//! Invariants: equal values give equal digests whatever the order of members, white space and escapes; numbers keep every
//! digit, and `1.0` equals `1`.

use std::collections::BTreeMap;

use mcp_wire::{RawJson, RequestId};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
pub(crate) type Digest = [u8; 32];

/// The digest of a JSON value.
pub(crate) fn of(value: &RawJson) -> Digest {
    let mut hash = Sha256::new();
    update(&mut hash, value.as_str());
    hash.finalize().into()
}

/// Feeds a value with its kind and lengths, so that no two values feed the same bytes. Recursion is bounded by the depth
/// limit of received messages.
fn update(hash: &mut Sha256, json: &str) {
    match json.as_bytes().first() {
        Some(b'{') => {
            let Ok(members) = serde_json::from_str::<Members<'_>>(json) else { return broken(hash, json) };
            hash.update(b"{");
            length(hash, members.0.len());
            for (name, value) in &members.0 {
                text(hash, name);
                update(hash, value.get());
            }
        }
        Some(b'[') => {
            let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) else { return broken(hash, json) };
            hash.update(b"[");
            length(hash, items.len());
            for item in items {
                update(hash, item.get());
            }
        }
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(decoded) => {
                hash.update(b"\"");
                text(hash, &decoded);
            }
            Err(_) => broken(hash, json),
        },
        Some(b'-' | b'0'..=b'9') => {
            hash.update(b"#");
            match RequestId::from_json(json) {
                // The one place that knows `1`, `1.0` and `10e-1` as one integer.
                Some(integer) => text(hash, &integer.to_string()),
                None => text(hash, json),
            }
        }
        _ => broken(hash, json),
    }
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Members<'a>(#[serde(borrow)] BTreeMap<String, &'a RawValue>);

/// Literals, and what cannot be decoded (a lone surrogate): the text itself.
fn broken(hash: &mut Sha256, json: &str) {
    hash.update(b"=");
    text(hash, json);
}

fn text(hash: &mut Sha256, text: &str) {
    length(hash, text.len());
    hash.update(text.as_bytes());
}

fn length(hash: &mut Sha256, length: usize) {
    hash.update(u64::try_from(length).unwrap_or(u64::MAX).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(json: &'static str) -> Digest {
        of(&RawJson::from_bytes(bytes::Bytes::from_static(json.as_bytes())).unwrap())
    }

    #[test]
    fn spelling_does_not_count() {
        let reference = digest(r#"{"a":[1,"x",null],"b":{"c":true}}"#);
        for same in
            [r#"{ "b": {"c": true}, "a": [1.0, "\u0078", null] }"#, "{\n\"a\":[10e-1,\"x\",null],\"b\":{\"c\":true}}"]
        {
            assert_eq!(digest(same), reference, "{same}");
        }
    }

    #[test]
    fn values_do_count() {
        let values = [
            "{}",
            "[]",
            "null",
            "\"null\"",
            "0",
            "\"0\"",
            "[[]]",
            "[{}]",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"["a",1]"#,
            r#"{"a":{"b":1}}"#,
            "[1,2]",
            "[12]",
            "18446744073709551616",
            "18446744073709551617",
            "1.5",
            "\"\\ud800\"",
        ];
        for (index, one) in values.iter().enumerate() {
            for other in &values[index + 1..] {
                assert_ne!(digest(one), digest(other), "{one} {other}");
            }
        }
    }
}
