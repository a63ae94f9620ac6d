//! What each side can do: the capability objects, and single capabilities of a client.
//!
//! Why here: both eras declare capabilities in the same shapes; one question and one answer serve both.
//! Invariants: an absent member means "cannot"; in the newest era every request brings the whole object, so that `{}`
//! decodes without allocating.
//! Spec: 2026-07-28 schema, "ClientCapabilities", "ServerCapabilities"

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::types::MetaObject;

/// What a client can do for a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// It can list its roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// It can ask a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// It can ask the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// It can run requests as tasks (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Box<Value>>,
    /// Abilities outside the protocol, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<Box<MetaObject>>,
    /// Extensions, by identifier (from 2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Box<MetaObject>>,
}

/// How a client lists roots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RootsCapability {
    /// It tells when the list changes (up to 2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// How a client asks a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingCapability {
    /// It can add context from servers (`includeContext`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<MetaObject>,
    /// It can offer tools to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<MetaObject>,
}

/// How a client asks the person. An empty object means forms only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// With a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<MetaObject>,
    /// By sending the person to a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<MetaObject>,
}

impl ClientCapabilities {
    /// A client that can do nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same client, declaring this too.
    #[must_use]
    pub fn with(mut self, capability: &ClientCapability) -> Self {
        match capability {
            ClientCapability::Roots => {
                self.roots.get_or_insert_default();
            }
            ClientCapability::Sampling => {
                self.sampling.get_or_insert_default();
            }
            ClientCapability::SamplingTools => {
                self.sampling.get_or_insert_default().tools.get_or_insert_default();
            }
            ClientCapability::SamplingContext => {
                self.sampling.get_or_insert_default().context.get_or_insert_default();
            }
            ClientCapability::ElicitationForm => {
                self.elicitation.get_or_insert_default().form.get_or_insert_default();
            }
            ClientCapability::ElicitationUrl => {
                self.elicitation.get_or_insert_default().url.get_or_insert_default();
            }
            ClientCapability::Extension(id) => {
                let extensions = self.extensions.get_or_insert_default();
                extensions.entry(id.as_str()).or_insert_with(empty_object);
            }
        }
        self
    }

    /// Whether the client declared this.
    #[must_use]
    pub fn supports(&self, needed: &ClientCapability) -> bool {
        let sampling = self.sampling.as_ref();
        let elicitation = self.elicitation.as_ref();
        match needed {
            ClientCapability::Roots => self.roots.is_some(),
            ClientCapability::Sampling => sampling.is_some(),
            ClientCapability::SamplingTools => sampling.is_some_and(|sampling| sampling.tools.is_some()),
            ClientCapability::SamplingContext => sampling.is_some_and(|sampling| sampling.context.is_some()),
            // The object was empty before there was anything but forms.
            ClientCapability::ElicitationForm => {
                elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
            }
            ClientCapability::ElicitationUrl => elicitation.is_some_and(|elicitation| elicitation.url.is_some()),
            ClientCapability::Extension(id) => self.extension(id).is_some(),
        }
    }

    /// The settings that the client declared for an extension, if it declared the extension.
    #[must_use]
    pub fn extension(&self, id: &str) -> Option<&MetaObject> {
        self.extensions.as_ref()?.get(id)?.as_object()
    }
}

/// One thing that a handler can need from a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientCapability {
    /// Its roots.
    Roots,
    /// A question to a model.
    Sampling,
    /// A question to a model that may call tools.
    SamplingTools,
    /// A question to a model with context from servers.
    SamplingContext,
    /// A form for the person.
    ElicitationForm,
    /// A URL for the person to visit.
    ElicitationUrl,
    /// An extension, by identifier.
    Extension(String),
}

