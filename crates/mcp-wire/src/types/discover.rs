//! What a server says about itself without a handshake.
//!
//! Why here: the modern counterpart of the handshake's result, read by clients before anything else.
//! Invariants: what the server is travels in the result's metadata, which the engine writes.
//! Spec: 2026-07-28 server/discover, "Response"

use serde::{Deserialize, Serialize};

use crate::capability::ServerCapabilities;

/// Result of `server/discover`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The revisions that the server speaks; plain text, because a peer may name unknown ones.
    pub supported_versions: Vec<String>,
    /// What the server can do.
    pub capabilities: ServerCapabilities,
    /// How to use the server, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

impl DiscoverResult {
    /// A server that speaks these revisions.
    #[must_use]
    pub fn new(supported_versions: Vec<String>, capabilities: ServerCapabilities) -> Self {
        Self { supported_versions, capabilities, instructions: None }
    }

    setters! {
        /// Says how to use the server.
        with_instructions(instructions: String);
    }
}
