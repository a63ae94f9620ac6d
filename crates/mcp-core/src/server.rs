//! The server: what it offers, its bounds, its keys, and the door for transports.
//!
//! Why here: one cheap handle that transports and handlers share; two servers in a process share nothing.
//! Invariants: what is advertised is what is served; every change of the registry is announced.
//! Spec: 2026-07-28 server/discover; 2025-11-25 basic/lifecycle

mod builder;
mod mount;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use mcp_wire::capability::ServerCapabilities;
use mcp_wire::types::{CacheHints, CacheScope, Implementation, InitializeParams, InitializeResult};
use mcp_wire::{ErrorCode, Gate, Message, Method, RawJson, Request, Revision, RpcError, encode_error, encode_result};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::clock::Clock;
use crate::engine::call::CallExecutor;
use crate::engine::hub::{Change, Hub, Wants};
use crate::engine::peer::{Ids, Peer, Scope};
use crate::engine::sessions::{Agreement, Session};
use crate::engine::visits::{NoSuchVisit, Visits};
use crate::extension::{ExtensionError, Extensions, ProtocolCapability};
use crate::layer::CallLayer;
use crate::limits::Limits;
use crate::prompt::Prompt;
use crate::protocol::admit::{self, Classified, Facts, ToolRules};
use crate::protocol::rejection::Hint;
use crate::protocol::schema::{SchemaError, SchemaValidator};
use crate::protocol::seal::KeyRing;
use crate::registry::{Registry, Table};
use crate::resource::{Address, Resource, ResourceTemplate, normalized};
use crate::store::SessionRecord;
use crate::telemetry::{self, Meter, OnTrace, Open};
use crate::tool::{Surroundings, Tool};
use crate::uri_template::UriTemplateError;
use crate::{ClientFacts, Principal, random};

pub use builder::ServerBuilder;

/// An MCP server without a transport. Cheap to clone; every clone is the same server.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    info: Implementation,
    /// `info` encoded for results, where results name the server.
    info_json: Option<String>,
    instructions: Option<String>,
    limits: Limits,
    offers: Offers,
    extensions: Extensions,
    list_hints: CacheHints,
    discover_hints: CacheHints,
    modern: Vec<Revision>,
    legacy: Vec<Revision>,
    listed: Vec<Revision>,
    registry: ArcSwap<Registry>,
    /// Held while the registry is copied and swapped.
    changing: Mutex<()>,
    validator: Arc<dyn SchemaValidator>,
    blocking: Arc<Semaphore>,
    /// Around every tool, those to come included.
    layers: Box<[Arc<dyn CallLayer>]>,
    hub: Arc<Hub>,
    visits: Visits,
    keys: ArcSwap<KeyRing>,
    access: Access,
    closing: CancellationToken,
    root: CancellationToken,
    clock: Clock,
    meter: Meter,
    on_trace: Option<OnTrace>,
}

/// The kinds of things a server offers, as its capabilities tell.
#[derive(Clone, Copy, Debug, Default)]
struct Offers {
    tools: bool,
    resources: bool,
    prompts: bool,
    completions: bool,
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
        /// Where it is registered: the prefix of what is [mounted](ServerBuilder::mount), empty for the server itself.
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

fn add<E: crate::registry::Entry>(table: &mut Table<E>, entry: E) -> Result<(), RegistrationError> {
    let key = entry.key().to_owned();
    let taken = |key| RegistrationError::Taken { key, first: String::new(), second: String::new() };
    if table.insert(entry) { Ok(()) } else { Err(taken(key)) }
}

/// What a handshake came to: see [`Server::handshake`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Handshake {
    /// The response frame.
    pub response: Bytes,
    /// What it means for a status.
    pub hint: Hint,
    pub(crate) agreement: Option<Agreement>,
}

impl Handshake {
    /// Whether both sides agreed, so that a session may be opened.
    #[must_use]
    pub fn is_agreed(&self) -> bool {
        self.agreement.is_some()
    }
}

impl Server {
    /// The server's bounds.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The revisions that are served, the newest first.
    #[must_use]
    pub fn revisions(&self) -> &[Revision] {
        &self.0.listed
    }

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

    /// Tells whoever subscribed to this resource that it changed.
    pub fn resource_updated(&self, uri: &str) {
        self.0.hub.publish(Change::Resource(&Address(uri.to_owned())));
    }

    /// Tells clients that the list of tools changed for a reason that the registry does not see.
    pub fn tools_changed(&self) {
        self.0.hub.publish(Change::Tools);
    }

