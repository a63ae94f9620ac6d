//! The handshake of the legacy era.
//!
//! Why here: both engines speak it, each its own half.
//! Invariants: revisions are plain text here, because a peer may name one that nobody here knows.
//! Spec: 2025-11-25 basic/lifecycle, "Initialization"

use serde::{Deserialize, Serialize};

use crate::capability::{ClientCapabilities, ServerCapabilities};
use crate::types::{Implementation, MetaObject};

/// Parameters of `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeParams {
    /// The newest revision that the client speaks.
    pub protocol_version: String,
    /// What the client can do.
    pub capabilities: ClientCapabilities,
    /// What the client is.
    pub client_info: Implementation,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl InitializeParams {
    /// Offers this revision.
    #[must_use]
    pub fn new(
        protocol_version: impl Into<String>,
        capabilities: ClientCapabilities,
        client_info: Implementation,
    ) -> Self {
        Self { protocol_version: protocol_version.into(), capabilities, client_info, meta: None }
    }
}

/// Result of `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// The revision that the server chose.
    pub protocol_version: String,
    /// What the server can do.
    pub capabilities: ServerCapabilities,
    /// What the server is.
    pub server_info: Implementation,
    /// How to use the server, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl InitializeResult {
    /// Chooses this revision.
    #[must_use]
    pub fn new(
        protocol_version: impl Into<String>,
        capabilities: ServerCapabilities,
        server_info: Implementation,
    ) -> Self {
        Self { protocol_version: protocol_version.into(), capabilities, server_info, instructions: None, meta: None }
    }

    setters! {
        /// Says how to use the server.
        with_instructions(instructions: String);
    }
}
