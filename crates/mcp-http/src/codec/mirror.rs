//! Compares what routing headers say with what the body says.
//!
//! Why here: intermediaries route by the headers and the engine acts on the body; a request where the two differ
//! must not get further.
//! Invariants: comparing an unencoded text costs no allocation; messages hold at most 64 characters of the peer's.
//! Spec: 2026-07-28 basic/transports/streamable-http, "Value Encoding" and "Server Validation"

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// Why a header does not agree with the body. The texts leave out the header's name, which the caller knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// The body has a value and the header is absent.
    #[error("the header is missing, and the body has a value for it")]
    Missing,
    /// The header is present and the body has no value, or null.
    #[error("the header is present, and the body has no value for it; leave the header out")]
    Unexpected,
    /// The header was sent several times.
    #[error("the header is repeated; send it once")]
    Repeated,
    /// The header holds bytes that no value may hold unencoded.
    #[error("the header holds bytes outside printable ascii; send the value as `=?base64?...?=`")]
    NotPrintable,
    /// The text between the markers is not base64.
    #[error("the header is not valid base64 between `=?base64?` and `?=`; use the standard alphabet with padding")]
    NotBase64,
    /// The decoded bytes are not text.
    #[error("the header's base64 does not hold utf-8 text")]
    NotText,
    /// The two values differ.
    #[error("the header says `{header}` and the body says `{body}`; they must be equal")]
    Different {
        /// How the header's value begins.
        header: Excerpt,
        /// How the body's value begins.
        body: Excerpt,
    },
    /// The body's value cannot be mirrored at all.
    #[error("the body's value is an array or an object, which no header can mirror; leave the header out")]
    NotScalar,
}

/// The first 31 characters of a text, fit to be shown: control characters are replaced, a cut is marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt(Box<str>);

/// The only value of the header `name`, if it is there.
///
/// # Errors
///
/// [`Mismatch::Repeated`]: which of two values an intermediary went by cannot be known.
pub fn exactly_one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Mismatch> {
    if is_repeated(headers, name) { Err(Mismatch::Repeated) } else { Ok(headers.get(name)) }
}

/// Whether the header `name` has more than one value.
pub(super) fn is_repeated(headers: &HeaderMap, name: &HeaderName) -> bool {
    // Most requests repeat no header at all, which the map knows without looking anything up.
    headers.len() > headers.keys_len() && headers.get_all(name).iter().nth(1).is_some()
}

/// Whether a header that is never encoded (the version, the method) says `expected`.
///
/// # Errors
///
/// [`Mismatch::NotPrintable`] and [`Mismatch::Different`].
pub fn same_plain(header: &HeaderValue, expected: &str) -> Result<(), Mismatch> {
    if header.as_bytes() == expected.as_bytes() && expected.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    compare(plain(header)?, expected)
}

/// Whether a header that may be encoded (`Mcp-Name`, `Mcp-Param-*`) says `expected`.
///
/// # Errors
///
/// Those of [`decode`], and [`Mismatch::Different`].
pub fn same_text(header: &HeaderValue, expected: &str) -> Result<(), Mismatch> {
    compare(&decode(header)?, expected)
}

/// Whether a `Mcp-Param-*` header says the argument `value`.
///
/// Strings compare to the letter. Numbers compare by value and without rounding, in any form JSON has: `42`, `42.0` and
/// `4.2e1` are equal. Booleans are `true` and `false`.
///
/// # Errors
///
/// Those of [`decode`]; [`Mismatch::Different`]; [`Mismatch::Unexpected`] for null and [`Mismatch::NotScalar`] for an
/// array or an object.
pub fn same_parameter(header: &HeaderValue, value: &Value) -> Result<(), Mismatch> {
    let said = decode(header)?;
    match value {
        Value::String(text) => compare(&said, text),
        Value::Bool(true) => compare(&said, "true"),
        Value::Bool(false) => compare(&said, "false"),
        Value::Number(number) => {
            let number = number.to_string();
            match (Decimal::parse(&said), Decimal::parse(&number)) {
                (Some(said), Some(number)) if said == number => Ok(()),
                _ => Err(Mismatch::different(&said, &number)),
            }
        }
        Value::Null => Err(Mismatch::Unexpected),
        Value::Array(_) | Value::Object(_) => Err(Mismatch::NotScalar),
    }
}

