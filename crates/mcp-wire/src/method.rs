//! Every method and notification: its name, who sends it, in which revisions it exists, which capability it needs.
//!
//! Why here: the matrix of the specification as one table, read by both engines.
//! Spec: 2026-07-28 schema, "Client messages" and "Server messages"; the older schemas for the older columns

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::Revision;

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are two sides")]
pub enum Direction {
    /// Client to server.
    ToServer,
    /// Server to client.
    ToClient,
    /// Either.
    Both,
}

/// The server capability that has to be advertised before a method is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gate {
    /// None.
    Open,
    /// `tools`
    Tools,
    /// `resources`
    Resources,
    /// `resources.subscribe`
    ResourceSubscriptions,
    /// `prompts`
    Prompts,
    /// `completions` (named so from 2025-03-26)
    Completions,
    /// `logging`
    Logging,
    /// An extension that registered the method.
    Extension,
}

macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $direction:ident, $first:ident ..= $last:ident, $gate:ident;)*) => {
        /// A method or notification name; names that this library does not know are kept as they came.
        #[derive(Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $($(#[$doc])* $variant,)*
            /// Any other name: an extension's, or a mistake.
            Other(Arc<str>),
        }

        impl Method {
            /// Every method that has a variant of its own.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name,
                }
            }

            /// Who sends it; unknown names may come from either side.
            #[must_use]
            pub fn direction(&self) -> Direction {
                match self {
                    $(Self::$variant => Direction::$direction,)*
                    Self::Other(_) => Direction::Both,
                }
            }

            /// The revisions that have it; unknown names have no bounds.
            #[must_use]
            pub fn revisions(&self) -> RangeInclusive<Revision> {
                match self {
                    $(Self::$variant => Revision::$first..=Revision::$last,)*
                    Self::Other(_) => Revision::V2024_11_05..=Revision::V2026_07_28,
                }
            }

            /// The server capability it needs.
            #[must_use]
            pub fn gate(&self) -> Gate {
                match self {
                    $(Self::$variant => Gate::$gate,)*
                    Self::Other(_) => Gate::Extension,
                }
            }
        }

        impl From<&str> for Method {
            fn from(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    other => Self::Other(Arc::from(other)),
                }
            }
        }
    };
}

