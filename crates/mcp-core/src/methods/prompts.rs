//! `prompts/get`: a prompt with its arguments filled in.
//!
//! Why here: as `tools/call`, with arguments that are all strings.
//! Spec: 2026-07-28 server/prompts, "Getting a Prompt"

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_wire::types::GetPromptResult;
use mcp_wire::{ErrorCode, RawJson, RpcError};

use super::{Call, Incoming};
use crate::access::{Action, Item};
use crate::engine::exchange::{Exchange, Finished};
use crate::engine::rounds::{self, Subject};
use crate::engine::worker::Deadline;
use crate::prompt::{PromptArguments, PromptEntry};
use crate::resource::text_member;
use crate::{HandlerError, RequestContext};

pub(super) fn get(request: Incoming) -> Exchange {
    let name = match text_member("name", request.params.name.as_ref()) {
        Ok(name) => name,
        Err(error) => return request.fail(error),
    };
    let item = Item::Prompt(&name);
    let known = request.server.registry().prompts.get(name.as_str()).cloned();
    let Some(prompt) = known.filter(|_| request.sees(item)) else {
        let shown: String = name.chars().take(140).collect();
        return request.fail(RpcError::invalid_params(format!("there is no prompt \"{shown}\"")));
    };
    if let Some(denied) = request.denied(Action::Fill, item) {
        return denied;
    }
    let raw = request.params.arguments.clone().filter(|arguments| arguments.as_str() != "null");
    let raw = raw.unwrap_or(RawJson::EMPTY_OBJECT);
    let arguments = match arguments(&prompt, &raw) {
        Ok(arguments) => arguments,
        Err(error) => return request.fail(error),
    };
    let subject = Subject { method: request.method.clone(), target: name, arguments: raw };
    request.start(subject, |context, call| run(context, call, prompt, arguments))
}

async fn run(context: RequestContext, call: Call, prompt: Arc<PromptEntry>, arguments: PromptArguments) -> Finished {
    let state = Arc::clone(&context.0);
    let limit = state.server.limits().call_timeout;
    let attempt = || {
        let handler = Arc::clone(&prompt.handler);
        let running = Deadline::new(handler.fill(arguments.clone(), context.clone()), limit);
        async move {
            running.await.unwrap_or_else(|_| {
                let text = "the prompt could not be filled in in time";
                Err(HandlerError::rpc(RpcError::new(ErrorCode::INTERNAL_ERROR, text)))
            })
        }
    };
    match rounds::drive(&context, &call.subject, attempt).await {
        Ok(reply) => {
            let mut result = GetPromptResult::new(reply.messages);
            result.description = reply.description.or_else(|| prompt.definition.description.clone());
            result.for_rules(state.rules());
            let bulk = result.messages.iter().map(|message| message.content.bulk()).sum();
            state.finished(&result, bulk, reply.meta.as_ref(), None)
        }
        Err(halt) => state.halted(halt),
    }
}

fn arguments(prompt: &PromptEntry, raw: &RawJson) -> Result<PromptArguments, RpcError> {
    let given: BTreeMap<String, String> = raw.parse().map_err(|error: serde_json::Error| match error.is_syntax() {
        true => RpcError::undecodable("params.arguments", &error),
        false => RpcError::invalid_params("params.arguments must be an object whose values are all strings"),
    })?;
    let declared = prompt.definition.arguments.as_deref().unwrap_or_default();
    let missing: Vec<&str> = declared
        .iter()
        .filter(|argument| argument.required == Some(true) && !given.contains_key(&argument.name))
        .map(|argument| argument.name.as_str())
        .collect();
    if !missing.is_empty() {
        let text = format!("prompt \"{}\" lacks required arguments: {}", prompt.definition.name, missing.join(", "));
        return Err(RpcError::invalid_params(text));
    }
    Ok(PromptArguments::new(given))
}