/// The text a header value stands for: itself without surrounding spaces and tabs, or what is encoded in it.
///
/// A value is encoded if it begins with `=?base64?` and ends with `?=`, to the letter; with one of them only it is
/// itself. A tab inside is let through, as HTTP does.
///
/// # Errors
///
/// [`Mismatch::NotPrintable`], [`Mismatch::NotBase64`] and [`Mismatch::NotText`].
pub fn decode(header: &HeaderValue) -> Result<Cow<'_, str>, Mismatch> {
    let text = plain(header)?;
    let Some(encoded) = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = STANDARD.decode(encoded).map_err(|_| Mismatch::NotBase64)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Mismatch::NotText)
}

/// The header value that stands for `text`: itself where that is safe, else its base64 between the markers.
#[must_use]
pub fn encode(text: &str) -> Cow<'_, str> {
    let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let padded = text.starts_with(' ') || text.ends_with(' ');
    let looks_encoded = text.starts_with(PREFIX) && text.ends_with(SUFFIX);
    if printable && !padded && !looks_encoded {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(text)))
}

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// Printable ASCII and tabs, trimmed.
fn plain(header: &HeaderValue) -> Result<&str, Mismatch> {
    let text = header.to_str().map_err(|_| Mismatch::NotPrintable)?;
    Ok(text.trim_matches([' ', '\t']))
}

fn compare(header: &str, body: &str) -> Result<(), Mismatch> {
    if header == body { Ok(()) } else { Err(Mismatch::different(header, body)) }
}

impl Mismatch {
    fn different(header: &str, body: &str) -> Self {
        Self::Different { header: Excerpt::of(header), body: Excerpt::of(body) }
    }
}

