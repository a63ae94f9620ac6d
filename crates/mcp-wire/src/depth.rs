//! How deeply a JSON text is nested, found in one scan before anything is decoded.
//!
//! Why here: the parser skips raw values without counting their depth, and whoever decodes them later recurses.
//! Invariants: linear, no allocation, never wrong about brackets inside strings.

/// Whether arrays and objects are nested deeper than `limit` anywhere in `text`.
///
/// Text that is not JSON gets some answer; the parser refuses it anyway.
pub(crate) fn exceeds(text: &[u8], limit: usize) -> bool {
    // Most messages have too few brackets, and counting them takes whole vectors at a time.
    if opening(text) <= limit {
        return false;
    }
    let mut depth = 0_usize;
    let mut position = 0;
    while let Some(&byte) = text.get(position) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => position = string_end(text, position + 1),
            _ => {}
        }
        position += 1;
    }
    false
}

/// How many brackets open in `text`, inside strings or not.
fn opening(text: &[u8]) -> usize {
    // One bit apart, and no other byte becomes either. Pieces this long keep their sum in a byte, which vectors well.
    let piece = |piece: &[u8]| piece.iter().map(|byte| u8::from(byte | 0x20 == b'{')).sum::<u8>();
    text.chunks(usize::from(u8::MAX)).map(|chunk| usize::from(piece(chunk))).sum()
}

/// The position of the quotation mark that ends a string whose content starts at `from`; the end of the text if none.
fn string_end(text: &[u8], mut from: usize) -> usize {
    while let Some(at) = memchr::memchr2(b'"', b'\\', text.get(from..).unwrap_or_default()) {
        let found = from + at;
        if text.get(found) == Some(&b'"') {
            return found;
        }
        from = found + 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_inclusive() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(!exceeds(nested(64).as_bytes(), 64));
        assert!(exceeds(nested(65).as_bytes(), 64));
    }

    #[test]
    fn brackets_inside_strings_do_not_count() {
        assert!(!exceeds(br#"{"a":"[[[[","b\"[[[":"\\","c":"}"}"#, 1));
        assert!(exceeds(br#"{"a":"\\\"","b":{"c":1}}"#, 1));
    }

    #[test]
    fn siblings_do_not_add_up() {
        assert!(!exceeds(b"[[],[],{},[]]", 2));
    }

    proptest::proptest! {
        #[test]
        fn it_agrees_with_the_decoded_value(value in values()) {
            let depth = depth_of(&value);
            let text = value.to_string();
            proptest::prop_assert!(!exceeds(text.as_bytes(), depth));
            proptest::prop_assert!(depth == 0 || exceeds(text.as_bytes(), depth - 1));
        }

        #[test]
        fn no_text_makes_it_panic(text in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            exceeds(&text, 3);
        }
    }

    fn depth_of(value: &serde_json::Value) -> usize {
        match value {
            serde_json::Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
            serde_json::Value::Object(members) => 1 + members.values().map(depth_of).max().unwrap_or(0),
            _ => 0,
        }
    }

    fn values() -> impl proptest::strategy::Strategy<Value = serde_json::Value> {
        use proptest::prelude::*;
        let leaf =
            prop_oneof![Just(serde_json::Value::Null), "[\\[\\]{}\"\\\\a]{0,8}".prop_map(serde_json::Value::from)];
        leaf.prop_recursive(6, 64, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                proptest::collection::btree_map("[\\[{\"\\\\a]{0,4}", inner, 0..4)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }
}
