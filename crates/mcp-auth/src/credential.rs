//! Reads the credentials out of a request's headers.
//!
//! Why here: every provider tells "none", "malformed" and "another scheme" apart in the same way.
//! Invariants: pure; borrows from the headers or wipes what it copies; a credential that was sent twice is malformed.
//! Spec: 2026-07-28 basic/authorization, "Access Token Usage"; RFC 6750 2.1, RFC 7617 2, RFC 9110 11.4

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::AuthError;

/// The headers of a provider that reads no other.
pub(crate) static READ: [HeaderName; 1] = [AUTHORIZATION];

/// Bounds what is read for a caller that nobody knows yet: 16 KiB, about what a whole head may have.
const MAXIMUM_TOKEN: usize = 16 * 1024;

/// The token behind `Authorization: Bearer`.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<&str, AuthError> {
    let token = behind_scheme(headers, "Bearer")?;
    if token.len() > MAXIMUM_TOKEN || !is_b64token(token) {
        return Err(AuthError::Malformed);
    }
    std::str::from_utf8(token).map_err(|_| AuthError::Malformed)
}

/// RFC 6750 2.1: one or more characters, then any number of `=`.
pub(crate) fn is_b64token(token: &[u8]) -> bool {
    let padding = token.iter().rev().take_while(|byte| **byte == b'=').count();
    let (body, _) = token.split_at(token.len() - padding);
    !body.is_empty()
        && body
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/'))
}

/// A name and a password.
#[cfg(feature = "basic")]
pub(crate) struct Pair {
    text: zeroize::Zeroizing<String>,
    colon: usize,
}

#[cfg(feature = "basic")]
impl Pair {
    /// What `Authorization: Basic` holds, as UTF-8.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, AuthError> {
        use base64::Engine;
        use base64::engine::general_purpose::STANDARD;
        use zeroize::Zeroizing;

        /// Two names as long as such names get, so that nobody is hashed for longer.
        const MAXIMUM: usize = 2048;
        let encoded = behind_scheme(headers, "Basic")?;
        if encoded.len() > MAXIMUM {
            return Err(AuthError::Malformed);
        }
        let mut bytes = Zeroizing::new(vec![0; encoded.len()]);
        let length = STANDARD.decode_slice(encoded, &mut bytes).map_err(|_| AuthError::Malformed)?;
        let text = std::str::from_utf8(bytes.get(..length).unwrap_or_default()).map_err(|_| AuthError::Malformed)?;
        // RFC 7617 2: no control characters in either.
        let colon = text.find(':').filter(|_| !text.chars().any(char::is_control)).ok_or(AuthError::Malformed)?;
        Ok(Self { text: Zeroizing::new(text.to_owned()), colon })
    }

    pub(crate) fn name(&self) -> &str {
        self.text.split_at(self.colon).0
    }

    pub(crate) fn password(&self) -> &str {
        self.text.split_at(self.colon + 1).1
    }
}

/// The key in the header `name`, or behind `Authorization: ApiKey`. Both at once are malformed.
#[cfg(feature = "api-key")]
pub(crate) fn api_key<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a [u8], AuthError> {
    let named = only_value(headers, name);
    let key = match (named, behind_scheme(headers, "ApiKey")) {
        (Ok(value), Err(AuthError::Missing)) => value.as_bytes().trim_ascii(),
        (Err(AuthError::Missing), outcome) => outcome?,
        (Err(error), _) => return Err(error),
        (Ok(_), _) => return Err(AuthError::Malformed),
    };
    if is_api_key(key) { Ok(key) } else { Err(AuthError::Malformed) }
}

/// One to 512 visible ASCII characters.
#[cfg(feature = "api-key")]
pub(crate) fn is_api_key(key: &[u8]) -> bool {
    matches!(key.len(), 1..=512) && key.iter().all(u8::is_ascii_graphic)
}

/// What follows `scheme` in the `Authorization` header. Another scheme counts as no credentials (RFC 6750 3.1).
fn behind_scheme<'a>(headers: &'a HeaderMap, scheme: &str) -> Result<&'a [u8], AuthError> {
    let value = only_value(headers, &AUTHORIZATION)?.as_bytes();
    let (named, rest) = value.split_at(value.iter().position(|byte| *byte == b' ').unwrap_or(value.len()));
    if named.eq_ignore_ascii_case(scheme.as_bytes()) { Ok(rest.trim_ascii()) } else { Err(AuthError::Missing) }
}

