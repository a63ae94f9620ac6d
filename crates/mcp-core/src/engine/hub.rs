//! Change notices: who wants to know, and what changed since they were last told.
//!
//! Why here: one fan-out for legacy sessions, modern subscriptions and every transport.
//! Invariants: notices are levels, not edges: a subscriber holds at most one mark per kind and per URI it named, however
//! much changes; the acknowledgement of a subscription is its first item by construction.
//! Spec: 2026-07-28 basic/patterns/subscriptions, "Notification Delivery"

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use mcp_wire::types::{ElicitationCompleteParams, MetaObject};
use mcp_wire::{Method, RawJson, RequestId, RpcError, encode_error, encode_notification, params};
use serde::Serialize;

use super::bus::Abroad;
use super::exchange::Outbound;
use super::worker::{BoxFuture, panic_text, poll_caught};
use crate::limits::Limits;
use crate::protocol::rejection::Hint;
use crate::resource::Address;
use crate::telemetry::Held;

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    Tools,
    Prompts,
    Resources,
    Resource(&'a Address),
    /// Of a kind that an extension brought, by its notification.
    Extension(&'a str),
    /// Nobody knows what: everything that is wanted.
    Everything,
    /// Of one thing that an extension has names for: the notification, the name, and what there is to tell.
    Named(&'a str, &'a str, &'a RawJson),
    /// The user of this one session is done at a page.
    Visit(&'a str),
}

/// What is told of a thing with a name: the notification and the name.
pub(crate) type Named = (Arc<str>, Box<str>);

/// As many things with names may be told of at a time; of more, the one that comes first is not.
const NAMED: usize = 1_000;

/// Every subscriber of a server.
#[derive(Default)]
pub(crate) struct Hub {
    /// Where other processes are told, if there are any.
    abroad: Option<Abroad>,
    state: Mutex<HubState>,
}

#[derive(Default)]
struct HubState {
    next: u64,
    closing: bool,
    subscribers: HashMap<u64, Arc<Subscriber>>,
    /// Those that want to know of things with names, so that nobody else is looked at for one of them.
    of_named: BTreeSet<u64>,
}

/// One subscriber's filter, marks and wake-up.
#[derive(Default)]
pub(crate) struct Subscriber {
    state: Mutex<SubscriberState>,
}

#[derive(Default)]
struct SubscriberState {
    wants: Wants,
    /// What has to be told. Made when there is something: most subscribers hear of nothing for most of their time.
    marks: Option<Box<Marks>>,
    closing: bool,
    withdrawn: bool,
    waker: Option<Waker>,
}

/// What a subscriber wants to know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wants {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) uris: BTreeSet<Address>,
    pub(crate) of_extensions: OfExtensions,
}

/// What a subscriber wants to know of extensions. Most want nothing, and keep no room for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfExtensions(Option<Box<Extended>>);

#[derive(Clone, Debug, Default)]
struct Extended {
    notifications: BTreeSet<Arc<str>>,
    things: BTreeSet<Named>,
}

impl OfExtensions {
    pub(crate) fn new(notifications: BTreeSet<Arc<str>>, things: BTreeSet<Named>) -> Self {
        let nothing = notifications.is_empty() && things.is_empty();
        Self((!nothing).then(|| Box::new(Extended { notifications, things })))
    }

    fn notifications(&self) -> Option<&BTreeSet<Arc<str>>> {
        self.0.as_ref().map(|extended| &extended.notifications)
    }

    fn notification(&self, name: &str) -> Option<&Arc<str>> {
        self.notifications()?.get(name)
    }

    fn wants_things(&self) -> bool {
        self.0.as_ref().is_some_and(|extended| !extended.things.is_empty())
    }

    fn wants_thing(&self, key: &Named) -> bool {
        self.0.as_ref().is_some_and(|extended| extended.things.contains(key))
    }
}

#[derive(Default)]
struct Marks {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: BTreeSet<Address>,
    kinds: BTreeSet<Arc<str>>,
    /// What there is to tell of each, and of nothing twice.
    named: BTreeMap<Named, RawJson>,
    /// As many as may be open at a time.
    visits: BTreeSet<String>,
}

/// A notice that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    Tools,
    Prompts,
    Resources,
    Updated(String),
    Extension(Arc<str>),
    Named(Arc<str>, RawJson),
    Visited(String),
}

/// What a subscriber finds when it looks.
pub(crate) enum Due {
    Notice(Notice),
    /// The server ends the subscription.
    Closing,
    /// The peer ended it.
    Withdrawn,
}

/// There are as many subscribers as the limit allows.
#[derive(Debug)]
pub(crate) struct HubFull;

impl Hub {
    /// One that tells other processes, and hears from them.
    pub(crate) fn sharing(abroad: Abroad) -> Self {
        Self { abroad: Some(abroad), state: Mutex::default() }
    }

    pub(crate) fn abroad(&self) -> Option<&Abroad> {
        self.abroad.as_ref()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a subscriber until the returned value is dropped.
    pub(crate) fn subscribe(self: &Arc<Self>, wants: Wants, limit: usize) -> Result<Subscription, HubFull> {
        let mut state = self.state();
        if state.subscribers.len() >= limit {
            return Err(HubFull);
        }
        let wants_named = wants.of_extensions.wants_things();
        let key = state.next;
        state.next += 1;
        let subscriber = Arc::new(Subscriber::default());
        {
            let mut own = subscriber.state();
            own.wants = wants;
            own.closing = state.closing;
        }
        state.subscribers.insert(key, Arc::clone(&subscriber));
        if wants_named {
            state.of_named.insert(key);
        }
        drop(state);
        Ok(Subscription { hub: Arc::clone(self), key, subscriber, counted: None })
    }

    /// Marks a change with everyone who wants to know, in other processes too.
    pub(crate) fn publish(&self, change: Change<'_>) {
        self.mark_all(change);
        if let Some(abroad) = &self.abroad {
            abroad.tell(change);
        }
    }

    /// Marks a change with everyone here who wants to know.
    pub(crate) fn mark_all(&self, change: Change<'_>) {
        let state = self.state();
        if let Change::Named(..) = change {
            state.of_named().for_each(|subscriber| subscriber.mark(change));
            return;
        }
        for subscriber in state.subscribers.values() {
            subscriber.mark(change);
        }
    }

    /// Whether anybody wants to know of this thing.
    pub(crate) fn is_wanted(&self, notification: &str, name: &str) -> bool {
        let key = (Arc::from(notification), Box::from(name));
        self.state().of_named().any(|subscriber| subscriber.wants_named(&key))
    }

    /// Ends every subscription, those to come included.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closing = true;
        for subscriber in state.subscribers.values() {
            subscriber.wake_with(|own| own.closing = true);
        }
    }
}

impl HubState {
    fn of_named(&self) -> impl Iterator<Item = &Arc<Subscriber>> {
        self.of_named.iter().filter_map(|key| self.subscribers.get(key))
    }
}

/// A place among the subscribers, given back when dropped.
pub(crate) struct Subscription {
    hub: Arc<Hub>,
    key: u64,
    subscriber: Arc<Subscriber>,
    /// Counts it for as long as it is there.
    counted: Option<Held>,
}

impl Subscription {
    /// Counts as this while it lasts.
    pub(crate) fn counted(mut self, held: Held) -> Self {
        self.counted = Some(held);
        self
    }

    pub(crate) fn subscriber(&self) -> &Arc<Subscriber> {
        &self.subscriber
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        state.subscribers.remove(&self.key);
        state.of_named.remove(&self.key);
    }
}

impl Subscriber {
    fn state(&self) -> std::sync::MutexGuard<'_, SubscriberState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_with(&self, change: impl FnOnce(&mut SubscriberState)) {
        let waker = {
            let mut state = self.state();
            change(&mut state);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn mark(&self, change: Change<'_>) {
        let waker = {
            let mut state = self.state();
            let marked = match change {
                Change::Tools => state.wants.tools && !std::mem::replace(&mut state.marks().tools, true),
                Change::Prompts => state.wants.prompts && !std::mem::replace(&mut state.marks().prompts, true),
                Change::Resources => state.wants.resources && !std::mem::replace(&mut state.marks().resources, true),
                Change::Resource(uri) => {
                    // Told as it was asked for, however it was changed.
                    let wanted = state.wants.uris.get(uri).cloned();
                    wanted.is_some_and(|uri| state.marks().uris.insert(uri))
                }
                Change::Extension(kind) => {
                    let wanted = state.wants.of_extensions.notification(kind).cloned();
                    wanted.is_some_and(|kind| state.marks().kinds.insert(kind))
                }
                Change::Everything => state.mark_everything(),
                Change::Named(notification, name, params) => {
                    let key = (Arc::from(notification), Box::from(name));
                    let wanted = state.wants.of_extensions.wants_thing(&key);
                    if wanted {
                        state.marks().named.insert(key, params.clone());
                    }
                    wanted
                }
                Change::Visit(id) => state.marks().visits.insert(id.to_owned()),
            };
            if marked { state.waker.take() } else { None }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Adds a URI and returns it as it was first written.
    ///
    /// # Errors
    /// Which bound it is beyond.
    pub(crate) fn add_uri(&self, uri: &str, limits: &Limits) -> Result<String, String> {
        let mut state = self.state();
        let uri = Address(uri.to_owned());
        if let Some(known) = state.wants.uris.get(&uri) {
            return Ok(known.0.clone());
        }
        limits.named(state.wants.uris.iter().chain([&uri]).map(|uri| uri.0.as_str()))?;
        state.wants.uris.insert(uri.clone());
        Ok(uri.0)
    }

    /// Removes a URI and returns it as it was first written.
    pub(crate) fn remove_uri(&self, uri: &str) -> Option<String> {
        let mut state = self.state();
        let uri = state.wants.uris.take(&Address(uri.to_owned()))?;
        if let Some(marks) = &mut state.marks {
            marks.uris.remove(&uri);
        }
        Some(uri.0)
    }

    /// Replaces the addresses that are wanted.
    pub(crate) fn want_uris(&self, uris: &BTreeSet<String>) {
        let mut state = self.state();
        let SubscriberState { wants, marks, .. } = &mut *state;
        wants.uris = uris.iter().cloned().map(Address).collect();
        if let Some(marks) = marks {
            marks.uris.retain(|uri| wants.uris.contains(uri));
        }
    }

    /// Tells of a thing with a name, wanted or not.
    pub(crate) fn tell(&self, notification: &str, name: &str, params: RawJson) {
        self.wake_with(|state| {
            let named = &mut state.marks().named;
            named.insert((notification.into(), name.into()), params);
            if named.len() > NAMED {
                named.pop_first();
            }
        });
    }

    /// Of the things with names, only these are wanted from now on.
    pub(crate) fn want_named(&self, named: BTreeSet<Named>) {
        let mut state = self.state();
        if let Some(marks) = &mut state.marks {
            marks.named.retain(|key, _| named.contains(key));
        }
        let kinds = state.wants.of_extensions.notifications().cloned().unwrap_or_default();
        state.wants.of_extensions = OfExtensions::new(kinds, named);
    }

    fn wants_named(&self, key: &Named) -> bool {
        self.state().wants.of_extensions.wants_thing(key)
    }

    pub(crate) fn withdraw(&self) {
        self.wake_with(|state| state.withdrawn = true);
    }

    /// Ends this one subscription as the end of the server would.
    pub(crate) fn close(&self) {
        self.wake_with(|state| state.closing = true);
    }

    /// The next thing due; remembers whom to wake otherwise.
    pub(crate) fn poll_due(&self, context: &mut Context<'_>) -> Poll<Due> {
        let mut state = self.state();
        if state.withdrawn {
            return Poll::Ready(Due::Withdrawn);
        }
        if let Some(notice) = state.marks.as_mut().and_then(|marks| marks.take()) {
            return Poll::Ready(Due::Notice(notice));
        }
        state.marks = None;
        if state.closing {
            return Poll::Ready(Due::Closing);
        }
        if !state.waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            state.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl SubscriberState {
    fn marks(&mut self) -> &mut Marks {
        self.marks.get_or_insert_default()
    }

    /// Marks all that is wanted; whether there was any.
    fn mark_everything(&mut self) -> bool {
        let Self { wants, marks, .. } = self;
        let marks = marks.get_or_insert_default();
        marks.tools |= wants.tools;
        marks.prompts |= wants.prompts;
        marks.resources |= wants.resources;
        marks.uris.clone_from(&wants.uris);
        marks.kinds = wants.of_extensions.notifications().cloned().unwrap_or_default();
        wants.tools || wants.prompts || wants.resources || !wants.uris.is_empty() || !marks.kinds.is_empty()
    }
}

impl Marks {
    /// The next notice that is due.
    fn take(&mut self) -> Option<Notice> {
        if std::mem::take(&mut self.tools) {
            return Some(Notice::Tools);
        }
        if std::mem::take(&mut self.prompts) {
            return Some(Notice::Prompts);
        }
        if std::mem::take(&mut self.resources) {
            return Some(Notice::Resources);
        }
        if let Some(uri) = self.uris.pop_first() {
            return Some(Notice::Updated(uri.0));
        }
        if let Some(kind) = self.kinds.pop_first() {
            return Some(Notice::Extension(kind));
        }
        if let Some(((notification, _), params)) = self.named.pop_first() {
            return Some(Notice::Named(notification, params));
        }
        self.visits.pop_first().map(Notice::Visited)
    }
}

impl Notice {
    /// The notification, tagged with the subscription it belongs to where there is one.
    pub(crate) fn frame(&self, subscription: Option<&RequestId>) -> Option<Bytes> {
        let (method, uri) = match self {
            Self::Tools => (Method::ToolsListChanged.as_str(), None),
            Self::Prompts => (Method::PromptsListChanged.as_str(), None),
            Self::Resources => (Method::ResourcesListChanged.as_str(), None),
            Self::Extension(notification) => (&**notification, None),
            Self::Visited(id) => {
                let params = ElicitationCompleteParams::new(id.clone());
                return encode_notification(Method::ElicitationComplete.as_str(), Some(&params)).ok();
            }
            Self::Named(notification, params) => {
                let Some(subscription) = subscription else {
                    return encode_notification(notification, Some(params)).ok();
                };
                let mut members: BTreeMap<String, RawJson> = params.parse().ok()?;
                members.insert("_meta".to_owned(), RawJson::from_serialize(&tag(subscription)).ok()?);
                return encode_notification(notification, Some(&members)).ok();
            }
            Self::Updated(uri) => (Method::ResourceUpdated.as_str(), Some(&**uri)),
        };
        let params = NoticeParams { uri, notifications: None, meta: subscription.map(tag) };
        let params = (uri.is_some() || subscription.is_some()).then_some(params);
        encode_notification(method, params.as_ref()).ok()
    }
}

/// What a notice says.
#[derive(Serialize)]
struct NoticeParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notifications: Option<&'a MetaObject>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Tag<'a>>,
}

/// The subscription that something belongs to. Not by way of a `Value`, in which an id of many digits would be rounded.
type Tag<'a> = BTreeMap<&'static str, &'a RequestId>;

fn tag(id: &RequestId) -> Tag<'_> {
    BTreeMap::from([(params::SUBSCRIPTION_ID, id)])
}

/// What is granted of a filter, as it is acknowledged.
pub(crate) enum Grant {
    /// All is known.
    Known(MetaObject),
    /// An extension has to look at what was named; what it does not grant is not told.
    Asked(BoxFuture<(MetaObject, BTreeSet<Named>)>),
}

/// The exchange of a `subscriptions/listen` request.
pub(crate) struct Listening {
    subscription: Subscription,
    id: RequestId,
    /// Until it is acknowledged.
    grant: Option<Grant>,
    closing: Bytes,
}

impl Listening {
    /// `closing` is the response that ends it. The subscriber is in place already, so that no change is lost between
    /// here and the acknowledgement.
    pub(crate) fn new(subscription: Subscription, id: RequestId, grant: Grant, closing: Bytes) -> Self {
        Self { subscription, id, grant: Some(grant), closing }
    }

    pub(crate) fn id(&self) -> &RequestId {
        &self.id
    }

    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Outbound>> {
        if let Some(grant) = &mut self.grant {
            let granted = match grant {
                Grant::Known(granted) => std::mem::take(granted),
                Grant::Asked(asked) => match std::task::ready!(poll_caught(asked.as_mut(), context)) {
                    Ok((granted, named)) => {
                        self.subscription.subscriber.want_named(named);
                        granted
                    }
                    Err(payload) => {
                        tracing::error!(panic = panic_text(&*payload), "an extension panicked");
                        let frame = encode_error(Some(&self.id), &RpcError::internal(), false);
                        return Poll::Ready(Some(Outbound::Response(frame, Hint::Ok)));
                    }
                },
            };
            self.grant = None;
            let params = NoticeParams { uri: None, notifications: Some(&granted), meta: Some(tag(&self.id)) };
            let frame = encode_notification(Method::SubscriptionsAcknowledged.as_str(), Some(&params));
            if let Ok(frame) = frame {
                return Poll::Ready(Some(Outbound::Notification(frame)));
            }
        }
        loop {
            match std::task::ready!(self.subscription.subscriber.poll_due(context)) {
                Due::Notice(notice) => {
                    if let Some(frame) = notice.frame(Some(&self.id)) {
                        return Poll::Ready(Some(Outbound::Notification(frame)));
                    }
                }
                Due::Closing => return Poll::Ready(Some(Outbound::Response(self.closing.clone(), Hint::Ok))),
                Due::Withdrawn => return Poll::Ready(None),
            }
        }
    }
}
