//! Request ids: strings or integers, echoed as they came.
//!
//! Why here: an id turned into a float or a string loses the answer it belongs to.
//! Invariants: `7`, `7.0` and `70e-1` are one id; `7` and `"7"` are two; integers keep every digit.
//! Spec: 2026-07-28 basic/index, "Requests"

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The id of a request, or any other token that is a string or an integer.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(Repr);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Repr {
    Integer(i64),
    /// Canonical digits of an integer outside `i64`.
    Digits(Arc<str>),
    Text(Arc<str>),
}

/// The most digits an integer id may have; JSON sets no bound, so we do.
const MOST_DIGITS: usize = 64;

impl RequestId {
    /// Reads an id from JSON text: a string, or a number whose value is an integer.
    ///
    /// `None` for anything else, a fraction and a string with a lone surrogate included.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        match text.as_bytes().first()? {
            b'"' => {
                let text = crate::raw::text_of(text)?;
                Some(Self(Repr::Text(Arc::from(&*text))))
            }
            b'-' | b'0'..=b'9' => integer(text).map(Self),
            _ => None,
        }
    }

    /// The integer, if this is one that fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match &self.0 {
            Repr::Integer(integer) => Some(*integer),
            Repr::Digits(_) | Repr::Text(_) => None,
        }
    }

    /// The string, if this is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Repr::Text(text) => Some(text),
            Repr::Integer(_) | Repr::Digits(_) => None,
        }
    }

    /// Appends the id as JSON.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>) {
        // Strings and integers always encode, and memory does not fail to be written.
        let _ = serde_json::to_writer(out, self);
    }
}

/// Normalizes a JSON number (`1e2`, `7.0`, `-0`) to an integer; `None` when it has a fraction or too many digits.
fn integer(text: &str) -> Option<Repr> {
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Repr::Integer(integer));
    }
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match magnitude.find(['e', 'E']) {
        Some(at) => (magnitude.get(..at)?, magnitude.get(at + 1..)?.parse::<i32>().ok()?),
        None => (magnitude, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // The decimal point stands after `point` of these digits.
    let digits = format!("{whole}{fraction}");
    let point = i64::try_from(whole.len()).ok()? + i64::from(exponent);
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some(Repr::Integer(0));
    }
    let leading = digits.len() - significant.len();
    let significant = significant.trim_end_matches('0');
    let integral = usize::try_from(point.checked_sub(i64::try_from(leading).ok()?)?).ok()?;
    if integral < significant.len() || integral > MOST_DIGITS {
        return None;
    }
    let sign = if negative { "-" } else { "" };
    let canonical = format!("{sign}{significant}{}", "0".repeat(integral - significant.len()));
    Some(match canonical.parse::<i64>() {
        Ok(integer) => Repr::Integer(integer),
        Err(_) => Repr::Digits(Arc::from(canonical)),
    })
}

impl From<i64> for RequestId {
    fn from(id: i64) -> Self {
        Self(Repr::Integer(id))
    }
}

impl From<&str> for RequestId {
    fn from(id: &str) -> Self {
        Self(Repr::Text(Arc::from(id)))
    }
}

impl fmt::Display for RequestId {
    /// Shows `7` and `"7"` apart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Integer(integer) => integer.fmt(f),
            Repr::Digits(digits) => f.write_str(digits),
            Repr::Text(text) => fmt::Debug::fmt(text, f),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Repr::Integer(integer) => serializer.serialize_i64(*integer),
            Repr::Digits(digits) => {
                let raw: &RawValue = serde_json::from_str(digits).map_err(serde::ser::Error::custom)?;
                raw.serialize(serializer)
            }
            Repr::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    /// From JSON text only: a buffered value has already lost the digits of a large integer.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_json(raw.get()).ok_or_else(|| serde::de::Error::custom("expected a string or an integer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(text: &str) -> Option<String> {
        RequestId::from_json(text).map(|id| serde_json::to_string(&id).unwrap())
    }

    #[test]
    fn integers_in_any_spelling_are_one_id() {
        for (text, expected) in [
            ("7", "7"),
            ("7.0", "7"),
            ("7.000e0", "7"),
            ("70e-1", "7"),
            ("0.7e1", "7"),
            ("1e2", "100"),
            ("1E+2", "100"),
            ("-0", "0"),
            ("0e99999999", "0"),
            ("-12.50e1", "-125"),
            ("9007199254740993", "9007199254740993"),
            ("9223372036854775808", "9223372036854775808"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ] {
            assert_eq!(echo(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_integer_and_no_string_is_no_id() {
        for text in
            ["7.5", "1e-1", "null", "true", "{}", "[]", "1e400", "-1e65", "\"\\ud800\"", "0.0000001", "1e99999999999"]
        {
            assert_eq!(echo(text), None, "{text}");
        }
    }

    #[test]
    fn a_number_and_its_digits_as_a_string_are_two_ids() {
        assert_ne!(RequestId::from(7), RequestId::from("7"));
        assert_eq!(echo("\"7\"").as_deref(), Some("\"7\""));
        assert_eq!(echo("\"\"").as_deref(), Some("\"\""));
        assert_eq!(RequestId::from("7").to_string(), "\"7\"");
    }

    proptest::proptest! {
        #[test]
        fn every_integer_is_echoed(value in proptest::num::i64::ANY) {
            proptest::prop_assert_eq!(echo(&value.to_string()), Some(value.to_string()));
            proptest::prop_assert_eq!(echo(&format!("{value}.0")), Some(value.to_string()));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+0-9.eE\"\\\\u]{0,24}") {
            let _ = RequestId::from_json(&text);
        }
    }
}
