//! Prompts: how they are written, registered and answered for.
//!
//! Why here: a prompt is a value with a handler, as a tool is.
//! Invariants: required arguments are present and every argument is a string before a handler sees them.
//! Spec: 2026-07-28 server/prompts

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use mcp_wire::Revision;
use mcp_wire::types::{self, ContentBlock, Icon, MetaObject, PromptArgument, PromptMessage};

use crate::handler::{Completer, PromptHandler};
use crate::registry::{self, Entry, Rendered};
use crate::server::RegistrationError;
use crate::{HandlerError, RequestContext};

/// The arguments of a prompt, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptArguments(BTreeMap<String, String>);

impl PromptArguments {
    pub(crate) fn new(arguments: BTreeMap<String, String>) -> Self {
        Self(arguments)
    }

    /// An argument, if it was given.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// An argument, or the empty string. Required arguments are always there.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.value(name).unwrap_or_default()
    }

    /// All that was given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// What a prompt is filled in with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PromptReply {
    /// What the prompt is about, where it differs from what was registered.
    pub description: Option<String>,
    /// The messages.
    pub messages: Vec<PromptMessage>,
    /// `_meta` of the result.
    pub meta: Option<MetaObject>,
}

impl PromptReply {
    /// A reply with these messages.
    #[must_use]
    pub fn new(messages: Vec<PromptMessage>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// A reply with one text of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(vec![PromptMessage::user(ContentBlock::text(text))])
    }
}

/// A prompt, ready to be registered.
#[must_use = "a prompt is served once it is registered"]
pub struct Prompt {
    definition: types::Prompt,
    handler: Arc<dyn PromptHandler>,
    completers: HashMap<String, Arc<dyn Completer>>,
}

impl Prompt {
    /// A prompt that is filled in by a function.
    pub fn new<F, W>(name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(PromptArguments, RequestContext) -> W + Send + Sync + 'static,
        W: Future<Output = Result<PromptReply, HandlerError>> + Send + 'static,
    {
        Self::from_handler(name, Function(handler))
    }

    /// A prompt with a handler of one's own type.
    pub fn from_handler(name: impl Into<String>, handler: impl PromptHandler) -> Self {
        Self { definition: types::Prompt::new(name), handler: Arc::new(handler), completers: HashMap::new() }
    }

    definition_setters! {
        /// What a person sees.
        title: String;
        /// What the prompt is for.
        description: String;
        /// Pictures for lists.
        icons: Vec<Icon>;
        /// `_meta` of the definition.
        meta: MetaObject;
    }

    /// Adds an argument.
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.definition.arguments.get_or_insert_with(Vec::new).push(argument);
        self
    }

    /// Adds an argument that has to be given.
    pub fn required(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        let mut argument = PromptArgument::new(name);
        argument.description = Some(description.into());
        argument.required = Some(true);
        self.argument(argument)
    }

    /// Adds an argument that may be left out.
    pub fn optional(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        let mut argument = PromptArgument::new(name);
        argument.description = Some(description.into());
        self.argument(argument)
    }

    /// Suggests values for an argument.
    pub fn complete(mut self, argument: impl Into<String>, completer: impl Completer) -> Self {
        self.completers.insert(argument.into(), Arc::new(completer));
        self
    }

    /// The name that clients will know.
    pub(crate) fn name_mut(&mut self) -> &mut String {
        &mut self.definition.name
    }

    pub(crate) fn compile(self) -> Result<PromptEntry, RegistrationError> {
        if self.definition.name.is_empty() {
            return Err(RegistrationError::Name(String::new()));
        }
        let declared = self.definition.arguments.as_deref().unwrap_or_default();
        for argument in self.completers.keys() {
            if !declared.iter().any(|known| known.name == *argument) {
                return Err(RegistrationError::Completer(argument.clone()));
            }
        }
        Ok(PromptEntry {
            definition: self.definition,
            handler: self.handler,
            completers: self.completers,
            rendered: Rendered::default(),
        })
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.definition.name).finish_non_exhaustive()
    }
}

/// A registered prompt.
pub(crate) struct PromptEntry {
    pub(crate) definition: types::Prompt,
    pub(crate) handler: Arc<dyn PromptHandler>,
    pub(crate) completers: HashMap<String, Arc<dyn Completer>>,
    rendered: Rendered,
}

impl Entry for PromptEntry {
    fn key(&self) -> &str {
        &self.definition.name
    }

    fn render(&self, revision: Revision) -> Bytes {
        let mut definition = self.definition.clone();
        definition.for_rules(revision.rules());
        registry::encode(&definition)
    }

    fn rendered(&self) -> &Rendered {
        &self.rendered
    }
}

struct Function<F>(F);

#[async_trait]
impl<F, W> PromptHandler for Function<F>
where
    F: Fn(PromptArguments, RequestContext) -> W + Send + Sync + 'static,
    W: Future<Output = Result<PromptReply, HandlerError>> + Send + 'static,
{
    async fn fill(
        self: Arc<Self>,
        arguments: PromptArguments,
        context: RequestContext,
    ) -> Result<PromptReply, HandlerError> {
        (self.0)(arguments, context).await
    }
}
