//! What a server says about itself without a handshake.
//!
//! Why here: the modern counterpart of the handshake's result, read by clients before anything else.
//! Invariants: what the server is travels in the result's metadata, which the engine writes.
//! Spec: 2026-07-28 server/discover, "Response"

use serde::{Deserialize, Serialize};

use crate::capability::ServerCapabilities;
use crate::types::MetaObject;

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
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl DiscoverResult {
    /// A server that speaks these revisions.
    #[must_use]
    pub fn new(supported_versions: Vec<String>, capabilities: ServerCapabilities) -> Self {
        Self { supported_versions, capabilities, instructions: None, meta: None }
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
    fn revisions_are_plain_text_and_what_the_engine_writes_is_ignored() {
        let text = r#"{"resultType":"complete","supportedVersions":["2099-01-01","x"],"capabilities":{"tools":{}},
                       "ttlMs":5,"cacheScope":"public","serverInfo":{"name":"n","version":"1"}}"#;
        let result: DiscoverResult = serde_json::from_str(text).unwrap();
        let versions = vec!["2099-01-01".to_owned(), "x".to_owned()];
        assert_eq!(result, DiscoverResult::new(versions, ServerCapabilities::new().with_tools(false)));
        assert_eq!(
            serde_json::to_string(&result.with_instructions("Ask.")).unwrap(),
            r#"{"supportedVersions":["2099-01-01","x"],"capabilities":{"tools":{}},"instructions":"Ask."}"#
        );
    }

    #[test]
    fn a_result_without_versions_or_capabilities_is_refused() {
        for text in [r#"{"supportedVersions":[]}"#, r#"{"capabilities":{}}"#] {
            assert!(serde_json::from_str::<DiscoverResult>(text).is_err(), "{text}");
        }
    }
}
