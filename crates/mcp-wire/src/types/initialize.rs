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
    #[serde(deserialize_with = "super::object")]
    pub capabilities: ClientCapabilities,
    /// What the client is.
    #[serde(deserialize_with = "super::object")]
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

    setters! {
        /// Adds metadata.
        with_meta(meta: MetaObject);
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
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offer_and_the_choice_keep_revisions_that_nobody_here_knows() {
        let offer = r#"{"protocolVersion":"1999-01-01","capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"c","version":"1"}}"#;
        let params: InitializeParams = serde_json::from_str(offer).unwrap();
        assert_eq!(params.protocol_version, "1999-01-01");
        assert_eq!(serde_json::to_string(&params).unwrap(), offer);

        let info = Implementation::new("s", "2");
        let chosen = InitializeResult::new("2025-11-25", ServerCapabilities::new(), info).with_instructions("Ask.");
        let text = r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"2"},"instructions":"Ask."}"#;
        assert_eq!(serde_json::to_string(&chosen).unwrap(), text);
        assert_eq!(serde_json::from_str::<InitializeResult>(text).unwrap(), chosen);
    }

    #[test]
    fn every_required_member_is_required() {
        for text in [
            r#"{"capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#,
            r#"{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"}}"#,
            r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#,
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c"}}"#,
        ] {
            assert!(serde_json::from_str::<InitializeParams>(text).is_err(), "{text}");
        }
    }
}
