//! JSON-RPC errors and the codes of every revision.
//!
//! Why here: one table of codes, so that no number is written elsewhere.
//! Spec: 2026-07-28 basic/index, "Error Codes"

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// The code of a JSON-RPC error.
///
/// Any integer can arrive; the constants are the ones this library sends or understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[expect(clippy::exhaustive_structs, reason = "a code is its number")]
pub struct ErrorCode(pub i64);

impl ErrorCode {
    /// Not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// JSON, but not a message; or a batch where there are none.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// Unknown, removed or un-advertised method.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// Bad envelope `_meta`, bad parameters, or something named in them that does not exist.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// A fault on our side; no detail leaves the process.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// A resource that does not exist, up to 2025-11-25.
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// A header is missing, repeated, undecodable or differs from the body (2026-07-28).
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// The request did not declare a capability that it needs (2026-07-28).
    pub const MISSING_CLIENT_CAPABILITY: Self = Self(-32021);
    /// The version is not implemented (2026-07-28).
    pub const UNSUPPORTED_VERSION: Self = Self(-32022);
    /// The client must finish an out-of-band step first (2025-11-25 only).
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);
}

/// An error as it stands in a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({})", code.0)]
#[non_exhaustive]
pub struct RpcError {
    /// What kind of fault.
    pub code: ErrorCode,
    /// One sentence for a developer: what was wrong and what is right.
    pub message: Cow<'static, str>,
    /// Machine-readable detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson>,
}

impl RpcError {
    /// An error without `data`.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same error with `data`.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<RawJson>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// -32602 with this message.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    /// Why `what`, a part of a message that was JSON, could not be decoded: -32700 for a number or a text that no program can hold,
    /// as 1e400 or half a surrogate pair, and -32602 for what has another shape.
    #[must_use]
    pub fn undecodable(what: &str, error: &serde_json::Error) -> Self {
        if error.is_syntax() {
            return Self::new(ErrorCode::PARSE_ERROR, format!("{what} cannot be read: {error}"));
        }
        Self::invalid_params(format!("{what} does not fit: {error}"))
    }

    /// -32603 with the one text that such errors have: the cause stays in the log.
    #[must_use]
    pub fn internal() -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, "internal error")
    }
}