impl Excerpt {
    fn of(text: &str) -> Self {
        const LENGTH: usize = 31;
        let shown = |character: char| if character.is_control() { char::REPLACEMENT_CHARACTER } else { character };
        let mut excerpt: String = text.chars().take(LENGTH).map(shown).collect();
        if text.chars().nth(LENGTH).is_some() {
            excerpt.push('…');
        }
        Self(excerpt.into())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A JSON number, compared by value without rounding: `0.<digits>` times ten to the power of `exponent`.
#[derive(Debug, Clone, Copy)]
struct Decimal<'a> {
    negative: bool,
    /// Before and after the point, together without zeros at either end.
    digits: (&'a str, &'a str),
    exponent: i64,
}

impl<'a> Decimal<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, power) = text.split_once(['e', 'E']).map_or((text, None), |(left, right)| (left, Some(right)));
        let (whole, part) = mantissa.split_once('.').map_or((mantissa, None), |(left, right)| (left, Some(right)));
        let well_formed = is_digits(whole)
            && (whole.len() == 1 || !whole.starts_with('0'))
            && part.is_none_or(is_digits)
            && power.is_none_or(|power| is_digits(power.strip_prefix(['+', '-']).unwrap_or(power)));
        if !well_formed {
            return None;
        }
        let mut digits = (whole.trim_start_matches('0'), part.unwrap_or_default().trim_end_matches('0'));
        let mut exponent = i64::try_from(digits.0.len()).ok()?;
        if digits.0.is_empty() {
            let significant = digits.1.trim_start_matches('0');
            exponent -= i64::try_from(digits.1.len() - significant.len()).ok()?;
            digits.1 = significant;
        }
        if digits.1.is_empty() {
            digits.0 = digits.0.trim_end_matches('0');
        }
        if digits == ("", "") {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        // An exponent beyond 64 bits makes no number that anybody could act on.
        let power = power.map_or(Some(0), |power| power.parse::<i64>().ok())?;
        Some(Self { negative, digits, exponent: exponent.checked_add(power)? })
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        let digits = |number: &Self| number.digits.0.bytes().chain(number.digits.1.bytes());
        self.negative == other.negative && self.exponent == other.exponent && digits(self).eq(digits(other))
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> HeaderValue {
        HeaderValue::from_bytes(text.as_bytes()).unwrap()
    }

    fn parameter(header: &str, json: &str) -> Result<(), Mismatch> {
        same_parameter(&value(header), &serde_json::from_str(json).unwrap())
    }

    /// The specification's examples, both ways.
    const EXAMPLES: [(&str, &str); 9] = [
        ("us-west1", "us-west1"),
        ("", ""),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("a\nb", "=?base64?YQpi?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("a\tb", "=?base64?YQli?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?half", "=?base64?half"),
    ];

    #[test]
    fn the_examples_encode_and_decode_as_specified() {
        for (text, header) in EXAMPLES {
            assert_eq!(encode(text), header);
            assert_eq!(decode(&value(header)).unwrap(), text);
            assert_eq!(same_text(&value(header), text), Ok(()));
        }
    }

    #[test]
    fn surrounding_blanks_do_not_count_but_the_case_does() {
        assert_eq!(same_text(&value(" \t echo \t"), "echo"), Ok(()));
        assert_eq!(same_plain(&value("  tools/call "), "tools/call"), Ok(()));
        assert!(matches!(same_plain(&value("Tools/Call"), "tools/call"), Err(Mismatch::Different { .. })));
        assert!(matches!(same_text(&value("Echo"), "echo"), Err(Mismatch::Different { .. })));
        assert!(matches!(same_text(&value("echo"), " echo "), Err(Mismatch::Different { .. })));
    }

    #[test]
    fn a_value_with_one_marker_or_in_another_case_is_itself() {
        for text in
            ["=?BASE64?YQ==?=", "=?base64?YQ==", "YQ==?=", "=?base64?=", "x=?base64?YQ==?=", "=?base64?YQ==?= x"]
        {
            assert_eq!(decode(&value(text)).unwrap(), text);
        }
        assert_eq!(decode(&value("=?base64??=")).unwrap(), "");
    }

    #[test]
    fn base64_is_strict() {
        for inner in ["YQ", "YQ=", "YQ===", "Y-_=", "YR==", "Y Q==", "Y\tQ==", "=", "YQ==YQ==", "?"] {
            assert_eq!(decode(&value(&format!("=?base64?{inner}?="))), Err(Mismatch::NotBase64), "{inner}");
        }
        assert_eq!(decode(&value("=?base64?/w==?=")), Err(Mismatch::NotText));
        assert_eq!(decode(&value("=?base64?7aCA?=")), Err(Mismatch::NotText), "a lone surrogate");
    }

    #[test]
    fn bytes_outside_printable_ascii_are_refused_and_a_tab_inside_is_not() {
        for bytes in [&b"caf\xc3\xa9"[..], b"\xff", b"a\xa0b"] {
            let header = HeaderValue::from_bytes(bytes).unwrap();
            assert_eq!(decode(&header), Err(Mismatch::NotPrintable));
            assert_eq!(same_plain(&header, "x"), Err(Mismatch::NotPrintable));
        }
        assert_eq!(decode(&value("a\tb")).unwrap(), "a\tb");
    }

    #[test]
    fn an_encoding_means_nothing_in_a_header_that_has_none() {
        let header = value("=?base64?dG9vbHMvY2FsbA==?=");
        assert_eq!(same_text(&header, "tools/call"), Ok(()));
        assert!(matches!(same_plain(&header, "tools/call"), Err(Mismatch::Different { .. })));
    }

    #[test]
    fn parameters_compare_by_their_json_type() {
        for (header, json) in [
            ("42", "42"),
            ("42.0", "42"),
            ("42", "42.00"),
            ("1e2", "100"),
            ("100", "1E+2"),
            ("1200e-2", "12"),
            ("0.001", "1e-3"),
            ("-7", "-7"),
            ("-0", "0"),
            ("0e99999999999999999999", "0.0"),
            ("9007199254740993", "9007199254740993"),
            ("=?base64?NDI=?=", "42"),
            ("true", "true"),
            (" false ", "false"),
            ("us", r#""us""#),
            ("42", r#""42""#),
            ("=?base64?4oKs?=", r#""\u20ac""#),
            ("", r#""""#),
        ] {
            assert_eq!(parameter(header, json), Ok(()), "{header} and {json}");
        }
        for (header, json) in [
            ("43", "42"),
            ("-42", "42"),
            ("420", "42"),
            ("4.2", "42"),
            ("042", "42"),
            ("+42", "42"),
            ("42.", "42"),
            ("0x2a", "42"),
            ("", "0"),
            ("1e", "1"),
            ("1e99999999999999999999", "1"),
            ("9007199254740992", "9007199254740993"),
            ("True", "true"),
            ("1", "true"),
            ("42.0", r#""42""#),
            ("true", r#""True""#),
        ] {
            let refused = parameter(header, json);
            assert!(matches!(refused, Err(Mismatch::Different { .. })), "{header} and {json}: {refused:?}");
        }
    }

    #[test]
    fn a_value_that_cannot_be_mirrored_matches_no_header() {
        assert_eq!(parameter("null", "null"), Err(Mismatch::Unexpected));
        for json in ["{}", "[]", "[1]"] {
            assert_eq!(parameter(json, json), Err(Mismatch::NotScalar), "{json}");
        }
    }

    #[test]
    fn a_repeated_header_is_refused_even_if_its_values_agree() {
        let name = HeaderName::from_static("mcp-name");
        let mut headers = HeaderMap::new();
        assert_eq!(exactly_one(&headers, &name), Ok(None));
        headers.append(&name, value("a"));
        assert_eq!(exactly_one(&headers, &name), Ok(Some(&value("a"))));
        headers.append(&name, value("a"));
        assert_eq!(exactly_one(&headers, &name), Err(Mismatch::Repeated));
    }

    #[test]
    fn a_message_shows_both_values_cut_short_and_without_control_characters() {
        let shown = same_text(&value("foo"), "b\r\nar").unwrap_err().to_string();
        assert_eq!(shown, "the header says `foo` and the body says `b\u{fffd}\u{fffd}ar`; they must be equal");
        let long = same_text(&value(&"h".repeat(5000)), &"世".repeat(5000)).unwrap_err().to_string();
        assert_eq!(long.matches('h').count() - "the header the they".matches('h').count(), 31);
        assert_eq!(long.matches('世').count(), 31);
        assert_eq!(long.matches('…').count(), 2);
    }

    proptest! {
        #[test]
        fn any_text_survives_the_way_through_a_header(text in any::<String>()) {
            let header = HeaderValue::from_str(&encode(&text)).unwrap();
            prop_assert_eq!(decode(&header).unwrap(), text.as_str());
            prop_assert_eq!(same_text(&header, &text), Ok(()));
            prop_assert_eq!(same_parameter(&header, &Value::from(text)), Ok(()));
        }

        #[test]
        fn texts_that_look_encoded_survive_too(text in "(=\\?base64\\?|\\?=|[a-zA-Z/+= ]){0,5}") {
            let header = HeaderValue::from_str(&encode(&text)).unwrap();
            prop_assert_eq!(decode(&header).unwrap(), text);
        }

        #[test]
        fn no_header_makes_a_comparison_panic(bytes in any::<Vec<u8>>(), digits in "[-+0-9.eE]{0,12}") {
            if let Ok(header) = HeaderValue::from_bytes(&bytes) {
                let _ = (decode(&header), same_text(&header, &digits), same_parameter(&header, &Value::from(0)));
            }
            let _ = same_parameter(&value(&digits), &Value::from(0));
        }

        #[test]
        fn integers_are_equal_exactly_when_their_values_are(one in -2000_i64..2000, two in -2000_i64..2000, zeros in 0_usize..4) {
            for form in [format!("{two}.{}", "0".repeat(zeros + 1)), format!("{two}{}e-{zeros}", "0".repeat(zeros))] {
                let same = same_parameter(&value(&form), &Value::from(one)).is_ok();
                prop_assert_eq!(same, one == two, "{} and {}", one, form);
            }
        }

        #[test]
        fn a_shifted_point_with_a_matching_power_is_the_same_number(digits in 1_u64.., shift in 1_usize..25) {
            let padded = format!("{digits:0>width$}", width = shift + 1);
            let (whole, part) = padded.split_at(padded.len() - shift);
            let shifted = format!("{whole}.{part}e{shift}");
            prop_assert_eq!(same_parameter(&value(&shifted), &Value::from(digits)), Ok(()), "{}", shifted);
        }
    }
}
