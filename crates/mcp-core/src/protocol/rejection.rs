//! Why a message was not admitted, with its code, and what a carrier with statuses should make of it.
//!
//! Why here: the engine knows no statuses and shells know no reasons; the hint is all that passes between them.
//! Spec: 2026-07-28 basic/transports/streamable-http, "Sending Messages to the Server"

use mcp_wire::types::MetaObject;
use mcp_wire::{ErrorCode, RequestId, Revision, RpcError};

/// What a carrier with statuses (HTTP) should make of a response; never on the wire itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// An ordinary answer, errors of the handler included.
    #[default]
    Ok,
    /// The message itself was at fault.
    BadRequest,
    /// There is no such method, or no such session.
    NotFound,
    /// The caller is known but lacks these scopes.
    Forbidden {
        /// All scopes that the operation needs.
        scopes: Vec<String>,
    },
}

/// A message that was refused before it reached a handler.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rejection {
    /// The id of the request, where there was one that could be read.
    pub id: Option<RequestId>,
    /// The error to answer with.
    pub error: RpcError,
    /// What it means for the status.
    pub hint: Hint,
}

impl Rejection {
    pub(crate) fn bad_request(id: Option<RequestId>, error: RpcError) -> Self {
        Self { id, error, hint: Hint::BadRequest }
    }

    /// An in-band error: the message was fine, what it asks for is not.
    pub(crate) fn in_band(id: Option<RequestId>, error: RpcError) -> Self {
        Self { id, error, hint: Hint::Ok }
    }
}

/// -32601 for a method that does not exist, is not of this era, or is not advertised.
pub(crate) fn method_not_found(method: &str) -> RpcError {
    // The name comes from the peer: enough of it to recognize, not enough to flood a log.
    let shown: String = method.chars().take(100).collect();
    RpcError::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method \"{shown}\" here"))
}

/// -32022 with the versions that are served.
pub(crate) fn unsupported_version(requested: &str, supported: &[Revision]) -> RpcError {
    let shown: String = requested.chars().take(100).collect();
    let supported: Vec<&str> = supported.iter().map(|revision| revision.as_str()).collect();
    RpcError::new(
        ErrorCode::UNSUPPORTED_VERSION,
        format!("protocol version \"{shown}\" is not supported; supported are {}", supported.join(", ")),
    )
    .with_data(serde_json::json!({ "supported": supported, "requested": shown }))
}

/// The error for a caller without a scope. Which ones are needed is in the hint, for the challenge to name.
pub(crate) fn lacking_scope() -> RpcError {
    RpcError::new(ErrorCode::INVALID_REQUEST, "the caller lacks a scope that this operation needs")
}

/// The error for capabilities that the client did not declare, under the code of its revision.
pub(crate) fn missing_capability(code: i64, required: &MetaObject) -> RpcError {
    let names: Vec<&str> = required.keys().map(String::as_str).collect();
    RpcError::new(
        ErrorCode(code),
        format!("this needs a client capability that was not declared: {}", names.join(", ")),
    )
    .with_data(serde_json::json!({ "requiredCapabilities": required }))
}
