//! Extensions: methods, notices and a capability that a value from outside brings, in both eras.
//!
//! Why here: what the protocol does not have is added without a change of the engine, and without a way around its checks.
//! Invariants: what an extension brings is fixed when the server is built; no name has two owners; what is not advertised
//! under a revision does not exist there.
//! Spec: 2026-07-28 basic/index, "Extensions"; 2025-11-25 basic/lifecycle, "Capability Negotiation"

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp_wire::capability::ClientCapability;
use mcp_wire::types::{CacheHints, MetaObject};
use mcp_wire::{Gate, Method, RawJson, Revision, RpcError, encode_notification};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::call::CallExecutor;
use crate::engine::exchange::Outbound;
use crate::server::RegistrationError;
use crate::{HandlerError, OwnerKey, RequestContext, Server};

/// Something that a server can do beyond the protocol: see [`ServerBuilder::extension`](crate::ServerBuilder::extension).
///
/// Everything but [`handle`](Self::handle) is asked once, when the server is built.
#[async_trait]
pub trait Extension: Send + Sync + 'static {
    /// The identifier: a prefix that its author owns, a slash, and a name, as in `com.example/feature`.
    fn id(&self) -> &str;

    /// The settings to advertise under `revision`; an empty object where there is nothing to set. `None` where the
    /// extension is not offered: its methods do not exist there, and it tells nothing.
    ///
    /// Clients find them among the `extensions`, and under revisions without extensions among what is `experimental`.
    fn advertise(&self, revision: Revision) -> Option<MetaObject>;

    /// The capability of the protocol itself that the settings are advertised as under `revision`, instead of among the
    /// extensions. Default: none.
    fn protocol_capability(&self, revision: Revision) -> Option<ProtocolCapability> {
        let _ = revision;
        None
    }

    /// What runs the calls of tools, if this extension does. A server has at most one such extension. Default: the engine
    /// runs them.
    fn executor(self: Arc<Self>) -> Option<Arc<dyn CallExecutor>> {
        None
    }

    /// The methods that clients may call.
    fn methods(&self) -> Vec<ExtensionMethod>;

    /// The notifications that [`RequestContext::notify`] may send while a request is served; each begins with
    /// `notifications/`. Default: none.
    fn notifications(&self) -> Vec<String> {
        Vec::new()
    }

    /// What clients may be told of without having asked, by
    /// [`Server::extension_changed`](crate::Server::extension_changed). Default: nothing.
    fn subscription_kinds(&self) -> Vec<SubscriptionKind> {
        Vec::new()
    }

    /// Which of the things that a filter names under `member`, a kind [of things](SubscriptionKind::of_named), their
    /// `owner` may hear of; in the order given. Default: none.
    async fn grants(
        self: Arc<Self>,
        member: &str,
        names: Vec<String>,
        owner: OwnerKey,
        server: &Server,
    ) -> Vec<String> {
        let _ = (member, names, owner, server);
        Vec::new()
    }

    /// Answers a request for one of the methods. As every handler it may [ask](RequestContext::ask), and then runs again.
    ///
    /// # Errors
    /// See [`HandlerError`]; anything but an error made on purpose is -32603.
    async fn handle(
        self: Arc<Self>,
        request: ExtensionRequest,
        context: RequestContext,
    ) -> Result<ExtensionReply, HandlerError>;
}

/// A capability that the protocol has a name for, and leaves to extensions here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolCapability {
    /// `tasks` of 2025-11-25.
    Tasks,
}

/// A method of an extension.
#[derive(Clone, Debug)]
#[must_use = "a method is served once its extension returns it"]
pub struct ExtensionMethod {
    name: String,
    target: Option<String>,
    needs_declaration: bool,
    revisions: Option<RangeInclusive<Revision>>,
    timeout: Option<Option<Duration>>,
}

