//! The notice that a request is no longer wanted.
//!
//! Why here: either side sends it, over every transport that has no stream to close.
//! Spec: 2026-07-28 basic/utilities/cancellation, "Cancellation Flow"

use serde::{Deserialize, Serialize};

use crate::RequestId;
use crate::types::MetaObject;

/// Parameters of `notifications/cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelledParams {
    /// The request; one revision (2025-11-25) allows it to be absent, and then nothing is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Why, for a log or a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Metadata of the notification.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl CancelledParams {
    /// The request `id` is no longer wanted.
    #[must_use]
    pub fn new(id: RequestId) -> Self {
        Self { request_id: Some(id), reason: None, meta: None }
    }

    setters! {
        /// Says why.
        with_reason(reason: String);
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_keeps_its_json_type() {
        for text in [r#"{"requestId":"7","reason":"late"}"#, r#"{"requestId":7}"#, "{}"] {
            let params: CancelledParams = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&params).unwrap(), text);
        }
        assert_eq!(
            serde_json::to_string(&CancelledParams::new(RequestId::from(7)).with_reason("late")).unwrap(),
            r#"{"requestId":7,"reason":"late"}"#
        );
        assert!(serde_json::from_str::<CancelledParams>(r#"{"requestId":1.5}"#).is_err());
    }
}
