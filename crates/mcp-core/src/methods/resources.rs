//! `resources/read`, and the legacy subscriptions to single resources.
//!
//! Why here: look-up by address, then by template, is one rule for reading and subscribing.
//! Invariants: a resource that does not exist is always an error that carries its address; of several templates that
//! match, the most specific one serves.
//! Spec: 2026-07-28 server/resources, "Reading Resources"

use std::sync::Arc;

use mcp_wire::types::{CacheHints, ReadResourceResult, ResourceContents};
use mcp_wire::{ErrorCode, RawJson, RpcError, Rules};
use serde_json::json;

use super::{Call, Incoming};
use crate::access::{Action, Item};
use crate::engine::exchange::{Exchange, Finished};
use crate::engine::rounds::{self, Halt, Subject};
use crate::engine::worker::Deadline;
use crate::handler::{Fault, ResourceHandler};
use crate::protocol::rejection::Hint;
use crate::registry::Registry;
use crate::resource::{ReadRequest, TemplateEntry, normalized, text_member};
use crate::uri_template::Variables;
use crate::{HandlerError, RequestContext};

pub(super) fn read(request: Incoming) -> Exchange {
    let uri = match text_member("uri", request.params.uri.as_ref()) {
        Ok(uri) => uri,
        Err(error) => return request.fail(error),
    };
    let found = match find(&request, &uri) {
        Ok(found) => found,
        Err(error) => return request.fail(error),
    };
    if let Some(denied) = request.denied(Action::Read, Item::Resource(&found.key)) {
        return denied;
    }
    // A fresh resource may be kept; the answer to a repeated request may not.
    let retried = request.params.request_state.is_some() || request.params.input_responses.is_some();
    let hints = found.hints.map_or_else(|| request.server.list_hints(), |hints| request.server.own_hints(hints));
    let subject = Subject { method: request.method.clone(), target: uri, arguments: RawJson::EMPTY_OBJECT };
    request.start(subject, move |context, call| run(context, call, found, hints, retried))
}

async fn run(context: RequestContext, call: Call, found: Found, hints: CacheHints, retried: bool) -> Finished {
    let state = Arc::clone(&context.0);
    let limit = state.server.limits().call_timeout;
    let attempt = || {
        let handler = Arc::clone(&found.handler);
        let running = Deadline::new(handler.read(found.request.clone(), context.clone()), limit);
        async move {
            running.await.unwrap_or_else(|_| {
                let text = "the resource could not be read in time";
                Err(HandlerError::rpc(RpcError::new(ErrorCode::INTERNAL_ERROR, text)))
            })
        }
    };
    match rounds::drive(&context, &call.subject, attempt).await {
        Ok(reply) if reply.contents.is_empty() => state.failed(&missing(&call.subject.target, state.rules()), Hint::Ok),
        Ok(reply) => {
            let mut result = ReadResourceResult::new(reply.contents);
            result.for_rules(state.rules());
            let mut hints = reply.hints.map_or(hints, |hints| state.server.own_hints(hints));
            if retried {
                hints.ttl_ms = 0;
            }
            let bulk = result.contents.iter().map(ResourceContents::bulk).sum();
            state.finished(&result, bulk, reply.meta.as_ref(), Some(hints))
        }
        Err(Halt::Fault(Fault::NotFound)) => state.failed(&missing(&call.subject.target, state.rules()), Hint::Ok),
        Err(halt) => state.halted(halt),
    }
}

/// A resource that can be read.
struct Found {
    /// Its address, normalized.
    key: String,
    handler: Arc<dyn ResourceHandler>,
    request: ReadRequest,
    hints: Option<CacheHints>,
}

