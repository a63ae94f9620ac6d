//! How far a request is, and the numbers it is told in.
//!
//! Why here: either side reports progress, and the token must come back exactly as it was given.
//! Invariants: a number that JSON does not have (infinite, not a number) is an error, never text; whole numbers are
//! written without a fraction, because some readers tell `50` and `50.0` apart.
//! Spec: 2026-07-28 basic/utilities/progress, "Progress Flow"

use std::fmt;

use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};

use crate::types::MetaObject;
use crate::{RawJson, RequestId};

/// What ties a progress notification to its request: a string or an integer, chosen by whoever sent the request.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgressToken(RequestId);

impl ProgressToken {
    /// Reads a token; `None` for anything that is neither a string nor an integer.
    #[must_use]
    pub fn from_json(json: &RawJson) -> Option<Self> {
        RequestId::from_json(json.as_str()).map(Self)
    }

    /// The token as an id: both are strings or integers.
    #[must_use]
    pub fn as_id(&self) -> &RequestId {
        &self.0
    }
}

impl From<RequestId> for ProgressToken {
    fn from(id: RequestId) -> Self {
        Self(id)
    }
}

impl From<i64> for ProgressToken {
    fn from(token: i64) -> Self {
        Self(RequestId::from(token))
    }
}

impl From<&str> for ProgressToken {
    fn from(token: &str) -> Self {
        Self(RequestId::from(token))
    }
}

impl fmt::Debug for ProgressToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for ProgressToken {
    /// Shows `7` and `"7"` apart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Parameters of `notifications/progress`.
///
/// Encoding fails when `progress` or `total` is not a finite number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgressParams {
    /// The token that the request carried.
    pub progress_token: ProgressToken,
    /// How much is done, in the sender's own unit; grows with every notification.
    #[serde(serialize_with = "serialize_number")]
    pub progress: f64,
    /// How much there is to do, if known, in the same unit.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "serialize_optional_number")]
    pub total: Option<f64>,
    /// What is going on, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Metadata of the notification.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ProgressParams {
    /// Progress without a known end.
    #[must_use]
    pub fn new(token: ProgressToken, progress: f64) -> Self {
        Self { progress_token: token, progress, total: None, message: None, meta: None }
    }

    setters! {
        /// Says how much there is to do.
        with_total(total: f64);
        /// Says what is going on.
        with_message(message: String);
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

/// Every whole number up to this one has a double of its own, so turning it into an integer loses nothing.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Writes a number as people write it: `50` and `0.5`.
///
/// # Errors
/// When JSON has no such number.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(super) fn serialize_number<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if !number.is_finite() {
        return Err(S::Error::custom(format!("{number} is no JSON number")));
    }
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within the range of i64")]
        return serializer.serialize_i64(*number as i64);
    }
    serializer.serialize_f64(*number)
}

/// The same for a member that may be absent.
///
/// # Errors
/// When JSON has no such number.
#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
pub(super) fn serialize_optional_number<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => serialize_number(number, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(progress: f64) -> Option<String> {
        let text = serde_json::to_string(&ProgressParams::new(ProgressToken::from(1), progress)).ok()?;
        Some(text.strip_prefix(r#"{"progressToken":1,"progress":"#)?.strip_suffix('}')?.to_owned())
    }

    #[test]
    fn whole_numbers_are_written_without_a_fraction() {
        for (number, expected) in [
            (50.0, "50"),
            (-3.0, "-3"),
            (-0.0, "0"),
            (0.5, "0.5"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (-9_007_199_254_740_992.0, "-9007199254740992"),
        ] {
            assert_eq!(written(number).as_deref(), Some(expected));
        }
        assert_eq!(written(1e300).unwrap().parse::<f64>().unwrap(), 1e300);
    }

    #[test]
    fn a_number_that_json_lacks_is_an_error() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(written(number), None);
            let params = ProgressParams::new(ProgressToken::from("t"), 1.0).with_total(number);
            assert!(serde_json::to_string(&params).is_err());
        }
        assert!(serde_json::from_str::<ProgressParams>(r#"{"progressToken":1,"progress":1e400}"#).is_err());
    }

    #[test]
    fn a_token_comes_back_as_it_was_given() {
        for (token, expected) in
            [("7", "7"), ("\"7\"", "\"7\""), ("\"\"", "\"\""), ("18446744073709551616", "18446744073709551616")]
        {
            let json = RawJson::from_bytes(token.into()).unwrap();
            let read = ProgressToken::from_json(&json).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), expected);
            assert_eq!(serde_json::from_str::<ProgressToken>(token).unwrap(), read);
        }
        for token in ["null", "1.5", "{}", "true"] {
            assert_eq!(ProgressToken::from_json(&RawJson::from_bytes(token.into()).unwrap()), None, "{token}");
        }
    }
}
