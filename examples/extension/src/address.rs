//! Addresses of skills and their files, and what may be part of one.
//!
//! Why here: a name that is fine in a file system need not be fine in an address, nor the other way round.
//! Invariants: an address leads to one file; no segment climbs out of its folder.
//! Spec: skills extension, "Resource Mapping"

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What RFC 3986 leaves as it is in every place.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The address of a folder or file by its path, of which each segment is encoded.
pub(crate) fn of(path: &str) -> String {
    let mut address = String::from("skill://");
    for (index, segment) in path.split('/').enumerate() {
        if index > 0 {
            address.push('/');
        }
        address.extend(utf8_percent_encode(segment, ENCODED));
    }
    address
}

/// Whether a skill can have this name: 1 to 64 lower-case letters, digits and single hyphens inside.
pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |each: u8| each.is_ascii_lowercase() || each.is_ascii_digit() || each == b'-';
    (1..=64).contains(&name.len())
        && name.bytes().all(allowed)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Whether a folder above a skill can have this name: as a skill, and with dots and underscores.
pub(crate) fn is_prefix(segment: &str) -> bool {
    let allowed = |each: u8| each.is_ascii_lowercase() || each.is_ascii_digit() || b"-._".contains(&each);
    (1..=64).contains(&segment.len()) && segment.bytes().all(allowed) && !is_climbing(segment)
}

/// Whether a path below a skill is one that stays there: at most 1,024 bytes in segments that say something.
pub(crate) fn is_file_path(path: &str) -> bool {
    let fits = |segment: &str| {
        !segment.is_empty()
            && !is_climbing(segment)
            && !segment.contains(|each: char| each == '\\' || each.is_control())
    };
    path.len() <= 1024 && path.split('/').all(fits)
}

fn is_climbing(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;

    use super::*;

    #[test]
    fn names_are_those_of_the_skill_format() {
        for good in ["a", "7", "pdf-processing", "a-1-b", &"x".repeat(64)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", "a--b", "A", "a_b", "a.b", "ä", "a b", &"x".repeat(65)] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(is_prefix("acme.v1_2"));
        for bad in ["", ".", "..", "Acme", "a/b", "a%20"] {
            assert!(!is_prefix(bad), "{bad}");
        }
    }

    #[test]
    fn paths_that_leave_the_skill_are_refused() {
        assert!(is_file_path("SKILL.md") && is_file_path("a b/ü.md") && is_file_path("a/..b"));
        for bad in ["", "/a", "a/", "a//b", "..", "../a", "a/../b", "./a", "a\\b", "C:\\a", "a\0b", "a\nb"] {
            assert!(!is_file_path(bad), "{bad:?}");
        }
        assert!(!is_file_path(&"x".repeat(1025)));
    }

    proptest::proptest! {
        #[test]
        fn an_address_is_plain_and_leads_back_to_its_path(path in "[^/\\x00]{1,12}(/[^/\\x00]{1,12}){0,3}") {
            let address = of(&path);
            proptest::prop_assert!(address.bytes().all(|each| each.is_ascii_graphic()));
            let rest = address.strip_prefix("skill://").unwrap_or_default();
            proptest::prop_assert_eq!(percent_decode_str(rest).decode_utf8_lossy(), path);
        }
    }
}
