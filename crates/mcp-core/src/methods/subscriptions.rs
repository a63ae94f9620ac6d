//! `subscriptions/listen`: change notices on a stream of their own.
//!
//! Why here: in the modern era nothing is sent unasked.
//! Invariants: what is acknowledged is what will be delivered; bounded by the number of URIs and of subscriptions.
//! Spec: 2026-07-28 basic/patterns/subscriptions

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_wire::capability::ClientCapability;
use mcp_wire::types::{ListenParams, MetaObject, SubscriptionFilter};
use mcp_wire::{ErrorCode, RawJson, RpcError, params};
use serde_json::{Value, json};

use super::Incoming;
use crate::access::{Action, Item};
use crate::engine::exchange::Exchange;
use crate::engine::hub::{Grant, Listening, Named, OfExtensions, Wants};
use crate::engine::peer::Interruptible;
use crate::extension::Extension;
use crate::protocol::finish::{Dress, response};
use crate::protocol::rejection::{Hint, missing_capability};
use crate::resource::{Address, normalized};
use crate::telemetry::Open;
use crate::{OwnerKey, Server};

pub(super) fn listen(request: Incoming) -> Exchange {
    let raw = request.params.raw().unwrap_or(RawJson::EMPTY_OBJECT);
    let params: ListenParams = match raw.parse() {
        Ok(params) => params,
        Err(error) => {
            return request.fail(RpcError::invalid_params(format!("params.notifications must be a filter: {error}")));
        }
    };
    let filter = params.notifications;
    let wishes = match wishes(&request, &raw) {
        Ok(wishes) => wishes,
        Err(refusal) => return *refusal,
    };
    if filter.task_ids.is_some() && !wishes.iter().any(|wish| wish.member == "taskIds") {
        // No extension here can tell of tasks.
        let required = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let required = required.as_object().cloned().unwrap_or_default();
        return request
            .refuse(missing_capability(request.revision.rules().missing_capability, &required), Hint::BadRequest);
    }
    let limits = request.server.limits();
    let uris = filter.resource_subscriptions.iter().flatten().map(String::as_str);
    if let Err(bound) = limits.named(uris) {
        let text = format!("params.notifications.resourceSubscriptions names too much: {bound}");
        return request.fail(RpcError::invalid_params(text));
    }
    if !request.streaming {
        let text = "a subscription needs a client that accepts an event stream";
        return request.refuse(RpcError::new(ErrorCode::INVALID_REQUEST, text), Hint::BadRequest);
    }
    let offered = request.server.capabilities(request.revision);
    let mut honoured = SubscriptionFilter::default();
    if filter.tools_list_changed == Some(true) && offered.tools.is_some() {
        honoured.tools_list_changed = Some(true);
    }
    if filter.prompts_list_changed == Some(true) && offered.prompts.is_some() {
        honoured.prompts_list_changed = Some(true);
    }
    if offered.resources.is_some() {
        if filter.resources_list_changed == Some(true) {
            honoured.resources_list_changed = Some(true);
        }
        honoured.resource_subscriptions = filter
            .resource_subscriptions
            .map(|uris| uris.into_iter().filter(|uri| may_subscribe(&request, uri)).collect());
    }
    let (kinds, granted) = match extended(&request, &raw, &honoured) {
        Ok(extended) => extended,
        Err(error) => return request.fail(error),
    };
    let wants = Wants {
        tools: honoured.tools_list_changed.is_some(),
        prompts: honoured.prompts_list_changed.is_some(),
        resources: honoured.resources_list_changed.is_some(),
        uris: honoured.resource_subscriptions.into_iter().flatten().map(Address).collect(),
        of_extensions: OfExtensions::new(kinds, wishes.iter().flat_map(Wish::all).collect()),
    };
    let in_flight = match request.ids.as_ref().map(|ids| ids.enter(&request.id)).transpose() {
        Ok(in_flight) => in_flight,
        Err(error) => return request.fail(error),
    };
    let most = limits.sessions.saturating_add(limits.subscriptions);
    let Ok(subscription) = request.server.hub().subscribe(wants, most) else {
        let error = RpcError::new(ErrorCode::INTERNAL_ERROR, "there are too many subscriptions; try again later");
        request.server.meter().refused("subscriptions");
        return request.fail(error);
    };
    let subscription = subscription.counted(request.server.meter().opened(Open::Subscription));
    if let Some(in_flight) = &in_flight {
        in_flight.reaches(Interruptible::Listen(subscription.subscriber().clone()));
    }
    let closing = response(&request.id, &Dress { subscription: Some(&request.id), ..request.dress() }, &json!({}));
    let closing = closing.unwrap_or_default();
    let grant = if wishes.is_empty() {
        Grant::Known(granted)
    } else {
        Grant::Asked(Box::pin(asked(wishes, granted, request.principal.key(), request.server.clone())))
    };
    Exchange::listen(Listening::new(subscription, request.id, grant, closing), in_flight)
}

