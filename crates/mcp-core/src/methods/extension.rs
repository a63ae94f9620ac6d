//! The methods of extensions: one way for all of them.
//!
//! Why here: what an extension answers is bounded, asked and dressed as everything else.
//! Invariants: a result that would say twice what the engine says is an error, not a response.
//! Spec: 2026-07-28 basic/index, "Results"

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_wire::{ErrorCode, RawJson, RpcError};
use serde_json::value::RawValue;

use super::{Call, Incoming};
use crate::engine::exchange::{Exchange, Finished};
use crate::engine::rounds::{self, Subject};
use crate::engine::worker::Deadline;
use crate::extension::{Extension, ExtensionReply, ExtensionRequest};
use crate::protocol::rejection::{Hint, method_not_found};
use crate::{HandlerError, RequestContext};

pub(super) fn call(request: Incoming) -> Exchange {
    let served = request.server.extensions().method(&request.method);
    let Some((extension, timeout)) = served.map(|served| (served.extension(), served.timeout)) else {
        return request.refuse(method_not_found(request.method.as_str()), Hint::NotFound);
    };
    let limit = timeout.unwrap_or_else(|| request.server.limits().call_timeout);
    let params = request.params.raw().unwrap_or(RawJson::EMPTY_OBJECT);
    let arguments = match without_envelope(&params) {
        Ok(arguments) => arguments,
        Err(error) => return request.fail(RpcError::invalid_params(format!("params could not be read: {error}"))),
    };
    let subject = Subject { method: request.method.clone(), target: String::new(), arguments };
    let asked = ExtensionRequest { method: request.method.clone(), params };
    request.start(subject, |context, call| run(context, call, extension, asked, limit))
}

async fn run(
    context: RequestContext,
    call: Call,
    extension: Arc<dyn Extension>,
    request: ExtensionRequest,
    limit: Option<Duration>,
) -> Finished {
    let state = Arc::clone(&context.0);
    let attempt = || {
        let running = Deadline::new(Arc::clone(&extension).handle(request.clone(), context.clone()), limit);
        async move {
            running.await.unwrap_or_else(|_| {
                let text = "the request could not be answered in time";
                Err(HandlerError::rpc(RpcError::new(ErrorCode::INTERNAL_ERROR, text)))
            })
        }
    };
    match rounds::drive(&context, &call.subject, attempt).await {
        Ok(reply) => match refused_result(&reply) {
            None => state.finished(&reply.result, reply.result.as_str().len(), reply.meta.as_ref(), reply.hints),
            Some(problem) => {
                tracing::error!(method = %request.method, problem, "an extension's result was not used");
                state.failed(&RpcError::internal(), Hint::Ok)
            }
        },
        Err(halt) => state.halted(halt),
    }
}

/// Members by name; each is untouched text.
type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// What stays the same when a request is repeated with answers.
fn without_envelope(params: &RawJson) -> Result<RawJson, serde_json::Error> {
    let mut members: Members<'_> = params.parse_borrowed()?;
    for name in ["_meta", "inputResponses", "requestState"] {
        members.remove(name);
    }
    RawJson::from_serialize(&members)
}

fn refused_result(reply: &ExtensionReply) -> Option<&'static str> {
    let Ok(members) = reply.result.parse_borrowed::<Members<'_>>() else { return Some("it is no object") };
    let hints: &[&str] = if reply.hints.is_some() { &["ttlMs", "cacheScope"] } else { &[] };
    ["_meta", "resultType"]
        .iter()
        .chain(hints)
        .any(|name| members.contains_key(*name))
        .then_some("it has a member that the engine writes")
}