    /// Tells clients that the list of prompts changed for a reason that the registry does not see.
    pub fn prompts_changed(&self) {
        self.0.hub.publish(Change::Prompts);
    }

    /// Tells clients that the list of resources changed for a reason that the registry does not see.
    pub fn resources_changed(&self) {
        self.0.hub.publish(Change::Resources);
    }

    /// Tells clients of a change of the kind that `notification` tells of: see [`SubscriptionKind`]. Nobody is told where
    /// no extension brought such a kind.
    ///
    /// [`SubscriptionKind`]: crate::SubscriptionKind
    pub fn extension_changed(&self, notification: &str) {
        self.0.hub.publish(Change::Extension(notification));
    }

    /// Whether anybody listens for changes of the thing `name`: see [`Self::named_changed`].
    #[must_use]
    pub fn is_listened_to(&self, notification: &str, name: &str) -> bool {
        self.0.hub.is_wanted(notification, name)
    }

    /// Tells whoever was [granted](crate::Extension::grants) to hear of the thing `name` how it is now. `params` is an object
    /// without `_meta`; who has not been told of an earlier state yet is told of this one only. Who listens at another
    /// process is not told.
    pub fn named_changed(&self, notification: &str, name: &str, params: &RawJson) {
        self.0.hub.publish(Change::Named(notification, name, params));
    }

    /// Replaces the keys that seal request states: see [`KeyRing`].
    pub fn rotate_state_keys(&self, keys: KeyRing) {
        self.0.keys.store(Arc::new(keys));
    }

    /// Decides the era of a message. `declared` is the carrier's version header, if the carrier has one and it came.
    #[must_use]
    pub fn classify(&self, message: Message, declared: Option<&str>) -> Classified {
        admit::classify(message, declared, &self.0.listed)
    }

    /// The side of a conversation that receives messages of `principal`.
    #[must_use]
    pub fn peer(&self, principal: Principal, scope: Scope) -> Peer {
        Peer::new(self.clone(), principal, scope)
    }

    /// Answers an `initialize` request. Nothing is remembered: a session is opened by [`Self::open_session`].
    #[must_use]
    pub fn handshake(&self, request: &Request) -> Handshake {
        match self.agree(request) {
            Ok((agreement, result)) => {
                telemetry::shaken(self, request, Ok(agreement.revision));
                let response = encode_result(&request.id, &result).unwrap_or_default();
                Handshake { response, hint: Hint::Ok, agreement: Some(agreement) }
            }
            Err(error) => {
                telemetry::shaken(self, request, Err(error.code));
                let response = encode_error(Some(&request.id), &error, false);
                // Whoever looks for a server of this era has to find that there is none.
                let hint = if error.code == ErrorCode::UNSUPPORTED_VERSION { Hint::BadRequest } else { Hint::Ok };
                Handshake { response, hint, agreement: None }
            }
        }
    }

    /// Opens the session that a handshake agreed on, owned by `principal`.
    ///
    /// # Errors
    /// When the handshake was refused, or there is no room or randomness for another session.
    pub fn open_session(&self, principal: Principal, handshake: Handshake) -> Result<Session, RpcError> {
        let Some(agreement) = handshake.agreement else {
            return Err(RpcError::new(ErrorCode::INVALID_REQUEST, "the handshake was refused"));
        };
        let ids = Arc::new(Ids::new(self.0.limits.in_flight_per_peer));
        self.new_session(principal, agreement, ids)
    }

    /// Opens a session here that another process has opened before, for the principal whose record it is. Whoever carries its
    /// messages [shares](Session::share) it and lets it [follow](Session::follow) the record.
    ///
    /// # Errors
    /// When the record is somebody else's or of a revision that is not served, or there is no room for another session.
    pub fn adopt_session(&self, principal: Principal, record: &SessionRecord) -> Result<Session, RpcError> {
        if principal.key() != record.owner || !self.0.legacy.contains(&record.revision) {
            return Err(RpcError::new(ErrorCode::INVALID_REQUEST, "there is no such session here"));
        }
        let client = ClientFacts { capabilities: record.capabilities.clone(), info: record.client_info.clone() };
        let agreement = Agreement { revision: record.revision, client };
        let ids = Arc::new(Ids::new(self.0.limits.in_flight_per_peer));
        self.session(record.id.clone(), principal, agreement, ids)
    }

    /// Whether the server was given a [bus](ServerBuilder::notice_bus).
    #[must_use]
    pub fn shares_notices(&self) -> bool {
        self.0.hub.abroad().is_some()
    }

