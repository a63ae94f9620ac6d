//! Validated JSON text that is carried without being taken apart.
//!
//! Why here: arguments, schemas and structured results pass through us; decoding and encoding them again would cost
//! time and change digits, member order and unknown members.
//! Invariants: the bytes are one complete, well-formed JSON value in UTF-8; cloning copies no text.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One JSON value as text, usually a slice of the body it arrived in.
///
/// Numbers keep every digit and objects keep their order and duplicate members, because nothing is decoded.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(ByteString);

impl RawJson {
    /// The text `null`.
    pub const NULL: Self = Self(ByteString::from_static("null"));
    /// The text `{}`.
    pub const EMPTY_OBJECT: Self = Self(ByteString::from_static("{}"));

    /// Takes JSON text over after checking that it is exactly one JSON value (surrounding white space is dropped).
    ///
    /// # Errors
    /// The parser's complaint when the text is not one JSON value in UTF-8.
    pub fn from_bytes(text: Bytes) -> Result<Self, serde_json::Error> {
        let text = ByteString::try_from(text).map_err(|error| {
            serde::de::Error::custom(format_args!("it is not UTF-8 from byte {} on", error.valid_up_to()))
        })?;
        let value: &RawValue = serde_json::from_str(&text)?;
        Ok(Self(text.slice_ref(value.get())))
    }

    /// Encodes a value.
    ///
    /// # Errors
    /// When the value cannot be written as JSON (a map with keys that are not strings, for example).
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        // Without the room that was left for more: the text may be kept for long.
        serde_json::to_string(value).map(|text| Self(ByteString::from(text.into_boxed_str())))
    }

    /// A slice of `frame` that the parser has just delimited as one value.
    pub(crate) fn slice_of(frame: &ByteString, value: &RawValue) -> Self {
        Self(frame.slice_ref(value.get()))
    }

    /// The text as what its parts are slices of.
    pub(crate) fn shared_text(&self) -> &ByteString {
        &self.0
    }

    /// A part of this value that the parser has just delimited, sharing the same memory.
    ///
    /// # Panics
    /// Never for a `RawValue` borrowed from [`Self::as_str`]; a foreign one is copied instead.
    #[must_use]
    pub fn part(&self, value: &RawValue) -> Self {
        let (outer, inner) = (self.as_bytes().as_ptr_range(), value.get().as_bytes().as_ptr_range());
        if outer.start <= inner.start && inner.end <= outer.end {
            Self(self.0.slice_ref(value.get()))
        } else {
            Self(ByteString::from(value.get()))
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The text as shared bytes.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }

    /// Decodes the value.
    ///
    /// # Errors
    /// When the value does not have the shape of `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Decodes the value, borrowing from its text.
    ///
    /// # Errors
    /// When the value does not have the shape of `T`.
    pub fn parse_borrowed<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// What kind of JSON value this is, seen from its first byte.
    #[must_use]
    pub fn kind(&self) -> JsonKind {
        match self.as_bytes().first() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b't' | b'f') => JsonKind::Boolean,
            Some(b'n') | None => JsonKind::Null,
            Some(_) => JsonKind::Number,
        }
    }

    /// The decoded text, if the value is a string; borrowed where it holds no escapes.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, str>> {
        text_of(self.as_str())
    }

    /// Whether the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.kind() == JsonKind::Object
    }
}

/// The decoded text of a JSON string that the parser has delimited.
pub(crate) fn text_of(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    // Names and versions are short, and a search takes longer to begin than they are.
    let has_escape = match inner.len() {
        0..=24 => inner.bytes().any(|byte| byte == b'\\'),
        _ => memchr::memchr(b'\\', inner.as_bytes()).is_some(),
    };
    if !has_escape {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(json).ok().map(Cow::Owned)
}

/// The six kinds of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "JSON has these six and no more")]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number of any size.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl JsonKind {
    /// The kind with its article, for messages: `an object`.
    #[must_use]
    pub fn with_article(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Default for RawJson {
    fn default() -> Self {
        Self::NULL
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // One scan of the text: the safe way to a `RawValue`, which is what serde_json copies verbatim.
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(ByteString::from(String::from(Box::<str>::from(raw)))))
    }
}

impl From<&serde_json::Value> for RawJson {
    fn from(value: &serde_json::Value) -> Self {
        // Writing a `Value` into memory cannot fail: its keys are strings and its numbers are finite.
        Self(ByteString::from(value.to_string()))
    }
}

impl From<serde_json::Value> for RawJson {
    fn from(value: serde_json::Value) -> Self {
        Self::from(&value)
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(value: Box<RawValue>) -> Self {
        Self(ByteString::from(String::from(Box::<str>::from(value))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_digit_for_digit() {
        let text = r#"{"big":18446744073709551616,"exp":1e400,"one":1.0,"s":"\ud800"}"#;
        let raw = RawJson::from_bytes(Bytes::from(format!("  {text}\n"))).unwrap();
        assert_eq!(raw.as_str(), text);
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
        let again: RawJson = serde_json::from_str(text).unwrap();
        assert_eq!(again, raw);
    }

    #[test]
    fn text_that_is_not_one_value_is_refused() {
        for bad in ["", "{", "{} {}", "nul", "\u{feff}{}"] {
            assert!(RawJson::from_bytes(Bytes::from(bad)).is_err(), "{bad:?}");
        }
        assert!(RawJson::from_bytes(Bytes::from_static(b"\"\xff\"")).is_err());
    }

    #[test]
    fn a_part_shares_the_memory_of_its_whole() {
        let raw = RawJson::from_bytes(Bytes::from_static(b"{\"a\": [1, 2]}")).unwrap();
        #[derive(Deserialize)]
        struct Outer<'a> {
            #[serde(borrow)]
            a: &'a RawValue,
        }
        let outer: Outer<'_> = raw.parse_borrowed().unwrap();
        let part = raw.part(outer.a);
        assert_eq!(part.as_str(), "[1, 2]");
        assert_eq!(part.as_bytes().as_ptr(), raw.as_bytes()[6..].as_ptr());
    }
}