impl ExtensionMethod {
    /// A method that any client may call, under every revision that the extension is advertised in.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), target: None, needs_declaration: false, revisions: None, timeout: None }
    }

    /// Says which member of the parameters names what the request is about. A carrier with headers repeats it in
    /// `Mcp-Name`, and the two are compared.
    pub fn target(mut self, member: impl Into<String>) -> Self {
        self.target = Some(member.into());
        self
    }

    /// Refuses clients that did not declare the extension on the request: -32021. Clients with a handshake have nowhere
    /// to declare it and are served.
    pub fn needs_declaration(mut self) -> Self {
        self.needs_declaration = true;
        self
    }

    /// How long one attempt to answer may take; `None` for as long as it likes. Default:
    /// [`Limits::call_timeout`](crate::Limits::call_timeout).
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = Some(timeout.into());
        self
    }

    /// Serves the method under these revisions only, as far as the extension is advertised there.
    pub fn revisions(mut self, revisions: RangeInclusive<Revision>) -> Self {
        self.revisions = Some(revisions);
        self
    }
}

/// A kind of change that an extension tells of.
///
/// Clients with a session are told of every kind. Others open a stream by `subscriptions/listen` with the member set to
/// `true` in their filter.
#[derive(Clone, Debug)]
#[must_use = "a kind is told of once its extension returns it"]
pub struct SubscriptionKind {
    member: String,
    notification: String,
    is_named: bool,
}

impl SubscriptionKind {
    /// A change that `notification` tells of, and that the member `member` of a filter asks for.
    pub fn new(member: impl Into<String>, notification: impl Into<String>) -> Self {
        Self { member: member.into(), notification: notification.into(), is_named: false }
    }

    /// Changes of single things, which the member `member` of a filter lists by their names:
    /// [`Extension::grants`] decides which of them, and [`Server::named_changed`](crate::Server::named_changed) tells.
    /// Clients with a session are told by [`Session::tell`](crate::Session::tell) alone.
    pub fn of_named(member: impl Into<String>, notification: impl Into<String>) -> Self {
        Self { is_named: true, ..Self::new(member, notification) }
    }
}

/// A request for a method of an extension.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExtensionRequest {
    /// One of the extension's methods.
    pub method: Method,
    /// The parameters with everything that came in them; an empty object where there were none.
    pub params: RawJson,
}

impl ExtensionRequest {
    /// The parameters as a type; members that it does not have are ignored.
    ///
    /// # Errors
    /// -32602 that says what does not fit; -32700 for a number or a text that nothing can hold.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        self.params.parse().map_err(|error| {
            let what = format!("params of \"{}\"", self.method);
            HandlerError::rpc(RpcError::undecodable(&what, &error))
        })
    }
}

/// What an extension answers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExtensionReply {
    /// The members of the result: an object without `_meta` and `resultType`, and with [hints](Self::cache) without `ttlMs`
    /// and `cacheScope`, which the engine writes where the revision has them. Anything else is -32603.
    pub result: RawJson,
    /// How long clients may keep it. Default: nothing is said of that.
    pub hints: Option<CacheHints>,
    /// `_meta` of the result.
    pub meta: Option<MetaObject>,
}

impl ExtensionReply {
    /// A result with the members of `result`.
    ///
    /// # Errors
    /// When it cannot be written as JSON: -32603.
    pub fn new<T: Serialize + ?Sized>(result: &T) -> Result<Self, HandlerError> {
        let result = RawJson::from_serialize(result).map_err(HandlerError::internal)?;
        Ok(Self { result, hints: None, meta: None })
    }

    /// Says how long clients may keep it.
    #[must_use]
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.hints = Some(hints);
        self
    }

    /// Adds `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: MetaObject) -> Self {
        self.meta = Some(meta);
        self
    }
}

impl RequestContext {
    /// Sends a notification of an extension on the stream of this request. Never waits; beyond
    /// [`Limits::notices`](crate::Limits::notices) it is dropped. Nothing is sent where the extension is not advertised,
    /// or to a client that takes no stream. A handler that asks runs again, and sends again what it sent before.
    ///
    /// # Errors
    /// When no extension of this server owns the name, or `params` is no object: -32603.
    pub fn notify<P: Serialize + ?Sized>(&self, notification: &str, params: &P) -> Result<(), HandlerError> {
        let state = &*self.0;
        let Some(owner) = state.server.extensions().notifications.get(notification) else {
            return Err(HandlerError::internal(format!("no extension owns \"{notification}\"")));
        };
        let params = RawJson::from_serialize(params).map_err(HandlerError::internal)?;
        if !params.is_object() {
            return Err(HandlerError::internal(format!("the parameters of \"{notification}\" are no object")));
        }
        if state.streaming && owner.is_advertised(state.revision) {
            let frame = encode_notification(notification, Some(&params)).map_err(HandlerError::internal)?;
            state.outbox.push(Outbound::Notification(frame));
        }
        Ok(())
    }
}