impl ClientCapability {
    /// Merges this into the object that tells a client what it would have had to declare (`requiredCapabilities`).
    pub fn add_to(&self, required: &mut MetaObject) {
        match self {
            Self::Roots => edit(required, "roots", |_| ()),
            Self::Sampling => edit(required, "sampling", |_| ()),
            Self::SamplingTools => edit(required, "sampling", |sampling| edit(sampling, "tools", |_| ())),
            Self::SamplingContext => edit(required, "sampling", |sampling| edit(sampling, "context", |_| ())),
            // Forms are what the empty object means; beside URLs they have to be named.
            Self::ElicitationForm => edit(required, "elicitation", |elicitation| {
                if !elicitation.is_empty() {
                    edit(elicitation, "form", |_| ());
                }
            }),
            Self::ElicitationUrl => {
                let forms_too =
                    required.get("elicitation").and_then(Value::as_object).is_some_and(MetaObject::is_empty);
                edit(required, "elicitation", |elicitation| {
                    if forms_too {
                        edit(elicitation, "form", |_| ());
                    }
                    edit(elicitation, "url", |_| ());
                });
            }
            Self::Extension(id) => edit(required, "extensions", |extensions| edit(extensions, id, |_| ())),
        }
    }
}

/// What a server can do for a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// Abilities outside the protocol, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<Box<MetaObject>>,
    /// It sends log messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<MetaObject>,
    /// It completes arguments (from 2025-03-26).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<MetaObject>,
    /// It has prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<PromptsCapability>,
    /// It has resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// It has tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsCapability>,
    /// It runs requests as tasks (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Box<Value>>,
    /// Extensions, by identifier (from 2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Box<MetaObject>>,
}

/// How a server offers prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptsCapability {
    /// It tells when the list changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// How a server offers resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// It tells when a resource that somebody watches changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// It tells when the list changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// How a server offers tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolsCapability {
    /// It tells when the list changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

impl ServerCapabilities {
    /// A server that can do nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares log messages.
    #[must_use]
    pub fn with_logging(mut self) -> Self {
        self.logging.get_or_insert_default();
        self
    }

    /// Declares completion.
    #[must_use]
    pub fn with_completions(mut self) -> Self {
        self.completions.get_or_insert_default();
        self
    }

    /// Declares prompts, and whether changes of the list are told.
    #[must_use]
    pub fn with_prompts(mut self, list_changed: bool) -> Self {
        self.prompts = Some(PromptsCapability { list_changed: list_changed.then_some(true) });
        self
    }

    /// Declares resources, and whether changes of one and of the list are told.
    #[must_use]
    pub fn with_resources(mut self, subscribe: bool, list_changed: bool) -> Self {
        self.resources = Some(ResourcesCapability {
            subscribe: subscribe.then_some(true),
            list_changed: list_changed.then_some(true),
        });
        self
    }

    /// Declares tools, and whether changes of the list are told.
    #[must_use]
    pub fn with_tools(mut self, list_changed: bool) -> Self {
        self.tools = Some(ToolsCapability { list_changed: list_changed.then_some(true) });
        self
    }

    /// Declares an extension with its settings.
    #[must_use]
    pub fn with_extension(mut self, id: impl Into<String>, settings: MetaObject) -> Self {
        self.extensions.get_or_insert_default().insert(id.into(), Value::Object(settings));
        self
    }

    /// The settings that the server declared for an extension, if it declared the extension.
    #[must_use]
    pub fn extension(&self, id: &str) -> Option<&MetaObject> {
        self.extensions.as_ref()?.get(id)?.as_object()
    }
}

/// Edits the object that is the member `name`, which is made if there is none.
fn edit(parent: &mut MetaObject, name: &str, change: impl FnOnce(&mut MetaObject)) {
    let mut object = match parent.remove(name) {
        Some(Value::Object(object)) => object,
        _ => MetaObject::new(),
    };
    change(&mut object);
    parent.insert(name.to_owned(), Value::Object(object));
}