fn only_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a HeaderValue, AuthError> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().ok_or(AuthError::Missing)?;
    if values.next().is_some() { Err(AuthError::Malformed) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;

    const KEY: HeaderName = HeaderName::from_static("x-api-key");

    fn headers(lines: &[(HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    fn authorization(lines: &[&str]) -> HeaderMap {
        headers(&lines.iter().map(|line| (AUTHORIZATION, *line)).collect::<Vec<_>>())
    }

    fn pair(line: &str) -> Result<(String, String), AuthError> {
        Pair::read(&authorization(&[line])).map(|pair| (pair.name().to_owned(), pair.password().to_owned()))
    }

    #[test]
    fn a_bearer_token_stands_behind_its_scheme_in_any_case() {
        for line in ["Bearer a.b-c_~+/==", "bearer a.b-c_~+/==", "BEARER   a.b-c_~+/==  "] {
            assert_eq!(bearer_token(&authorization(&[line])), Ok("a.b-c_~+/=="), "{line}");
        }
    }

    #[test]
    fn no_header_or_another_scheme_counts_as_no_credentials() {
        assert_eq!(bearer_token(&HeaderMap::new()), Err(AuthError::Missing));
        for line in ["Basic YTpi", "", "aaaa", "Bearerx aaaa"] {
            assert_eq!(bearer_token(&authorization(&[line])), Err(AuthError::Missing), "{line}");
        }
    }

    #[test]
    fn malformed_repeated_or_huge_tokens_are_malformed() {
        let huge = format!("Bearer {}", "a".repeat(MAXIMUM_TOKEN + 1));
        for lines in [
            &["Bearer"][..],
            &["Bearer "],
            &["Bearer a b"],
            &["Bearer =a"],
            &["Bearer a,b"],
            &["Bearer ä"],
            &["Bearer a", "Bearer a"],
            &["Bearer a", "Basic YTpi"],
            &[&huge],
        ] {
            assert_eq!(bearer_token(&authorization(lines)), Err(AuthError::Malformed), "{lines:?}");
        }
        assert!(bearer_token(&authorization(&[&huge[..huge.len() - 1]])).is_ok());
    }

    #[test]
    fn a_name_ends_at_the_first_colon_and_either_part_may_be_empty() {
        let basic = |text: &str| pair(&format!("Basic {}", STANDARD.encode(text)));
        for (text, name, password) in [
            ("ann:secret", "ann", "secret"),
            ("ann:a:b:", "ann", "a:b:"),
            (":", "", ""),
            ("änn:pässwörd", "änn", "pässwörd"),
        ] {
            assert_eq!(basic(text), Ok((name.to_owned(), password.to_owned())));
        }
        for text in ["", "ann", "ann:\0", "a\nn:b", "ann:\u{7f}"] {
            assert_eq!(basic(text), Err(AuthError::Malformed), "{text:?}");
        }
    }

    #[test]
    fn base64_that_is_none_or_holds_no_text_is_malformed() {
        let latin = format!("Basic {}", STANDARD.encode(b"ann:\xe4"));
        let huge = format!("Basic {}", STANDARD.encode(format!("ann:{}", "a".repeat(2048))));
        for line in ["Basic", "Basic !", "Basic YTpi=", "Basic YTp", "Basic YT pi", &latin, &huge] {
            assert_eq!(pair(line), Err(AuthError::Malformed), "{line}");
        }
        assert_eq!(pair("Bearer YTpi"), Err(AuthError::Missing));
    }

    #[test]
    fn an_api_key_comes_by_its_header_or_by_its_scheme_but_not_by_both() {
        let read = |lines: &[(HeaderName, &str)]| api_key(&headers(lines), &KEY).map(<[u8]>::to_vec);
        assert_eq!(read(&[(KEY, "k1")]), Ok(b"k1".to_vec()));
        assert_eq!(read(&[(AUTHORIZATION, "apikey k1")]), Ok(b"k1".to_vec()));
        assert_eq!(read(&[(KEY, "k1"), (AUTHORIZATION, "Bearer t")]), Ok(b"k1".to_vec()));
        assert_eq!(read(&[]), Err(AuthError::Missing));
        assert_eq!(read(&[(AUTHORIZATION, "Bearer t")]), Err(AuthError::Missing));
        let long = "k".repeat(513);
        for lines in [
            &[(KEY, "k1"), (AUTHORIZATION, "ApiKey k1")][..],
            &[(KEY, "k1"), (KEY, "k1")],
            &[(KEY, "k1"), (AUTHORIZATION, "Bearer t"), (AUTHORIZATION, "Bearer t")],
            &[(KEY, "")],
            &[(KEY, "a b")],
            &[(KEY, "ä")],
            &[(KEY, &long)],
            &[(AUTHORIZATION, "ApiKey")],
        ] {
            assert_eq!(read(lines), Err(AuthError::Malformed), "{lines:?}");
        }
    }

    proptest! {
        #[test]
        fn no_header_panics_and_what_is_read_is_what_was_sent(
            scheme in "(Bearer|Basic|ApiKey|[ -~]{0,8})",
            rest in proptest::collection::vec(any::<u8>(), 0..48),
        ) {
            let line = [scheme.as_bytes(), b" ", &rest].concat();
            let Ok(value) = HeaderValue::from_bytes(&line) else { return Ok(()) };
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.clone()), (KEY, value)]);
            let trimmed = line.trim_ascii_end();
            if let Ok(token) = bearer_token(&headers) {
                prop_assert!(trimmed.ends_with(token.as_bytes()) && is_b64token(token.as_bytes()));
            }
            if let Ok(pair) = Pair::read(&headers) {
                let whole = STANDARD.encode(format!("{}:{}", pair.name(), pair.password()));
                prop_assert!(trimmed.ends_with(whole.as_bytes()) && !pair.name().contains(':'));
            }
            if let Ok(key) = api_key(&headers, &KEY) {
                prop_assert!(is_api_key(key));
            }
        }

        #[test]
        fn every_pair_survives_its_encoding(name in "[^:\\p{C}]{0,20}", password in "\\PC{0,20}") {
            let line = format!("Basic {}", STANDARD.encode(format!("{name}:{password}")));
            prop_assert_eq!(pair(&line), Ok((name, password)));
        }
    }
}
