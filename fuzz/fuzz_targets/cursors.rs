//! Cursors: a list starts behind the entry that a cursor names, refuses what is no cursor of its own, and pages to its end.
#![no_main]

use arbitrary::Arbitrary;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use libfuzzer_sys::fuzz_target;
use mcp_core::{Principal, Scope};
use mcp_fuzz::{ENTRIES, answer, modern, send, shake_hands, within};
use serde_json::{Value, json};

#[derive(Arbitrary, Debug)]
struct Input {
    list: u8,
    is_modern: bool,
    cursor: Cursor,
}

#[derive(Arbitrary, Debug)]
enum Cursor {
    Json(Vec<u8>),
    Text(String),
    Encoded(Vec<u8>),
    After { letter: u8, entry: u64 },
}

const LISTS: [(&str, &str, u8); 4] = [
    ("tools/list", "tools", b't'),
    ("resources/list", "resources", b'r'),
    ("resources/templates/list", "resourceTemplates", b'm'),
    ("prompts/list", "prompts", b'p'),
];

fuzz_target!(|input: Input| {
    let (method, member, letter) = LISTS[usize::from(input.list) % LISTS.len()];
    let cursor = match &input.cursor {
        Cursor::Json(text) => match serde_json::from_slice(text) {
            Ok(value) => value,
            Err(_) => return,
        },
        Cursor::Text(text) => Value::from(text.as_str()),
        Cursor::Encoded(plain) => URL_SAFE_NO_PAD.encode(plain).into(),
        Cursor::After { letter, entry } => {
            let letter = LISTS[usize::from(*letter) % LISTS.len()].2;
            let plain = [&[letter][..], &entry.to_be_bytes()].concat();
            URL_SAFE_NO_PAD.encode(plain).into()
        }
    };
    let after = match &cursor {
        Value::Null => Some(0),
        Value::String(text) => named(text, letter),
        _ => None,
    };
    within(|server| {
        let scope = if input.is_modern { Scope::Single } else { Scope::Connection };
        let peer = server.peer(Principal::anonymous(), scope);
        if !input.is_modern {
            shake_hands(server, &peer);
        }
        let page = |cursor: &Value| {
            let params = json!({ "cursor": cursor });
            let params = if input.is_modern { modern(params) } else { params };
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            answer(server, send(server, &peer, &request)).outcome
        };
        let (mut cursor, mut listed) = (cursor, 0);
        loop {
            let result: Value = match (page(&cursor), after) {
                (Ok(result), Some(_)) => result.parse().expect("a result is JSON"),
                (Err(error), None) => {
                    assert_eq!(error.code.0, -32602, "{error:?}");
                    return;
                }
                (outcome, after) => panic!("{cursor} names {after:?} and gave {outcome:?}"),
            };
            let entries = result[member].as_array().expect("a page has entries").len();
            listed += entries;
            assert!(entries <= 2 && listed <= ENTRIES, "{listed} entries of {method}");
            match result.get("nextCursor") {
                Some(next) => cursor = next.clone(),
                None => break,
            }
        }
        let passed = usize::try_from(after.unwrap_or_default()).unwrap_or(usize::MAX);
        assert_eq!(listed, ENTRIES.saturating_sub(passed), "{method} after {after:?}");
    });
});

/// The number of the entry that a cursor names, counted from one.
fn named(cursor: &str, letter: u8) -> Option<u64> {
    let plain = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let number = plain.strip_prefix(&[letter])?;
    number.try_into().ok().map(u64::from_be_bytes)
}
