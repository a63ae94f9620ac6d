//! From the engine's hint to a status.
//!
//! Why here: the one place where an answer of the engine gets its status.
//! Spec: 2026-07-28 basic/transports/streamable-http, "Sending Messages"

use http::StatusCode;
use mcp_core::Hint;

/// The status of a response with this hint.
#[must_use]
pub fn status(hint: &Hint) -> StatusCode {
    match hint {
        Hint::BadRequest => StatusCode::BAD_REQUEST,
        Hint::NotFound => StatusCode::NOT_FOUND,
        Hint::Forbidden { .. } => StatusCode::FORBIDDEN,
        // An error that the engine has no hint for is in the body of an ordinary answer.
        _ => StatusCode::OK,
    }
}
