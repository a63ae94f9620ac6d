//! `tools/call`: checks the arguments, runs the tool, checks and dresses its result.
//!
//! Why here: the path that everything else is built for.
//! Invariants: a tool's failure is a result that says so; a protocol error is made on purpose only.
//! Spec: 2026-07-28 server/tools, "Calling Tools" and "Error Handling"

use std::sync::Arc;

use mcp_wire::types::{ContentBlock, MetaObject};
use mcp_wire::{ErrorCode, JsonKind, RawJson, RpcError};
use tokio::time::Instant;

use super::{Call, Incoming};
use crate::access::{Action, Item};
use crate::context::CallState;
use crate::engine::call::{self, CallReply, Concluded, PreparedCall, Taken};
use crate::engine::exchange::{Exchange, Finished};
use crate::engine::rounds::{self, Halt, Subject};
use crate::engine::worker::Deadline;
use crate::handler::Fault;
use crate::layer;
use crate::protocol::schema::Violation;
use crate::resource::text_member;
use crate::telemetry::Outcome;
use crate::tool::{ToolEntry, ToolReply};
use crate::{HandlerError, RequestContext};

pub(super) fn call(mut request: Incoming) -> Exchange {
    let name = match text_member("name", request.params.name.as_ref()) {
        Ok(name) => name,
        Err(error) => return request.fail(error),
    };
    let Some(tool) = request.tool.take() else {
        let shown: String = name.chars().take(140).collect();
        return request.fail(RpcError::invalid_params(format!("there is no tool \"{shown}\"")));
    };
    if let Some(denied) = request.denied(Action::Call, Item::Tool(&name)) {
        return denied;
    }
    let arguments = match request.params.arguments.clone() {
        None => RawJson::EMPTY_OBJECT,
        Some(arguments) => match arguments.kind() {
            JsonKind::Object => arguments,
            JsonKind::Null => RawJson::EMPTY_OBJECT,
            other => {
                let text = format!("params.arguments must be an object, not {}", other.with_article());
                return request.fail(RpcError::invalid_params(text));
            }
        },
    };
    let subject = Subject { method: request.method.clone(), target: name, arguments };
    request.start(subject, |context, call| run(context, call, tool))
}

async fn run(context: RequestContext, call: Call, tool: Arc<ToolEntry>) -> Finished {
    let state = Arc::clone(&context.0);
    let concluded = match state.server.executor() {
        None => conclude(&context, &call.subject, &tool).await,
        Some(executor) => match executor.take(PreparedCall::new(context, call.subject, tool)) {
            Taken::Left(call) => {
                let (context, subject, tool) = call.into_parts();
                conclude(&context, &subject, &tool).await
            }
            Taken::Refused(error) => return state.halted(call::refusal(error)),
            Taken::Run(run) => match run.0.await {
                CallReply::Outcome(outcome) => outcome.concluded,
                CallReply::Instead { result, result_type } => return state.instead(&result, result_type),
                CallReply::Error(error) => return state.halted(call::refusal(error)),
            },
        },
    };
    match concluded {
        Ok(reply) => {
            if reply.is_error {
                state.attempt().outcome = Outcome::ToolError;
            }
            let mut result = reply.into_result();
            let meta = result.meta.take();
            result.for_rules(state.rules());
            let structured = result.structured_content.as_ref().map_or(0, |structured| structured.as_str().len());
            let bulk = result.content.iter().map(ContentBlock::bulk).sum::<usize>() + structured;
            state.finished(&result, bulk, meta.as_ref(), None)
        }
        Err(halt) => state.halted(halt),
    }
}