    /// Exchanges change notices with other processes, over the [bus](ServerBuilder::notice_bus) if there is one, until the
    /// future is dropped or the server has stopped. Notices wait meanwhile for whoever runs this, as a bounded set; run
    /// twice, the second waits for the first to end. A bus that fails is tried again each second.
    pub async fn share_notices(&self) {
        let Some(abroad) = self.0.hub.abroad() else { return };
        self.0.root.run_until_cancelled(abroad.run(&self.0.hub)).await;
        abroad.leave().await;
    }

    /// Ends the server: pipes stop reading, subscriptions get their closing result at once, calls have `grace` to finish,
    /// then everything is cancelled. Transports of other kinds stop taking messages before they call this.
    ///
    /// Takes `grace`, however early the calls finish: who knows that nothing is under way drops the future.
    pub async fn shutdown(&self, grace: Duration) {
        self.0.closing.cancel();
        self.0.hub.close();
        tokio::time::sleep(grace).await;
        self.0.root.cancel();
    }

    /// Tells the client that sent its user to a page, as a [`Visit`](crate::Visit) with this name, that the user is done
    /// there. Once, and only for the principal who was asked; to be called by whoever serves the page.
    ///
    /// # Errors
    /// When there is no such visit: unknown, completed, expired after [`Limits::visit_lifetime`], ended with its session,
    /// or somebody else's. Which of these, is not told.
    pub fn visit_completed(&self, id: &str, owner: &Principal) -> Result<(), NoSuchVisit> {
        self.0.visits.complete(id, owner)
    }