/// Things of an extension that a filter names.
struct Wish {
    member: String,
    notification: Arc<str>,
    names: Vec<String>,
    extension: Arc<dyn Extension>,
}

impl Wish {
    fn all(&self) -> impl Iterator<Item = Named> {
        self.names.iter().map(|name| (Arc::clone(&self.notification), name.as_str().into()))
    }
}

/// What the filter names of extensions. Whoever did not declare the extension is refused: -32021.
fn wishes(request: &Incoming, raw: &RawJson) -> Result<Vec<Wish>, Box<Exchange>> {
    let mut wishes = Vec::new();
    let limits = request.server.limits();
    for kind in request.server.extensions().kinds(request.revision).filter(|kind| kind.is_named) {
        let Some(names) = member(raw, &kind.member).map_err(|error| Box::new(request.fail(error)))? else { continue };
        let needed = ClientCapability::Extension(kind.extension_id().to_owned());
        if !request.client.capabilities.supports(&needed) {
            let mut required = MetaObject::new();
            needed.add_to(&mut required);
            let error = missing_capability(request.revision.rules().missing_capability, &required);
            return Err(Box::new(request.refuse(error, Hint::BadRequest)));
        }
        let wrong = |text: String| Box::new(request.fail(RpcError::invalid_params(text)));
        let names: Vec<String> = names
            .parse()
            .map_err(|_| wrong(format!("params.notifications.{} must be a list of strings", kind.member)))?;
        limits
            .named(names.iter().map(String::as_str))
            .map_err(|bound| wrong(format!("params.notifications.{} names too much: {bound}", kind.member)))?;
        let (member, notification) = (kind.member.clone(), Arc::clone(&kind.notification));
        wishes.push(Wish { member, notification, names, extension: kind.extension() });
    }
    Ok(wishes)
}

/// Lets extensions say which of the things that were named the caller may hear of.
async fn asked(
    wishes: Vec<Wish>,
    mut granted: MetaObject,
    owner: OwnerKey,
    server: Server,
) -> (MetaObject, BTreeSet<Named>) {
    let mut named = BTreeSet::new();
    for wish in wishes {
        let Wish { member, notification, names, extension } = wish;
        let allowed = extension.grants(&member, names, owner, &server).await;
        named.extend(allowed.iter().map(|name| (Arc::clone(&notification), name.as_str().into())));
        granted.insert(member, allowed.into());
    }
    (granted, named)
}

/// A member of the filter.
fn member(raw: &RawJson, name: &str) -> Result<Option<RawJson>, RpcError> {
    let unread = |error: params::ParamsError| RpcError::invalid_params(error.to_string());
    let filter = params::member_of(raw, "notifications").map_err(unread)?;
    Ok(filter.map(|filter| params::member_of(&filter, name)).transpose().map_err(unread)?.flatten())
}

/// Whether the caller may hear of this address. One that is no address at all is nobody's secret.
fn may_subscribe(request: &Incoming, uri: &str) -> bool {
    let Some(key) = normalized(uri) else { return true };
    let item = Item::Resource(&key);
    request.sees(item) && request.denied(Action::Subscribe, item).is_none()
}

/// The kinds of extensions that the filter asks for, and all that is granted as it is acknowledged.
fn extended(
    request: &Incoming,
    raw: &RawJson,
    honoured: &SubscriptionFilter,
) -> Result<(BTreeSet<Arc<str>>, MetaObject), RpcError> {
    let mut kinds = BTreeSet::new();
    let Ok(Value::Object(mut granted)) = serde_json::to_value(honoured) else { return Err(RpcError::internal()) };
    for kind in request.server.extensions().kinds(request.revision).filter(|kind| !kind.is_named) {
        if member(raw, &kind.member)?.is_some_and(|member| member.as_str() == "true") {
            kinds.insert(Arc::clone(&kind.notification));
            granted.insert(kind.member.clone(), true.into());
        }
    }
    Ok((kinds, granted))
}
