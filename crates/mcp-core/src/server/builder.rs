//! Putting a server together: every choice with its default, checked once, when it is built.
//!
//! Why here: what is decided before a server runs, apart from what a running server does.
//! Invariants: nothing is registered unless everything can be; what is advertised follows from what is registered.

use std::fmt;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use mcp_wire::types::{CacheHints, CacheScope, Implementation};
use mcp_wire::{Era, Revision};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::mount::{Parts, fill};
use super::{Inner, Offer, Offers, RegistrationError, Server};
use crate::access::{Access, AccessPolicy};
use crate::clock::Clock;
use crate::engine::bus::Abroad;
use crate::engine::hub::Hub;
use crate::engine::visits::Visits;
use crate::extension::{Extension, Extensions};
use crate::layer::CallLayer;
use crate::limits::Limits;
use crate::prompt::Prompt;
use crate::protocol::schema::SchemaValidator;
use crate::protocol::seal::{KeyRing, StateKey};
use crate::registry::Registry;
use crate::resource::{Resource, ResourceTemplate};
use crate::store::NoticeBus;
use crate::telemetry::{Meter, OnTrace};
use crate::tool::{Surroundings, Tool};
use crate::trace::TraceContext;

impl Server {
    /// Begins a server with a name and a version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder {
            info: Implementation::new(name, version),
            hide_info: false,
            instructions: None,
            limits: Limits::default(),
            offers: Offers::default(),
            list_hints: CacheHints::new(0, CacheScope::Private),
            discover_hints: CacheHints::new(0, CacheScope::Private),
            revisions: Revision::ALL.to_vec(),
            validator: None,
            keys: None,
            access: Access::default(),
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            extensions: Vec::new(),
            layers: Vec::new(),
            mounted: Vec::new(),
            bus: None,
            on_trace: None,
        }
    }
}

/// Puts a server together.
#[must_use = "a builder does nothing until it builds"]
pub struct ServerBuilder {
    pub(super) info: Implementation,
    pub(super) hide_info: bool,
    pub(super) instructions: Option<String>,
    pub(super) limits: Limits,
    pub(super) offers: Offers,
    pub(super) list_hints: CacheHints,
    pub(super) discover_hints: CacheHints,
    pub(super) revisions: Vec<Revision>,
    pub(super) validator: Option<Arc<dyn SchemaValidator>>,
    pub(super) keys: Option<KeyRing>,
    pub(super) access: Access,
    pub(super) tools: Vec<Tool>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) extensions: Vec<Arc<dyn Extension>>,
    pub(super) layers: Vec<Arc<dyn CallLayer>>,
    pub(super) mounted: Vec<(String, Self)>,
    bus: Option<Arc<dyn NoticeBus>>,
    on_trace: Option<OnTrace>,
}

impl ServerBuilder {
    /// What the server says of itself beyond name and version.
    pub fn info(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// Leaves the server's name and version out of modern results.
    pub fn without_server_info(mut self) -> Self {
        self.hide_info = true;
        self
    }

    /// What the model should know of the server as a whole.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Replaces the bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Advertises a kind of thing of which nothing is registered yet.
    pub fn offer(mut self, offer: Offer) -> Self {
        match offer {
            Offer::Tools => self.offers.tools = true,
            Offer::Resources => self.offers.resources = true,
            Offer::Prompts => self.offers.prompts = true,
            Offer::Completions => self.offers.completions = true,
        }
        self
    }

    /// How long modern clients may keep lists and resources. Default: not at all, and for themselves only.
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.list_hints = hints;
        self
    }

    /// How long modern clients may keep what `server/discover` says. Default: not at all.
    pub fn discover_cache(mut self, hints: CacheHints) -> Self {
        self.discover_hints = hints;
        self
    }