methods! {
    /// Opens a legacy conversation.
    Initialize = "initialize", ToServer, V2024_11_05..=V2025_11_25, Open;
    /// Is the other side alive?
    Ping = "ping", Both, V2024_11_05..=V2025_11_25, Open;
    /// What the server is and can do.
    Discover = "server/discover", ToServer, V2026_07_28..=V2026_07_28, Open;
    /// A page of tools.
    ToolsList = "tools/list", ToServer, V2024_11_05..=V2026_07_28, Tools;
    /// Runs a tool.
    ToolsCall = "tools/call", ToServer, V2024_11_05..=V2026_07_28, Tools;
    /// A page of resources.
    ResourcesList = "resources/list", ToServer, V2024_11_05..=V2026_07_28, Resources;
    /// A page of resource templates.
    ResourceTemplatesList = "resources/templates/list", ToServer, V2024_11_05..=V2026_07_28, Resources;
    /// The contents of a resource.
    ResourcesRead = "resources/read", ToServer, V2024_11_05..=V2026_07_28, Resources;
    /// Asks for change notices of a resource.
    ResourcesSubscribe = "resources/subscribe", ToServer, V2024_11_05..=V2025_11_25, ResourceSubscriptions;
    /// Ends them.
    ResourcesUnsubscribe = "resources/unsubscribe", ToServer, V2024_11_05..=V2025_11_25, ResourceSubscriptions;
    /// A page of prompts.
    PromptsList = "prompts/list", ToServer, V2024_11_05..=V2026_07_28, Prompts;
    /// A prompt with its arguments filled in.
    PromptsGet = "prompts/get", ToServer, V2024_11_05..=V2026_07_28, Prompts;
    /// Suggestions for an argument.
    CompletionComplete = "completion/complete", ToServer, V2024_11_05..=V2026_07_28, Completions;
    /// Sets the log level of a session.
    LoggingSetLevel = "logging/setLevel", ToServer, V2024_11_05..=V2025_11_25, Logging;
    /// Opens a stream of change notices.
    SubscriptionsListen = "subscriptions/listen", ToServer, V2026_07_28..=V2026_07_28, Open;
    /// The state of a task.
    TasksGet = "tasks/get", Both, V2025_11_25..=V2026_07_28, Extension;
    /// Ends a task.
    TasksCancel = "tasks/cancel", Both, V2025_11_25..=V2026_07_28, Extension;
    /// A page of tasks.
    TasksList = "tasks/list", Both, V2025_11_25..=V2025_11_25, Extension;
    /// The outcome of a task, awaited.
    TasksResult = "tasks/result", Both, V2025_11_25..=V2025_11_25, Extension;
    /// Answers to the questions of a task.
    TasksUpdate = "tasks/update", ToServer, V2026_07_28..=V2026_07_28, Extension;
    /// Asks the client's model.
    SamplingCreateMessage = "sampling/createMessage", ToClient, V2024_11_05..=V2026_07_28, Open;
    /// Asks for the client's folders.
    RootsList = "roots/list", ToClient, V2024_11_05..=V2026_07_28, Open;
    /// Asks the client's user.
    ElicitationCreate = "elicitation/create", ToClient, V2025_06_18..=V2026_07_28, Open;
    /// The client has read the answer to `initialize`.
    Initialized = "notifications/initialized", ToServer, V2024_11_05..=V2025_11_25, Open;
    /// A request is no longer wanted.
    Cancelled = "notifications/cancelled", Both, V2024_11_05..=V2026_07_28, Open;
    /// How far a request is.
    Progress = "notifications/progress", Both, V2024_11_05..=V2026_07_28, Open;
    /// A log message.
    LogMessage = "notifications/message", ToClient, V2024_11_05..=V2026_07_28, Logging;
    /// The list of tools changed.
    ToolsListChanged = "notifications/tools/list_changed", ToClient, V2024_11_05..=V2026_07_28, Tools;
    /// The list of prompts changed.
    PromptsListChanged = "notifications/prompts/list_changed", ToClient, V2024_11_05..=V2026_07_28, Prompts;
    /// The list of resources or templates changed.
    ResourcesListChanged = "notifications/resources/list_changed", ToClient, V2024_11_05..=V2026_07_28, Resources;
    /// A resource changed.
    ResourceUpdated = "notifications/resources/updated", ToClient, V2024_11_05..=V2026_07_28, ResourceSubscriptions;
    /// The client's folders changed.
    RootsListChanged = "notifications/roots/list_changed", ToServer, V2024_11_05..=V2025_11_25, Open;
    /// An out-of-band elicitation is finished.
    ElicitationComplete = "notifications/elicitation/complete", ToClient, V2025_11_25..=V2025_11_25, Open;
    /// The state of a core task.
    TaskStatus = "notifications/tasks/status", Both, V2025_11_25..=V2025_11_25, Extension;
    /// The state of a task of the extension.
    Tasks = "notifications/tasks", ToClient, V2026_07_28..=V2026_07_28, Extension;
    /// The first message of a subscription.
    SubscriptionsAcknowledged = "notifications/subscriptions/acknowledged", ToClient, V2026_07_28..=V2026_07_28, Open;
}

impl Method {
    /// Whether the name is a notification's.
    #[must_use]
    pub fn is_notification(&self) -> bool {
        self.as_str().starts_with("notifications/")
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_method() {
        for method in Method::KNOWN {
            assert_eq!(&Method::from(method.as_str()), method);
            assert!(!matches!(method, Method::Other(_)));
        }
        assert_eq!(Method::from("Tools/List"), Method::Other(Arc::from("Tools/List")));
    }

    #[test]
    fn what_the_newest_revision_dropped_is_out_of_its_range() {
        let dropped: Vec<_> = Method::KNOWN
            .iter()
            .filter(|method| !method.is_notification() && !method.revisions().contains(&Revision::V2026_07_28))
            .map(Method::as_str)
            .collect();
        assert_eq!(
            dropped,
            [
                "initialize",
                "ping",
                "resources/subscribe",
                "resources/unsubscribe",
                "logging/setLevel",
                "tasks/list",
                "tasks/result"
            ]
        );
    }
}