/// What does not fit about an extension: see [`RegistrationError::Extension`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionError {
    /// The identifier has no prefix or no name.
    #[error("an identifier is a prefix, a slash and a name, without blanks")]
    Id,
    /// Another extension has the identifier.
    #[error("there is an extension with this identifier already")]
    TakenId,
    /// No request can have this name.
    #[error("\"{0}\" is no usable name of a method")]
    Method(String),
    /// The protocol or an extension has the method.
    #[error("the method \"{0}\" is served already")]
    TakenMethod(String),
    /// No notification can have this name.
    #[error("\"{0}\" is no usable name of a notification: it begins with \"notifications/\"")]
    Notification(String),
    /// The protocol, another extension or another kind has the notification.
    #[error("the notification \"{0}\" is sent already")]
    TakenNotification(String),
    /// Another extension runs the calls of tools.
    #[error("the calls of tools are run by another extension already")]
    TakenCalls,
    /// The filter of subscriptions has the member, or it is empty.
    #[error("\"{0}\" is no usable member of a filter, or has a meaning already")]
    Kind(String),
}

/// The extensions of a server, fixed when it is built.
#[derive(Default)]
pub(crate) struct Extensions {
    entries: Vec<Arc<Entry>>,
    methods: HashMap<String, Served>,
    notifications: HashMap<String, Arc<Entry>>,
    kinds: Vec<Kind>,
    executor: Option<Arc<dyn CallExecutor>>,
}

/// One extension with what it said when the server was built.
struct Entry {
    id: String,
    extension: Arc<dyn Extension>,
    offers: BTreeMap<Revision, (MetaObject, Option<ProtocolCapability>)>,
}

impl Entry {
    fn is_advertised(&self, revision: Revision) -> bool {
        self.offers.contains_key(&revision)
    }
}

/// A method of an extension, with what has to be checked before it is served.
pub(crate) struct Served {
    entry: Arc<Entry>,
    /// The member that names what a request is about.
    pub(crate) target: Option<String>,
    /// What a client has to declare on each request, where requests declare anything.
    pub(crate) needs: Vec<ClientCapability>,
    /// Where it is served at all; everywhere if nothing else was said.
    revisions: Option<RangeInclusive<Revision>>,
    /// How long an attempt may take, if that is not the server's default.
    pub(crate) timeout: Option<Option<Duration>>,
}

impl Served {
    pub(crate) fn is_offered(&self, revision: Revision) -> bool {
        self.revisions.as_ref().is_none_or(|served| served.contains(&revision)) && self.entry.is_advertised(revision)
    }

    pub(crate) fn extension(&self) -> Arc<dyn Extension> {
        Arc::clone(&self.entry.extension)
    }
}

/// A kind of change as a server keeps it.
pub(crate) struct Kind {
    entry: Arc<Entry>,
    pub(crate) member: String,
    pub(crate) notification: Arc<str>,
    /// Things with names are wanted one by one.
    pub(crate) is_named: bool,
}

impl Kind {
    pub(crate) fn extension_id(&self) -> &str {
        &self.entry.id
    }

    pub(crate) fn extension(&self) -> Arc<dyn Extension> {
        Arc::clone(&self.entry.extension)
    }
}

/// The members that the protocol's own filter has.
const FILTER: [&str; 4] = ["toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions"];

impl Extensions {
    /// Adds an extension.
    pub(crate) fn add(&mut self, extension: Arc<dyn Extension>) -> Result<(), RegistrationError> {
        let id = extension.id().to_owned();
        self.insert(extension).map_err(|problem| RegistrationError::Extension { id, problem })
    }

