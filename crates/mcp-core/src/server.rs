//! The server: what it offers, its bounds, its keys, and the door for transports.
//!
//! Why here: one cheap handle that transports and handlers share; two servers in a process share nothing.
//! Invariants: what is advertised is what is served; every change of the registry is announced.
//! Spec: 2026-07-28 server/discover; 2025-11-25 basic/lifecycle

mod builder;
mod handshake;
mod mount;
mod registration;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, Guard};
use mcp_wire::types::{CacheHints, CacheScope, Implementation};
use mcp_wire::{Gate, Message, Method, RawJson, Revision};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::Principal;
use crate::access::Access;
use crate::clock::Clock;
use crate::engine::call::CallExecutor;
use crate::engine::hub::{Change, Hub};
use crate::engine::peer::{Peer, Scope};
use crate::engine::visits::{NoSuchVisit, Visits};
use crate::extension::Extensions;
use crate::layer::CallLayer;
use crate::limits::Limits;
use crate::protocol::admit::{self, Classified, Facts, ToolRules};
use crate::protocol::schema::SchemaValidator;
use crate::protocol::seal::KeyRing;
use crate::registry::Registry;
use crate::resource::Address;
use crate::telemetry::{Meter, OnTrace};

pub use builder::ServerBuilder;
pub use handshake::Handshake;
use registration::Offers;
pub use registration::{Offer, RegistrationError};

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
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("info", &self.0.info).finish_non_exhaustive()
    }
}
