//! What a client wants to hear about on a subscription stream, and what the server grants.
//!
//! Why here: the request and its first message carry the same filter.
//! Invariants: a member that is absent stays absent; it is not the same as `false` or an empty list.
//! Spec: 2026-07-28 basic/utilities/subscriptions, "Opening a Subscription"

use serde::{Deserialize, Serialize};

use crate::types::MetaObject;

/// The kinds of change that are wanted, or granted. The default is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// The list of tools changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// The list of prompts changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// The list of resources or templates changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// One of these resources changed; URIs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
    /// One of these tasks changed; ids of the tasks extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_ids: Option<Vec<String>>,
}

impl SubscriptionFilter {
    /// Nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds changes to the list of tools.
    #[must_use]
    pub fn with_tools_list_changed(mut self) -> Self {
        self.tools_list_changed = Some(true);
        self
    }

    /// Adds changes to the list of prompts.
    #[must_use]
    pub fn with_prompts_list_changed(mut self) -> Self {
        self.prompts_list_changed = Some(true);
        self
    }

    /// Adds changes to the list of resources and templates.
    #[must_use]
    pub fn with_resources_list_changed(mut self) -> Self {
        self.resources_list_changed = Some(true);
        self
    }

    /// Adds changes of one resource.
    #[must_use]
    pub fn with_resource(mut self, uri: impl Into<String>) -> Self {
        self.resource_subscriptions.get_or_insert_default().push(uri.into());
        self
    }

    /// Adds changes of one task.
    #[must_use]
    pub fn with_task(mut self, id: impl Into<String>) -> Self {
        self.task_ids.get_or_insert_default().push(id.into());
        self
    }
}

/// Parameters of `subscriptions/listen`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListenParams {
    /// What is wanted; required, though it may be empty.
    #[serde(deserialize_with = "super::object")]
    pub notifications: SubscriptionFilter,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ListenParams {
    /// Asks for these changes.
    #[must_use]
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self { notifications, meta: None }
    }

    setters! {
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

/// Parameters of `notifications/subscriptions/acknowledged`, the first message of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionsAcknowledgedParams {
    /// The part of the wish that is granted.
    pub notifications: SubscriptionFilter,
    /// Metadata of the notification; names the subscription under
    /// [`SUBSCRIPTION_ID`](crate::params::SUBSCRIPTION_ID).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl SubscriptionsAcknowledgedParams {
    /// Grants these changes.
    #[must_use]
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self { notifications, meta: None }
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
    fn absent_members_stay_absent() {
        assert_eq!(serde_json::to_string(&SubscriptionFilter::new()).unwrap(), "{}");
        let filter = SubscriptionFilter::new().with_tools_list_changed().with_resource("file:///a").with_task("t-1");
        let text = r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///a"],"taskIds":["t-1"]}"#;
        assert_eq!(serde_json::to_string(&filter).unwrap(), text);
        assert_eq!(serde_json::from_str::<SubscriptionFilter>(text).unwrap(), filter);
    }

    #[test]
    fn parameters_without_notifications_are_refused_and_an_empty_filter_is_not() {
        for text in ["{}", r#"{"notifications":null}"#, r#"{"notifications":[]}"#] {
            assert!(serde_json::from_str::<ListenParams>(text).is_err(), "{text}");
        }
        let empty: ListenParams = serde_json::from_str(r#"{"notifications":{"unknown":true}}"#).unwrap();
        assert_eq!(empty, ListenParams::new(SubscriptionFilter::new()));
    }

    #[test]
    fn the_acknowledgement_carries_its_subscription_in_the_metadata() {
        let mut meta = MetaObject::new();
        meta.insert(crate::params::SUBSCRIPTION_ID.to_owned(), 7.into());
        let params = SubscriptionsAcknowledgedParams::new(SubscriptionFilter::new()).with_meta(meta);
        let text = r#"{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#;
        assert_eq!(serde_json::to_string(&params).unwrap(), text);
        assert_eq!(serde_json::from_str::<SubscriptionsAcknowledgedParams>(text).unwrap(), params);
    }
}