    fn insert(&mut self, extension: Arc<dyn Extension>) -> Result<(), ExtensionError> {
        let id = extension.id().to_owned();
        if !id.split_once('/').is_some_and(|(prefix, name)| is_word(prefix) && is_word(name)) {
            return Err(ExtensionError::Id);
        }
        if self.entries.iter().any(|other| other.id == id) {
            return Err(ExtensionError::TakenId);
        }
        let offered = Revision::ALL.into_iter();
        let offers = offered
            .filter_map(|each| Some((each, (extension.advertise(each)?, extension.protocol_capability(each)))))
            .collect();
        if let Some(executor) = Arc::clone(&extension).executor() {
            if self.executor.is_some() {
                return Err(ExtensionError::TakenCalls);
            }
            self.executor = Some(executor);
        }
        let entry = Arc::new(Entry { id, extension, offers });
        for method in entry.extension.methods() {
            self.add_method(&entry, method)?;
        }
        for notification in entry.extension.notifications() {
            self.add_notification(&entry, notification)?;
        }
        for kind in entry.extension.subscription_kinds() {
            self.add_kind(&entry, kind)?;
        }
        self.entries.push(entry);
        Ok(())
    }

    fn add_method(&mut self, entry: &Arc<Entry>, method: ExtensionMethod) -> Result<(), ExtensionError> {
        let ExtensionMethod { name, target, needs_declaration, revisions, timeout } = method;
        let known = Method::from(name.as_str());
        if !is_word(&name) || known.is_notification() {
            return Err(ExtensionError::Method(name));
        }
        if is_cores(&known) || self.methods.contains_key(&name) {
            return Err(ExtensionError::TakenMethod(name));
        }
        let needs = if needs_declaration { vec![ClientCapability::Extension(entry.id.clone())] } else { Vec::new() };
        self.methods.insert(name, Served { entry: Arc::clone(entry), target, needs, revisions, timeout });
        Ok(())
    }

    fn add_notification(&mut self, entry: &Arc<Entry>, name: String) -> Result<(), ExtensionError> {
        let known = Method::from(name.as_str());
        if !is_word(&name) || !known.is_notification() {
            return Err(ExtensionError::Notification(name));
        }
        if is_cores(&known) || self.notifications.get(&name).is_some_and(|owner| !Arc::ptr_eq(owner, entry)) {
            return Err(ExtensionError::TakenNotification(name));
        }
        self.notifications.insert(name, Arc::clone(entry));
        Ok(())
    }

    fn add_kind(&mut self, entry: &Arc<Entry>, kind: SubscriptionKind) -> Result<(), ExtensionError> {
        let SubscriptionKind { member, notification, is_named } = kind;
        if member.is_empty() || FILTER.contains(&&*member) || self.kinds.iter().any(|other| other.member == member) {
            return Err(ExtensionError::Kind(member));
        }
        if self.kinds.iter().any(|other| *other.notification == *notification) {
            return Err(ExtensionError::TakenNotification(notification));
        }
        self.add_notification(entry, notification.clone())?;
        self.kinds.push(Kind { entry: Arc::clone(entry), member, notification: Arc::from(notification), is_named });
        Ok(())
    }

    /// What is advertised under a revision, by identifier, and as what where the protocol has a name for it.
    pub(crate) fn advertised(
        &self,
        revision: Revision,
    ) -> impl Iterator<Item = (&str, &MetaObject, Option<ProtocolCapability>)> {
        self.entries.iter().filter_map(move |entry| {
            let (settings, capability) = entry.offers.get(&revision)?;
            Some((entry.id.as_str(), settings, *capability))
        })
    }

    /// What runs the calls of tools, if the engine does not.
    pub(crate) fn executor(&self) -> Option<&Arc<dyn CallExecutor>> {
        self.executor.as_ref()
    }

    /// The method, if an extension brought it.
    pub(crate) fn method(&self, method: &Method) -> Option<&Served> {
        // Most requests are for methods of the protocol.
        if method.gate() != Gate::Extension {
            return None;
        }
        self.methods.get(method.as_str())
    }

    /// The methods that extensions brought.
    pub(crate) fn method_names(&self) -> impl Iterator<Item = &str> {
        self.methods.keys().map(|name| &**name)
    }

    /// The kinds of change that clients of a revision may be told of.
    pub(crate) fn kinds(&self, revision: Revision) -> impl Iterator<Item = &Kind> {
        self.kinds.iter().filter(move |kind| kind.entry.is_advertised(revision))
    }
}

/// Whether the protocol itself has the name and no extension may bring it.
fn is_cores(method: &Method) -> bool {
    !matches!(method, Method::Other(_)) && method.gate() != Gate::Extension
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|each| each.is_whitespace() || each.is_control())
}