    /// Serves these revisions only. Default: all.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.revisions = revisions.into_iter().collect();
        self
    }

    /// Checks schemas with this validator. Default: the built-in one, with the feature `jsonschema`.
    pub fn validator(mut self, validator: impl SchemaValidator) -> Self {
        self.validator = Some(Arc::new(validator));
        self
    }

    /// Seals request states with these keys. Default: a random key, so that a call in flight neither survives a restart
    /// nor reaches another copy of the server.
    pub fn state_keys(mut self, keys: KeyRing) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Decides with this policy what each caller sees and may use. Default: everybody everything, apart from what tools
    /// ask for themselves. What callers may keep is then for themselves only, whatever [`Self::cache`] says.
    pub fn access(mut self, policy: impl AccessPolicy) -> Self {
        self.access = Access::of(Arc::new(policy));
        self
    }

    /// Registers a tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Registers a resource.
    pub fn resource(mut self, resource: Resource) -> Self {
        self.resources.push(resource);
        self
    }

    /// Registers a resource template.
    pub fn resource_template(mut self, template: ResourceTemplate) -> Self {
        self.templates.push(template);
        self
    }

    /// Registers a prompt.
    pub fn prompt(mut self, prompt: Prompt) -> Self {
        self.prompts.push(prompt);
        self
    }

    /// Puts a layer around every call of a tool, whenever the tool is registered. The first one is the outermost, and all
    /// are around the tools' own.
    pub fn layer(mut self, layer: impl CallLayer) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }

    /// Makes another server's things this server's.
    ///
    /// Tools and prompts get `prefix` and a dot before their names; the prefix has what a tool's name may have. Addresses
    /// mean the same everywhere, so resources and templates keep theirs. In lists, what is this server's own comes first,
    /// then what is mounted, in the order of this call. A name or address that is there twice fails the
    /// [build](Self::build). The other server's instructions follow this one's, under `prefix.*`. Its layers stay around
    /// its own tools, inside of this server's. What it offers and its extensions are added. Whatever else was set there
    /// (name, limits, validator, keys, revisions, caches) does not count; an [access policy](Self::access) there fails the
    /// build, because it would be lost.
    ///
    /// ```
    /// # use mcp_core::{NoArguments, Server, Tool};
    /// let files = Server::builder("files", "1.0.0").tool(Tool::plain("count", |_: NoArguments| "7"));
    /// let server = Server::builder("desk", "1.0.0").mount("files", files).build()?;    // serves "files.count"
    /// # drop(server);
    /// # Ok::<(), mcp_core::RegistrationError>(())
    /// ```
    pub fn mount(mut self, prefix: impl Into<String>, other: Self) -> Self {
        self.mounted.push((prefix.into(), other));
        self
    }

    /// Tells other processes of changes and hears of theirs, over a bus that all of them are given. Somebody has to run
    /// [`Server::share_notices`]; an endpoint over HTTP does. Default: none.
    pub fn notice_bus(mut self, bus: Arc<dyn NoticeBus>) -> Self {
        self.bus = Some(bus);
        self
    }

    /// Joins the program's traces with those of its clients: called with the span of each request that named a valid
    /// `traceparent`, before the span is entered, and only where the span is enabled. It may not block; a panic in it is logged
    /// and changes nothing. `examples/otlp` gives the span its parent here. Default: none.
    pub fn on_trace(mut self, join: impl Fn(&tracing::Span, &TraceContext) + Send + Sync + 'static) -> Self {
        self.on_trace = Some(Arc::new(join));
        self
    }

    /// Adds an extension.
    pub fn extension(mut self, extension: impl Extension) -> Self {
        self.extensions.push(Arc::new(extension));
        self
    }

    /// The server.
    ///
    /// # Errors
    /// The first thing that could not be registered.
    pub fn build(mut self) -> Result<Server, RegistrationError> {
        let parts = Parts::of(&mut self)?;
        let instructions = parts.instructions();
        let validator = match self.validator {
            Some(validator) => validator,
            None => default_validator()?,
        };
        let blocking = Arc::new(Semaphore::new(self.limits.blocking.max(1)));
        let mut extensions = Extensions::default();
        for extension in self.extensions {
            extensions.add(extension)?;
        }
        let mut registry = Registry::default();
        let surroundings = Surroundings {
            validator: &*validator,
            default_timeout: self.limits.call_timeout,
            blocking: &blocking,
            has_tasks: extensions.executor().is_some(),
        };
        fill(&mut registry.tools, parts.tools, |mut tool| {
            tool.enclose(&self.layers);
            tool.compile(&surroundings)
        })?;
        fill(&mut registry.resources, parts.resources, Resource::compile)?;
        fill(&mut registry.templates, parts.templates, ResourceTemplate::compile)?;
        fill(&mut registry.prompts, parts.prompts, Prompt::compile)?;
        let meter = Meter::new(extensions.method_names());
        let offers = Offers {
            tools: self.offers.tools || !registry.tools.is_empty(),
            resources: self.offers.resources || !registry.resources.is_empty() || !registry.templates.is_empty(),
            prompts: self.offers.prompts || !registry.prompts.is_empty(),
            completions: self.offers.completions
                || registry.templates.iter().any(|template| !template.completers.is_empty())
                || registry.prompts.iter().any(|prompt| !prompt.completers.is_empty()),
        };
        let keys = match self.keys {
            Some(keys) => keys,
            None => KeyRing::new(StateKey::random().map_err(|_| RegistrationError::NoRandomness)?),
        };
        let of_era = |era: Era| -> Vec<Revision> {
            let served = Revision::ALL.into_iter().rev();
            served.filter(|revision| revision.era() == era && self.revisions.contains(revision)).collect()
        };
        let (modern, legacy) = (of_era(Era::Modern), of_era(Era::Legacy));
        let listed = modern.iter().chain(&legacy).copied().collect();
        let hub = match self.bus {
            Some(bus) => {
                let process = crate::random::id().map_err(|_| RegistrationError::NoRandomness)?;
                Hub::sharing(Abroad::new(bus, process))
            }
            None => Hub::default(),
        };
        let (visits, visit_lifetime) = (self.limits.visits, self.limits.visit_lifetime);
        let info_json = if self.hide_info { None } else { serde_json::to_string(&self.info).ok() };
        Ok(Server(Arc::new(Inner {
            info_json,
            info: self.info,
            instructions,
            limits: self.limits,
            offers,
            extensions,
            list_hints: self.list_hints,
            discover_hints: self.discover_hints,
            modern,
            legacy,
            listed,
            registry: ArcSwap::from_pointee(registry),
            changing: Mutex::new(()),
            validator,
            blocking,
            layers: self.layers.into(),
            hub: Arc::new(hub),
            visits: Visits::new(visits, visit_lifetime),
            keys: ArcSwap::from_pointee(keys),
            access: self.access,
            closing: CancellationToken::new(),
            root: CancellationToken::new(),
            clock: Clock::start(),
            meter,
            on_trace: self.on_trace,
        })))
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("info", &self.info).finish_non_exhaustive()
    }
}

#[cfg(feature = "jsonschema")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature there is none")]
fn default_validator() -> Result<Arc<dyn SchemaValidator>, RegistrationError> {
    Ok(Arc::new(crate::protocol::schema::BuiltinValidator::default()))
}

#[cfg(not(feature = "jsonschema"))]
fn default_validator() -> Result<Arc<dyn SchemaValidator>, RegistrationError> {
    Err(RegistrationError::NoValidator)
}
