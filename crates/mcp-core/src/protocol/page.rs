//! Cursors of lists.
//!
//! Why here: every list pages by the same rule.
//! Invariants: a cursor names the last entry that was shown, so entries that survive a change are neither skipped nor
//! repeated; a cursor of one list is refused by another.
//! Spec: 2026-07-28 server/utilities/pagination, "Pagination Model"

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_wire::{RawJson, RpcError};

/// Which list a cursor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl ListKind {
    const fn letter(self) -> u8 {
        match self {
            Self::Tools => b't',
            Self::Resources => b'r',
            Self::Templates => b'm',
            Self::Prompts => b'p',
        }
    }
}

/// The cursor after the entry that was registered as number `sequence`.
pub(crate) fn cursor(kind: ListKind, sequence: u64) -> String {
    let mut plain = vec![kind.letter()];
    plain.extend_from_slice(&sequence.to_be_bytes());
    URL_SAFE_NO_PAD.encode(plain)
}

/// The registration number after which a page starts; 0 for the first page.
///
/// # Errors
/// -32602 when the cursor is not one that this list gave out.
pub(crate) fn start(kind: ListKind, cursor: Option<&RawJson>) -> Result<u64, RpcError> {
    let Some(cursor) = cursor.filter(|cursor| cursor.as_str() != "null") else { return Ok(0) };
    let refuse = || RpcError::invalid_params("\"cursor\" must be a \"nextCursor\" that this list returned");
    let text = cursor.text().ok_or_else(refuse)?;
    let plain = URL_SAFE_NO_PAD.decode(text.as_bytes()).map_err(|_| refuse())?;
    match plain.split_first() {
        Some((&letter, number)) if letter == kind.letter() => {
            number.try_into().map(u64::from_be_bytes).map_err(|_| refuse())
        }
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::from_serialize(text).unwrap()
    }

    proptest::proptest! {
        #[test]
        fn a_cursor_leads_back_to_its_entry(sequence in proptest::num::u64::ANY) {
            let cursor = raw(&cursor(ListKind::Tools, sequence));
            proptest::prop_assert_eq!(start(ListKind::Tools, Some(&cursor)), Ok(sequence));
            proptest::prop_assert!(start(ListKind::Prompts, Some(&cursor)).is_err());
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,24}") {
            let _ = start(ListKind::Tools, Some(&raw(&text)));
        }
    }

    #[test]
    fn what_no_list_returned_is_refused() {
        for bad in ["", "x", "dA", "dAAAAAAAAAAAAA", "!!!!"] {
            assert!(start(ListKind::Tools, Some(&raw(bad))).is_err(), "{bad}");
        }
        assert!(start(ListKind::Tools, Some(&RawJson::EMPTY_OBJECT)).is_err());
        assert_eq!(start(ListKind::Tools, None), Ok(0));
    }
}