/// Runs a call to its end, or to where it needs what nobody here can give.
pub(crate) async fn conclude(context: &RequestContext, subject: &Subject, tool: &Arc<ToolEntry>) -> Concluded {
    let state = &*context.0;
    match refused_arguments(tool, &subject.arguments) {
        Ok(None) => {}
        Ok(Some(problem)) => return Ok(ToolReply::error(problem)),
        Err(error) => return Err(Halt::Fault(Fault::Rpc(error))),
    }
    match rounds::drive(context, subject, || attempt(tool, &subject.arguments, context)).await {
        Ok(reply) => Ok(checked(tool, reply)),
        Err(Halt::Fault(Fault::Told(content))) => Ok(ToolReply { is_error: true, ..ToolReply::new(content) }),
        Err(Halt::Fault(Fault::Failed(cause))) => {
            tracing::warn!(tool = tool.definition.name, error = %cause, "a tool failed");
            Ok(ToolReply::error("the tool failed"))
        }
        // Where the revision has no error for it, the model is told.
        Err(Halt::Fault(Fault::Missing(missing))) if !state.rules().result_type => {
            let mut required = MetaObject::new();
            missing.iter().for_each(|each| each.add_to(&mut required));
            let required = serde_json::Value::Object(required);
            let text = format!("this tool needs what the client did not declare among its capabilities: {required}");
            Ok(ToolReply::error(text))
        }
        // Who asks for what is named must not lose what the tool needs anyway.
        Err(Halt::Fault(Fault::Forbidden(mut scopes))) => {
            let also = tool.rules.scopes.iter().filter(|scope| !scopes.contains(scope)).cloned().collect::<Vec<_>>();
            scopes.splice(0..0, also);
            Err(Halt::Fault(Fault::Forbidden(scopes)))
        }
        Err(halt) => Err(halt),
    }
}

/// One attempt of the handler and of the layers around it, within the tool's bounds.
async fn attempt(
    tool: &Arc<ToolEntry>,
    arguments: &RawJson,
    context: &RequestContext,
) -> Result<ToolReply, HandlerError> {
    let late = |_| {
        let seconds = tool.timeout.unwrap_or_default().as_secs_f64();
        let text = format!("tool \"{}\" did not finish within {seconds} s", tool.definition.name);
        HandlerError::rpc(RpcError::new(ErrorCode::INTERNAL_ERROR, text))
    };
    let mut left = tool.timeout;
    if let Some(slots) = &tool.slots {
        let started = Instant::now();
        let waiting = Box::pin(Arc::clone(slots).acquire_owned());
        let slot = Deadline::new(waiting, left).await.map_err(late)?;
        context.0.attempt().slot = Some(slot.map_err(HandlerError::internal)?);
        left = left.map(|limit| limit.saturating_sub(started.elapsed()));
    }
    let _held = Held(&context.0);
    let running = Deadline::new(layer::attempt(tool, arguments.clone(), context.clone()), left);
    // A task is bounded by its lifetime; only a bound that the tool set for itself counts there as well.
    running.unless(|| !tool.bounds_itself && context.0.is_task()).await.map_err(late)?
}

/// Gives the tool's slot back when the attempt is over, unless blocking code has taken it along.
struct Held<'a>(&'a CallState);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.attempt().slot = None;
    }
}

/// What is wrong with the arguments, for the model to repair; an error where they are beyond a check.
fn refused_arguments(tool: &ToolEntry, arguments: &RawJson) -> Result<Option<String>, RpcError> {
    let Some(schema) = &tool.arguments else { return Ok(None) };
    let arguments = arguments.parse().map_err(|error| RpcError::undecodable("params.arguments", &error))?;
    let violations = schema.check(&arguments).err();
    Ok(violations.map(|found| format!("the arguments do not match the tool's input schema: {}", listed(&found))))
}

fn listed(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The reply, or what is wrong with it.
fn checked(tool: &ToolEntry, reply: ToolReply) -> ToolReply {
    match refused_result(tool, &reply) {
        None => reply,
        Some(problem) => {
            tracing::error!(tool = tool.definition.name, problem, "a tool's result does not match its output schema");
            ToolReply::error(problem)
        }
    }
}

fn refused_result(tool: &ToolEntry, reply: &ToolReply) -> Option<String> {
    // A failed result need not have the shape of a success.
    if reply.is_error {
        return None;
    }
    let Some(structured) = &reply.structured else {
        let text = "the tool promised structured content and returned none";
        return tool.must_structure.then(|| text.to_owned());
    };
    let schema = tool.result.as_ref()?;
    let violations = match structured.parse() {
        Ok(structured) => schema.check(&structured).err()?,
        Err(error) => vec![Violation::new("", &error.to_string())],
    };
    Some(format!("the tool's structured content does not match its output schema: {}", listed(&violations)))
}
