//! The folders that a client works in.
//!
//! Why here: a server asks for them in both eras and the answer is the same.
//! Invariants: a root is guidance for the server, not a sandbox; nothing here looks at a file system.
//! Spec: 2026-07-28 client/roots, "Data Types"

use serde::{Deserialize, Serialize};

use crate::types::MetaObject;

/// One folder or file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Root {
    /// Where it is; a `file://` URI in every published revision.
    pub uri: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Metadata of the root.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl Root {
    /// A root without a name.
    #[must_use]
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: None, meta: None }
    }

    setters! {
        /// Adds a name for people.
        with_name(name: String);
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

/// Parameters of `roots/list`: none but metadata.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListRootsParams {
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ListRootsParams {
    /// No parameters.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// Result of `roots/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListRootsResult {
    /// The roots, in the client's order.
    pub roots: Vec<Root>,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ListRootsResult {
    /// These roots.
    #[must_use]
    pub fn new(roots: Vec<Root>) -> Self {
        Self { roots, meta: None }
    }

    setters! {
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_keep_their_order_and_unknown_members_are_ignored() {
        let text = r#"{"roots":[{"uri":"file:///b","name":"B"},{"uri":"file:///a"}]}"#;
        let result: ListRootsResult = serde_json::from_str(text).unwrap();
        assert_eq!(result, ListRootsResult::new(vec![Root::new("file:///b").with_name("B"), Root::new("file:///a")]));
        assert_eq!(serde_json::to_string(&result).unwrap(), text);
        assert!(serde_json::from_str::<Root>(r#"{"uri":"file:///a","later":{}}"#).is_ok());
    }

    #[test]
    fn a_result_without_roots_is_refused_and_empty_parameters_are_an_empty_object() {
        assert!(serde_json::from_str::<ListRootsResult>("{}").is_err());
        assert_eq!(serde_json::to_string(&ListRootsParams::new()).unwrap(), "{}");
    }
}