fn empty_object() -> Value {
    Value::Object(MetaObject::new())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EXTENSION: &str = "io.modelcontextprotocol/tasks";

    fn all() -> [ClientCapability; 7] {
        [
            ClientCapability::Roots,
            ClientCapability::Sampling,
            ClientCapability::SamplingTools,
            ClientCapability::SamplingContext,
            ClientCapability::ElicitationForm,
            ClientCapability::ElicitationUrl,
            ClientCapability::Extension(EXTENSION.to_owned()),
        ]
    }

    fn supported(declared: Value) -> Vec<ClientCapability> {
        let client: ClientCapabilities = serde_json::from_value(declared).unwrap();
        all().into_iter().filter(|capability| client.supports(capability)).collect()
    }

    #[test]
    fn what_is_not_declared_is_not_supported() {
        use ClientCapability::{
            ElicitationForm, ElicitationUrl, Extension, Roots, Sampling, SamplingContext, SamplingTools,
        };
        assert_eq!(supported(json!({})), []);
        assert_eq!(supported(json!({"roots": {"listChanged": true}})), [Roots]);
        assert_eq!(supported(json!({"sampling": {}})), [Sampling]);
        assert_eq!(supported(json!({"sampling": {"tools": {}}})), [Sampling, SamplingTools]);
        assert_eq!(supported(json!({"sampling": {"context": {}}})), [Sampling, SamplingContext]);
        assert_eq!(supported(json!({"elicitation": {}})), [ElicitationForm]);
        assert_eq!(supported(json!({"elicitation": {"form": {}}})), [ElicitationForm]);
        assert_eq!(supported(json!({"elicitation": {"url": {}}})), [ElicitationUrl]);
        assert_eq!(supported(json!({"elicitation": {"form": {}, "url": {}}})), [ElicitationForm, ElicitationUrl]);
        assert_eq!(supported(json!({"extensions": {EXTENSION: {}}})), [Extension(EXTENSION.to_owned())]);
        assert_eq!(supported(json!({"extensions": {EXTENSION: null, "x/y": {}}, "new": {"a": 1}})), []);
    }

    #[test]
    fn a_missing_capability_is_named_in_the_shape_of_a_declaration() {
        let expected = [
            json!({"roots": {}}),
            json!({"sampling": {}}),
            json!({"sampling": {"tools": {}}}),
            json!({"sampling": {"context": {}}}),
            json!({"elicitation": {}}),
            json!({"elicitation": {"url": {}}}),
            json!({"extensions": {EXTENSION: {}}}),
        ];
        for (capability, expected) in all().into_iter().zip(expected) {
            let mut required = MetaObject::new();
            capability.add_to(&mut required);
            assert_eq!(Value::Object(required), expected);
        }
    }

    #[test]
    fn a_client_that_declares_what_was_named_supports_it() {
        // Every pair in both orders: merging must not lose what stands there already.
        for first in all() {
            for second in all() {
                let mut required = MetaObject::new();
                first.add_to(&mut required);
                second.add_to(&mut required);
                let client: ClientCapabilities = serde_json::from_value(Value::Object(required)).unwrap();
                assert!(client.supports(&first) && client.supports(&second), "{first:?}, {second:?}");
            }
        }
    }

    #[test]
    fn what_is_declared_one_by_one_is_supported() {
        for first in all() {
            for second in all() {
                let client = ClientCapabilities::new().with(&first).with(&second);
                assert!(client.supports(&first) && client.supports(&second), "{first:?}, {second:?}");
            }
        }
    }

    #[test]
    fn a_server_says_what_it_has() {
        let server = ServerCapabilities::new()
            .with_logging()
            .with_completions()
            .with_prompts(false)
            .with_resources(true, true)
            .with_tools(true)
            .with_extension(EXTENSION, MetaObject::new());
        let wire = json!({
            "logging": {},
            "completions": {},
            "prompts": {},
            "resources": {"subscribe": true, "listChanged": true},
            "tools": {"listChanged": true},
            "extensions": {EXTENSION: {}},
        });
        assert_eq!(serde_json::to_value(&server).unwrap(), wire);
        assert_eq!(serde_json::from_value::<ServerCapabilities>(wire).unwrap(), server);
        assert!(server.extension(EXTENSION).is_some() && server.extension("x/y").is_none());
    }
}
