//! What is registered on a server that runs: tools, resources, templates and prompts come and go, and clients are told.
//!
//! Why here: a change is one copy, one swap and one notice, whatever it is a change of.
//! Invariants: only what the server said it offers is registered; calls under way keep what they began with.

use std::sync::{Arc, PoisonError};

use super::{Server, mount};
use crate::engine::hub::Change;
use crate::extension::ExtensionError;
use crate::prompt::Prompt;
use crate::protocol::schema::SchemaError;
use crate::registry::{Registry, Table};
use crate::resource::{Resource, ResourceTemplate, normalized};
use crate::tool::{Surroundings, Tool};
use crate::uri_template::UriTemplateError;

/// The kinds of things a server offers, as its capabilities tell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offers {
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) prompts: bool,
    pub(super) completions: bool,
}

/// A kind of thing that may be registered later, although nothing of it is there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offer {
    /// `tools`
    Tools,
    /// `resources`, templates included
    Resources,
    /// `prompts`
    Prompts,
    /// `completions`
    Completions,
}

/// Why something could not be registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistrationError {
    /// The name does not fit.
    #[error("\"{0}\" is no usable name: a tool's has 1 to 128 letters, digits, \"_\", \"-\" or \".\"")]
    Name(String),
    /// The address does not fit.
    #[error("\"{0}\" is no absolute address: it needs a scheme and has no blanks")]
    Address(String),
    /// The template does not fit.
    #[error("\"{template}\" is no usable template: {cause}")]
    Template {
        /// The template.
        template: String,
        /// What is wrong with it.
        cause: UriTemplateError,
    },
    /// A schema does not fit.
    #[error("the {what} schema of tool \"{name}\" is refused: {cause}")]
    Schema {
        /// The tool.
        name: String,
        /// `input` or `output`.
        what: &'static str,
        /// What is wrong with it.
        cause: SchemaError,
    },
    /// A completer for something that is not there.
    #[error("there is no argument or variable \"{0}\" to complete")]
    Completer(String),
    /// The name or address is taken.
    #[error("\"{key}\" is registered already{}", mount::between(.first, .second))]
    Taken {
        /// The name or address.
        key: String,
        /// Where it is registered: the prefix of what is [mounted](crate::ServerBuilder::mount), empty for the server itself.
        first: String,
        /// Where it was to be registered again.
        second: String,
    },
    /// What is mounted would lose its access policy.
    #[error("what is mounted as \"{0}\" has an access policy: set the policy of the server it is mounted in instead")]
    MountedPolicy(String),
    /// Clients were told that there is nothing of this kind.
    #[error("the server does not offer {0}: say so when it is built, with `ServerBuilder::offer`")]
    NotOffered(&'static str),
    /// An extension does not fit, by itself or beside the others.
    #[error("the extension \"{id}\" is refused: {problem}")]
    Extension {
        /// Its identifier.
        id: String,
        /// What is wrong with it.
        problem: ExtensionError,
    },
    /// The tool's calls must be tasks, and the server has none.
    #[error("tool \"{0}\" needs tasks: add an extension that runs calls, by `ServerBuilder::extension`")]
    NeedsTasks(String),
    /// There is no validator for schemas.
    #[error("without the feature \"jsonschema\" a server needs a validator: `ServerBuilder::validator`")]
    NoValidator,
    /// The operating system has no randomness for a key.
    #[error("no random key could be made")]
    NoRandomness,
}

pub(super) fn add<E: crate::registry::Entry>(table: &mut Table<E>, entry: E) -> Result<(), RegistrationError> {
    let key = entry.key().to_owned();
    let taken = |key| RegistrationError::Taken { key, first: String::new(), second: String::new() };
    if table.insert(entry) { Ok(()) } else { Err(taken(key)) }
}

impl Server {
    /// Adds a tool and announces it.
    ///
    /// # Errors
    /// When it cannot be registered; nothing has changed then.
    pub fn add_tool(&self, mut tool: Tool) -> Result<(), RegistrationError> {
        offered(self.0.offers.tools, "tools")?;
        tool.enclose(&self.0.layers);
        let entry = tool.compile(&Surroundings {
            validator: &*self.0.validator,
            default_timeout: self.0.limits.call_timeout,
            blocking: &self.0.blocking,
            has_tasks: self.0.extensions.executor().is_some(),
        })?;
        self.change(Change::Tools, |registry| add(&mut registry.tools, entry))
    }

    /// Removes a tool and announces that; `false` when there was none. Calls under way go on.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.change(Change::Tools, |registry| registry.tools.remove(name).then_some(()).ok_or(())).is_ok()
    }

    /// Adds a resource and announces it.
    ///
    /// # Errors
    /// When it cannot be registered; nothing has changed then.
    pub fn add_resource(&self, resource: Resource) -> Result<(), RegistrationError> {
        offered(self.0.offers.resources, "resources")?;
        let entry = resource.compile()?;
        self.change(Change::Resources, |registry| add(&mut registry.resources, entry))
    }

    /// Removes a resource and announces that; `false` when there was none.
    pub fn remove_resource(&self, uri: &str) -> bool {
        let Some(key) = normalized(uri) else { return false };
        self.change(Change::Resources, |registry| registry.resources.remove(&key).then_some(()).ok_or(())).is_ok()
    }

    /// Adds a resource template and announces it.
    ///
    /// # Errors
    /// When it cannot be registered; nothing has changed then.
    pub fn add_resource_template(&self, template: ResourceTemplate) -> Result<(), RegistrationError> {
        offered(self.0.offers.resources, "resources")?;
        let entry = template.compile()?;
        offered(entry.completers.is_empty() || self.0.offers.completions, "completions")?;
        self.change(Change::Resources, |registry| add(&mut registry.templates, entry))
    }

    /// Removes a resource template and announces that; `false` when there was none.
    pub fn remove_resource_template(&self, uri_template: &str) -> bool {
        self.change(Change::Resources, |registry| registry.templates.remove(uri_template).then_some(()).ok_or(()))
            .is_ok()
    }

    /// Adds a prompt and announces it.
    ///
    /// # Errors
    /// When it cannot be registered; nothing has changed then.
    pub fn add_prompt(&self, prompt: Prompt) -> Result<(), RegistrationError> {
        offered(self.0.offers.prompts, "prompts")?;
        let entry = prompt.compile()?;
        offered(entry.completers.is_empty() || self.0.offers.completions, "completions")?;
        self.change(Change::Prompts, |registry| add(&mut registry.prompts, entry))
    }

    /// Removes a prompt and announces that; `false` when there was none.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.change(Change::Prompts, |registry| registry.prompts.remove(name).then_some(()).ok_or(())).is_ok()
    }

    /// Copies the registry, changes the copy, swaps it in and tells whoever wants to know.
    fn change<E>(&self, change: Change<'_>, apply: impl FnOnce(&mut Registry) -> Result<(), E>) -> Result<(), E> {
        {
            let _changing = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let mut registry = Registry::clone(&self.0.registry.load());
            apply(&mut registry)?;
            self.0.registry.store(Arc::new(registry));
        }
        self.0.hub.publish(change);
        Ok(())
    }
}

fn offered(offered: bool, kind: &'static str) -> Result<(), RegistrationError> {
    if offered { Ok(()) } else { Err(RegistrationError::NotOffered(kind)) }
}
