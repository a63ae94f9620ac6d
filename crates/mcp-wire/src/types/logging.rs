//! Log messages and their levels.
//!
//! Why here: a server writes them, a client reads them, and three methods carry the level.
//! Invariants: levels are ordered by severity, so that "at or above" is a comparison.
//! Spec: 2026-07-28 server/utilities/logging, "Log Levels"; 2025-11-25 for `logging/setLevel`

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::RawJson;
use crate::types::MetaObject;

/// How severe a log message is, in the steps of syslog (RFC 5424), least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LoggingLevel {
    /// Detail for whoever debugs.
    Debug,
    /// Something worth telling happened.
    Info,
    /// Normal, but significant.
    Notice,
    /// Something may be wrong.
    Warning,
    /// An operation failed.
    Error,
    /// A part of the system failed.
    Critical,
    /// Somebody must act at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LoggingLevel {
    /// Every level, least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LoggingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a log level is debug, info, notice, warning, error, critical, alert or emergency")]
#[non_exhaustive]
pub struct UnknownLoggingLevel;

impl FromStr for LoggingLevel {
    type Err = UnknownLoggingLevel;

    fn from_str(text: &str) -> Result<Self, UnknownLoggingLevel> {
        Self::ALL.into_iter().find(|level| level.as_str() == text).ok_or(UnknownLoggingLevel)
    }
}

/// Parameters of `logging/setLevel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SetLevelParams {
    /// The least severe level that is wanted.
    pub level: LoggingLevel,
}

impl SetLevelParams {
    /// Asks for messages at or above `level`.
    #[must_use]
    pub fn new(level: LoggingLevel) -> Self {
        Self { level }
    }
}

/// Parameters of `notifications/message`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LogMessageParams {
    /// How severe it is.
    pub level: LoggingLevel,
    /// Which part of the server speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// What there is to say: any JSON value, and never a secret.
    pub data: RawJson,
    /// Metadata of the notification.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl LogMessageParams {
    /// A message from no particular logger.
    #[must_use]
    pub fn new(level: LoggingLevel, data: RawJson) -> Self {
        Self { level, logger: None, data, meta: None }
    }

    setters! {
        /// Names the part of the server that speaks.
        with_logger(logger: String);
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_by_severity_and_named_alike_in_text_and_json() {
        for pair in LoggingLevel::ALL.windows(2) {
            assert!(pair[0] < pair[1]);
        }
        for level in LoggingLevel::ALL {
            assert_eq!(level.as_str().parse(), Ok(level));
            assert_eq!(serde_json::to_string(&level).unwrap(), format!("\"{level}\""));
            assert_eq!(serde_json::from_str::<LoggingLevel>(&format!("\"{level}\"")).unwrap(), level);
        }
    }

    #[test]
    fn a_name_that_is_no_level_is_refused() {
        for text in ["", "Debug", "warn", "info ", "fatal"] {
            assert_eq!(text.parse::<LoggingLevel>(), Err(UnknownLoggingLevel), "{text}");
            assert!(serde_json::from_value::<SetLevelParams>(serde_json::json!({ "level": text })).is_err(), "{text}");
        }
    }

    #[test]
    fn data_may_be_any_value_and_keeps_its_text_but_may_not_be_missing() {
        for data in ["null", "\"x\"", "1.50", r#"{"b":1,"a":[1e400]}"#] {
            let text = format!(r#"{{"level":"info","data":{data}}}"#);
            let params: LogMessageParams = serde_json::from_str(&text).unwrap();
            assert_eq!(params.data.as_str(), data);
            assert_eq!(serde_json::to_string(&params).unwrap(), text);
        }
        assert!(serde_json::from_str::<LogMessageParams>(r#"{"level":"info"}"#).is_err());
    }
}