    /// What the server counts. Carriers add what the engine does not see.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.0.meter
    }

    pub(crate) fn on_trace(&self) -> Option<&OnTrace> {
        self.0.on_trace.as_ref()
    }

    pub(crate) fn visits(&self) -> &Visits {
        &self.0.visits
    }

    /// Whether a shutdown has begun.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.0.closing.is_cancelled()
    }

    /// A token that is cancelled when the grace of a shutdown has passed; calls under way are cancelled by it.
    #[must_use]
    pub fn stopped(&self) -> CancellationToken {
        self.0.root.clone()
    }

    /// What time it is by the clock that the server's states and sessions expire by: the wall clock as it was when the server
    /// was built, and what has passed since.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        self.0.clock.now()
    }

    /// How long it is until `moment` by the clock that the server's states and sessions expire by; zero when it has passed.
    #[must_use]
    pub fn time_until(&self, moment: SystemTime) -> Duration {
        self.0.clock.until(moment)
    }

    fn agree(&self, request: &Request) -> Result<(Agreement, InitializeResult), RpcError> {
        let params = request.params.raw().unwrap_or_default();
        let most = self.0.limits.handshake_bytes;
        if params.as_str().len() > most {
            let text = format!("the parameters of \"initialize\" may have at most {most} bytes");
            return Err(RpcError::invalid_params(text));
        }
        let params: InitializeParams = params.parse().map_err(|error| {
            RpcError::invalid_params(format!(
                "\"initialize\" needs \"protocolVersion\", \"capabilities\" and \"clientInfo\": {error}"
            ))
        })?;
        let asked = params.protocol_version.parse::<Revision>().ok().filter(|asked| self.0.legacy.contains(asked));
        let Some(revision) = asked.or_else(|| self.0.legacy.first().copied()) else {
            let supported: Vec<&str> = self.0.listed.iter().map(|revision| revision.as_str()).collect();
            let requested: String = params.protocol_version.chars().take(100).collect();
            let error = RpcError::new(ErrorCode::UNSUPPORTED_VERSION, "no revision with a handshake is served here");
            return Err(error.with_data(serde_json::json!({ "supported": supported, "requested": requested })));
        };
        let mut info = self.0.info.clone();
        info.for_rules(revision.rules());
        let mut result = InitializeResult::new(revision.as_str(), self.capabilities(revision), info);
        result.instructions.clone_from(&self.0.instructions);
        let client_info = RawJson::from_serialize(&params.client_info).ok();
        let client = ClientFacts { capabilities: params.capabilities, info: client_info };
        Ok((Agreement { revision, client }, result))
    }

    pub(crate) fn new_session(
        &self,
        principal: Principal,
        agreement: Agreement,
        ids: Arc<Ids>,
    ) -> Result<Session, RpcError> {
        let id = random::id().map_err(|_| RpcError::internal())?;
        self.session(id, principal, agreement, ids)
    }

    fn session(
        &self,
        id: String,
        principal: Principal,
        agreement: Agreement,
        ids: Arc<Ids>,
    ) -> Result<Session, RpcError> {
        let wants = Wants {
            tools: self.0.offers.tools,
            prompts: self.0.offers.prompts,
            resources: self.0.offers.resources,
            kinds: self.0.extensions.kinds(agreement.revision).map(|kind| Arc::clone(&kind.notification)).collect(),
            ..Wants::default()
        };
        let most = self.0.limits.sessions.saturating_add(self.0.limits.subscriptions);
        let changes = self.0.hub.subscribe(wants, most).map_err(|_| {
            self.meter().refused("sessions");
            RpcError::new(ErrorCode::INTERNAL_ERROR, "there are too many sessions; try again later")
        })?;
        let changes = changes.counted(self.meter().opened(Open::Session));
        Ok(Session::open(id, principal, agreement, ids, changes, self.0.limits.pending_requests, self.0.root.clone()))
    }

    /// What is advertised under a revision.
    pub(crate) fn capabilities(&self, revision: Revision) -> ServerCapabilities {
        let offers = self.0.offers;
        let mut capabilities = ServerCapabilities::new().with_logging();
        if offers.tools {
            capabilities = capabilities.with_tools(true);
        }
        if offers.resources {
            capabilities = capabilities.with_resources(true, true);
        }
        if offers.prompts {
            capabilities = capabilities.with_prompts(true);
        }
        // The capability has a name from the revision on that brought tool annotations.
        if offers.completions && revision.rules().tool_annotations {
            capabilities = capabilities.with_completions();
        }
        for (id, settings, capability) in self.0.extensions.advertised(revision) {
            match capability {
                Some(ProtocolCapability::Tasks) => capabilities.tasks = Some(Box::new(settings.clone().into())),
                None if revision.rules().extensions => {
                    capabilities = capabilities.with_extension(id, settings.clone());
                }
                None => {
                    let experimental = capabilities.experimental.get_or_insert_default();
                    experimental.insert(id.to_owned(), settings.clone().into());
                }
            }
        }
        capabilities
    }

    pub(crate) fn facts<'a>(&'a self, method: &Method, tool: Option<&'a ToolRules>) -> Facts<'a> {
        let extension = self.0.extensions.method(method);
        Facts { served: &self.0.modern, listed: &self.0.listed, offered: self, tool, extension }
    }

    /// Whether what a gate guards is offered; what extensions bring is theirs to say.
    pub(crate) fn is_offered(&self, gate: Gate) -> bool {
        match gate {
            Gate::Open | Gate::Logging => true,
            Gate::Tools => self.0.offers.tools,
            Gate::Resources | Gate::ResourceSubscriptions => self.0.offers.resources,
            Gate::Prompts => self.0.offers.prompts,
            Gate::Completions => self.0.offers.completions,
            _ => false,
        }
    }

    /// What runs the calls of tools, if the engine does not.
    pub(crate) fn executor(&self) -> Option<Arc<dyn CallExecutor>> {
        self.0.extensions.executor().cloned()
    }

    pub(crate) fn extensions(&self) -> &Extensions {
        &self.0.extensions
    }

    pub(crate) fn registry(&self) -> Guard<Arc<Registry>> {
        self.0.registry.load()
    }

    pub(crate) fn state_keys(&self) -> Guard<Arc<KeyRing>> {
        self.0.keys.load()
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.0.hub
    }

    /// Completes when the shutdown has begun.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    pub(crate) fn root(&self) -> &CancellationToken {
        &self.0.root
    }

    /// The time by that clock, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.0.clock.now_ms()
    }

    pub(crate) fn info_json(&self) -> Option<&str> {
        self.0.info_json.as_deref()
    }

    pub(crate) fn instructions(&self) -> Option<&str> {
        self.0.instructions.as_deref()
    }

    pub(crate) fn list_hints(&self) -> CacheHints {
        self.own_hints(self.0.list_hints)
    }

    /// The hints, for one caller alone where callers see different things.
    pub(crate) fn own_hints(&self, mut hints: CacheHints) -> CacheHints {
        if self.0.access.is_set() {
            hints.cache_scope = CacheScope::Private;
        }
        hints
    }

    pub(crate) fn access(&self) -> &Access {
        &self.0.access
    }

    pub(crate) fn discover_hints(&self) -> CacheHints {
        self.0.discover_hints
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

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("info", &self.0.info).finish_non_exhaustive()
    }
}
