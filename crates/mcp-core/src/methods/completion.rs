//! `completion/complete`: suggestions for an argument of a prompt or a variable of a template.
//!
//! Why here: the completer is found by reference and name; what has none suggests nothing.
//! Spec: 2026-07-28 server/utilities/completion

use std::sync::Arc;

use mcp_wire::types::{CompleteParams, CompleteResult, CompletionValues, Reference};
use mcp_wire::{ErrorCode, RawJson, RpcError};

use super::Incoming;
use crate::access::{Action, Item};
use crate::completion::{CompletionRequest, Completions};
use crate::engine::exchange::{Exchange, Finished};
use crate::engine::rounds::{Halt, Subject};
use crate::engine::worker::Deadline;
use crate::handler::Completer;
use crate::protocol::rejection::Hint;
use crate::resource::normalized;
use crate::{HandlerError, RequestContext};

pub(super) fn complete(request: Incoming) -> Exchange {
    let raw = request.params.raw().unwrap_or(RawJson::EMPTY_OBJECT);
    let params: CompleteParams = match raw.parse() {
        Ok(params) => params,
        Err(error) => {
            let text = format!("params must hold \"ref\" and \"argument\" with \"name\" and \"value\": {error}");
            return request.fail(RpcError::invalid_params(text));
        }
    };
    let found = match find(&request, &params) {
        Ok(found) => found,
        Err(refused) => return refused,
    };
    let Some(completer) = found else {
        return request.reply(&CompleteResult::new(CompletionValues::new(Vec::new())));
    };
    let known = params.context.and_then(|context| context.arguments).unwrap_or_default();
    let typed = CompletionRequest::new(params.argument.name, params.argument.value, known, request.principal.clone());
    let subject = Subject { method: request.method.clone(), target: String::new(), arguments: RawJson::EMPTY_OBJECT };
    request.start(subject, |context, _call| run(context, completer, typed))
}

async fn run(context: RequestContext, completer: Arc<dyn Completer>, request: CompletionRequest) -> Finished {
    let state = Arc::clone(&context.0);
    let limit = state.server.limits().call_timeout;
    match Deadline::new(completer.complete(request), limit).await {
        Ok(Ok(completions)) => state.finished(&CompleteResult::new(values(completions)), 0, None, None),
        Ok(Err(error)) => state.halted(Halt::Fault(HandlerError::into_fault(error))),
        Err(_) => {
            let text = "the suggestions could not be found in time";
            state.failed(&RpcError::new(ErrorCode::INTERNAL_ERROR, text), Hint::Ok)
        }
    }
}

fn values(completions: Completions) -> CompletionValues {
    let values = CompletionValues::new(completions.values);
    match completions.total {
        Some(total) => values.with_total(total),
        None => values,
    }
}

/// The completer of what is referred to; `None` when there is such a thing without a completer.
#[expect(clippy::result_large_err, reason = "the refusal is the answer: boxing it would only move it")]
fn find(request: &Incoming, params: &CompleteParams) -> Result<Option<Arc<dyn Completer>>, Exchange> {
    let registry = request.server.registry();
    let name = params.argument.name.as_str();
    let permitted = |item| request.denied(Action::Complete, item).map_or(Ok(()), Err);
    match &params.reference {
        Reference::Prompt { name: prompt, .. } => {
            let item = Item::Prompt(prompt);
            let found = registry.prompts.get(prompt.as_str()).filter(|_| request.sees(item));
            let found = found.ok_or_else(|| request.fail(unknown("prompt", prompt)))?;
            permitted(item)?;
            Ok(found.completers.get(name).cloned())
        }
        Reference::Resource { uri, .. } => {
            let item = Item::Template(uri);
            if let Some(template) = registry.templates.get(uri.as_str()).filter(|_| request.sees(item)) {
                permitted(item)?;
                return Ok(template.completers.get(name).cloned());
            }
            let unknown = || request.fail(unknown("resource", uri));
            let key = normalized(uri).filter(|key| request.sees(Item::Resource(key))).ok_or_else(unknown)?;
            if registry.resources.get(key.as_str()).is_some() {
                permitted(Item::Resource(&key))?;
                return Ok(None);
            }
            // Some clients name the resource that they are filling in.
            let matching = registry.templates.iter().find(|template| {
                template.template.matches(uri).is_some()
                    && request.sees(Item::Template(&template.definition.uri_template))
            });
            let template = matching.ok_or_else(unknown)?;
            permitted(Item::Resource(&key))?;
            Ok(template.completers.get(name).cloned())
        }
        _ => {
            let text = "params.ref.type must be \"ref/prompt\" or \"ref/resource\"";
            Err(request.fail(RpcError::invalid_params(text)))
        }
    }
}

fn unknown(kind: &str, name: &str) -> RpcError {
    let shown: String = name.chars().take(140).collect();
    RpcError::invalid_params(format!("params.ref names a {kind} that does not exist: \"{shown}\""))
}