fn find(request: &Incoming, uri: &str) -> Result<Found, RpcError> {
    let (registry, rules) = (request.server.registry(), request.revision.rules());
    let Some(key) = normalized(uri) else {
        let error = RpcError::invalid_params("params.uri must be an absolute address: a scheme, a colon and no blanks");
        return Err(error.with_data(json!({ "uri": uri })));
    };
    // Whoever does not see an address does not learn whether anything is there.
    if !request.sees(Item::Resource(&key)) {
        return Err(missing(uri, rules));
    }
    if let Some(resource) = registry.resources.get(key.as_str()) {
        return Ok(Found {
            key,
            handler: Arc::clone(&resource.handler),
            request: ReadRequest::new(uri.to_owned(), Variables::default(), resource.definition.mime_type.clone()),
            hints: resource.hints,
        });
    }
    let found = best_template(&registry, |item| request.sees(item), uri);
    let (template, variables) = found.ok_or_else(|| missing(uri, rules))?;
    Ok(Found {
        key,
        handler: Arc::clone(&template.handler),
        request: ReadRequest::new(uri.to_owned(), variables, template.definition.mime_type.clone()),
        hints: template.hints,
    })
}

/// The most specific template that matches, of those that are seen. The first registered wins among equals.
fn best_template<'a>(
    registry: &'a Registry,
    sees: impl Fn(Item<'_>) -> bool,
    uri: &str,
) -> Option<(&'a TemplateEntry, Variables)> {
    let mut best = None;
    for template in registry.templates.iter() {
        let Some(variables) = template.template.matches(uri) else { continue };
        if !sees(Item::Template(&template.definition.uri_template)) {
            continue;
        }
        let specificity = template.template.specificity();
        if best.as_ref().is_none_or(|(known, _, _)| specificity > *known) {
            best = Some((specificity, &**template, variables));
        }
    }
    best.map(|(_, template, variables)| (template, variables))
}

/// The address as it is registered, or the template behind it: it holds nothing that a client made up.
pub(crate) fn registered_address(
    registry: &Registry,
    sees: impl Fn(Item<'_>) -> bool,
    uri: &str,
    key: &str,
) -> Option<String> {
    if !sees(Item::Resource(key)) {
        return None;
    }
    match registry.resources.get(key) {
        Some(resource) => Some(resource.definition.uri.clone()),
        None => best_template(registry, sees, uri).map(|(template, _)| template.definition.uri_template.clone()),
    }
}

fn missing(uri: &str, rules: &Rules) -> RpcError {
    RpcError::new(ErrorCode(rules.resource_missing), "there is no such resource").with_data(json!({ "uri": uri }))
}

pub(super) fn subscribe(request: &Incoming) -> Exchange {
    let uri = match subscribable(request) {
        Ok(uri) => uri,
        Err(error) => return request.fail(error),
    };
    let found = match find(request, &uri) {
        Ok(found) => found,
        Err(error) => return request.fail(error),
    };
    if let Some(denied) = request.denied(Action::Subscribe, Item::Resource(&found.key)) {
        return denied;
    }
    let Some(session) = &request.session else {
        return request.fail(RpcError::new(ErrorCode::INVALID_REQUEST, "a subscription needs a session"));
    };
    match session.subscribe(&uri, request.server.limits()) {
        Ok(()) => request.reply(&json!({})),
        Err(bound) => {
            let text = format!("the session subscribes to too much with this address: {bound}");
            request.fail(RpcError::invalid_params(text))
        }
    }
}

pub(super) fn unsubscribe(request: &Incoming) -> Exchange {
    let uri = match subscribable(request) {
        Ok(uri) => uri,
        Err(error) => return request.fail(error),
    };
    if let Some(session) = &request.session {
        session.unsubscribe(&uri);
    }
    request.reply(&json!({}))
}

fn subscribable(request: &Incoming) -> Result<String, RpcError> {
    let uri = text_member("uri", request.params.uri.as_ref())?;
    let limit = request.server.limits().uri_bytes;
    if uri.len() > limit {
        return Err(RpcError::invalid_params(format!("the address of a resource has at most {limit} bytes")));
    }
    Ok(uri)
}
