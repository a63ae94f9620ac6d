//! The ask loop: run the handler, fetch the answers it lacks, run it again.
//!
//! Why here: handlers have one way to ask; how the question reaches the client depends on the revision, here alone.
//! Invariants: a handler that swallowed an open question never has its result used; rounds, open questions, the sealed
//! state and the wait for an answer are bounded; an answer is awaited from the session that was asked.
//! Spec: 2026-07-28 basic/patterns/mrtr; 2025-11-25 client/elicitation, client/sampling, client/roots

use std::borrow::Cow;
use std::future::Future;

use mcp_wire::types::{ElicitUrlParams, InputRequest, InputRequests, InputRequiredResult};
use mcp_wire::{ErrorCode, Method, RawJson, RequestId, RpcError, encode_notification, encode_request};
use serde_json::json;
use tokio::sync::oneshot;

use super::exchange::Outbound;
use super::sessions::Session;
use super::visits::Unopened;
use crate::context::CallState;
use crate::handler::Fault;
use crate::protocol::answers::OpenQuestion;
use crate::protocol::digest;
use crate::protocol::seal::{self, Binding};
use crate::{HandlerError, Principal, RequestContext};

/// What a call is about, for the state that is sealed.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) arguments: RawJson,
}

impl Subject {
    pub(crate) fn binding(&self, principal: &Principal) -> Binding<'_> {
        Binding {
            owner: principal.key(),
            method: self.method.as_str(),
            target: &self.target,
            arguments: digest::of(&self.arguments),
        }
    }
}

/// Why a call has no result of its handler.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The client must answer first and repeat the request.
    InputRequired(InputRequiredResult),
    /// The call goes on in the background, and whoever owns it has to find the answers.
    Parked(Vec<OpenQuestion>),
    /// The handler's fault, of any kind but an open question.
    Fault(Fault),
    /// An error of the loop itself.
    Rpc(RpcError),
}

/// Runs the handler until it has a result or an error, or the client must come back.
pub(crate) async fn drive<T, F, A>(context: &RequestContext, subject: &Subject, mut attempt: F) -> Result<T, Halt>
where
    F: FnMut() -> A,
    A: Future<Output = Result<T, HandlerError>>,
{
    let state = &*context.0;
    loop {
        let outcome = attempt().await;
        let questions = {
            let mut attempt = state.attempt();
            if let Some(misuse) = attempt.misuse {
                tracing::error!(misuse, "a handler misused its context");
                return Err(Halt::Rpc(RpcError::internal()));
            }
            if attempt.answers.open().is_empty() {
                drop(attempt);
                return outcome.map_err(|error| match error.into_fault() {
                    Fault::Unanswered => {
                        tracing::error!("a handler returned an unanswered question it had not asked");
                        Halt::Rpc(RpcError::internal())
                    }
                    fault => Halt::Fault(fault),
                });
            }
            match outcome {
                Err(error) if error.is_unanswered() => attempt.answers.begin_round(),
                // Asking several questions, one of them may be refused although others are open.
                Err(error) if error.is_refusal() => return Err(Halt::Fault(error.into_fault())),
                _ => {
                    tracing::warn!("a handler swallowed an unanswered question; its result was not used");
                    return Err(Halt::Rpc(RpcError::internal()));
                }
            }
        };
        check_bounds(state, questions.len()).map_err(Halt::Rpc)?;
        if state.is_task() {
            return Err(Halt::Parked(questions));
        }
        match &state.session {
            Some(session) => answer_in_place(state, session, questions).await?,
            None => return Err(come_back(state, subject, questions)),
        }
        state.begin_attempt();
    }
}

fn check_bounds(state: &CallState, questions: usize) -> Result<(), RpcError> {
    let limits = state.server.limits();
    let round = state.attempt().answers.remembered.round;
    if round > limits.rounds {
        tracing::warn!(round, limit = limits.rounds, "a call asked for too many rounds");
        return Err(internal(format!("the call needs more than {} rounds of questions", limits.rounds)));
    }
    if questions > limits.questions {
        tracing::warn!(questions, limit = limits.questions, "a call asked too many questions at a time");
        return Err(internal(format!("the call asks more than {} questions at a time", limits.questions)));
    }
    Ok(())
}

fn internal(text: impl Into<Cow<'static, str>>) -> RpcError {
    RpcError::new(ErrorCode::INTERNAL_ERROR, text)
}

/// Modern: everything worth remembering goes with the client, sealed.
fn come_back(state: &CallState, subject: &Subject, questions: Vec<OpenQuestion>) -> Halt {
    let limits = state.server.limits();
    let sealed = {
        let attempt = state.attempt();
        let lifetime = u64::try_from(limits.state_lifetime.as_millis()).unwrap_or(u64::MAX);
        let expires = state.server.now_ms().saturating_add(lifetime);
        seal::seal(&state.server.state_keys(), subject.binding(&state.principal), &attempt.answers.remembered, expires)
    };
    let Some(sealed) = sealed else {
        tracing::error!("a request state could not be sealed");
        return Halt::Rpc(RpcError::internal());
    };
    if sealed.len() > limits.state_bytes {
        tracing::warn!(bytes = sealed.len(), limit = limits.state_bytes, "a request state is too large");
        return Halt::Rpc(internal(format!("the call's state is larger than {} bytes", limits.state_bytes)));
    }
    let mut requests = InputRequests::new();
    for question in questions {
        requests.insert(question.key, InputRequest::new(question.method, question.params));
    }
    Halt::InputRequired(InputRequiredResult::new(requests).with_request_state(sealed))
}

/// Legacy: real requests on the call's own stream; the answers arrive as messages of the same session.
async fn answer_in_place(state: &CallState, session: &Session, questions: Vec<OpenQuestion>) -> Result<(), Halt> {
    if !state.streaming {
        return Err(Halt::Rpc(RpcError::invalid_params(
            "this call has to ask the client, and the client accepts no event stream for it",
        )));
    }
    let mut waiting = Vec::with_capacity(questions.len());
    for question in questions {
        let (id, answer) = session.request_client().map_err(|full| Halt::Rpc(internal(full.to_string())))?;
        let guard = Awaited { session, id };
        let params = named_visit(state, session, &question.params).map_err(Halt::Rpc)?;
        let params = traced(state, params.unwrap_or_else(|| question.params.clone()))?;
        let frame = encode_request(&guard.id, question.method, &params).map_err(|error| {
            tracing::error!(%error, "a request to the client could not be encoded");
            Halt::Rpc(RpcError::internal())
        })?;
        state.outbox.push(Outbound::Request(frame));
        waiting.push((question, guard, answer));
    }
    let deadline = tokio::time::Instant::now() + state.server.limits().answer_wait;
    for (question, guard, answer) in waiting {
        let given = wait_until(deadline, answer, state, &guard.id).await?;
        match given {
            Ok(value) => state.attempt().answers.give(question, value),
            Err(refusal) => {
                let text = format!("the client answered \"{}\" with an error: {refusal}", question.key);
                return Err(Halt::Fault(Fault::Told(vec![mcp_wire::types::ContentBlock::text(text)])));
            }
        }
    }
    Ok(())
}

/// The parameters with the trace of the call in their `_meta`: what the client does for them belongs to it. Modern questions
/// travel in the answer to the client's own request, whose trace it knows.
fn traced(state: &CallState, params: RawJson) -> Result<RawJson, Halt> {
    if state.trace.is_empty() {
        return Ok(params);
    }
    let with_trace = || {
        let mut members: serde_json::Map<String, serde_json::Value> = params.parse()?;
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        if let (Some(meta), serde_json::Value::Object(trace)) = (meta.as_object_mut(), json!(state.trace)) {
            meta.extend(trace);
        }
        RawJson::from_serialize(&members)
    };
    with_trace().map_err(|error| {
        tracing::error!(%error, "a request to the client could not be encoded");
        Halt::Rpc(RpcError::internal())
    })
}

async fn wait_until(
    deadline: tokio::time::Instant,
    answer: oneshot::Receiver<Result<RawJson, RpcError>>,
    state: &CallState,
    id: &RequestId,
) -> Result<Result<RawJson, RpcError>, Halt> {
    match tokio::time::timeout_at(deadline, answer).await {
        Ok(Ok(given)) => Ok(given),
        Ok(Err(_)) => Err(Halt::Fault(Fault::Cancelled)),
        Err(_) => {
            let params = json!({ "requestId": id, "reason": "the answer did not come in time" });
            if let Ok(frame) = encode_notification(Method::Cancelled.as_str(), Some(&params)) {
                state.outbox.push(Outbound::Notification(frame));
            }
            Err(Halt::Rpc(internal("the client did not answer in time")))
        }
    }
}

/// A question that waits for its answer; when the wait ends, however it ends, nobody is left in the table.
struct Awaited<'a> {
    session: &'a Session,
    id: RequestId,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.session.forget_request(&self.id);
    }
}

/// A visit needs a name where the revision has them: the one that its handler gave it, under which it can be completed,
/// or any. `None` for every other question.
fn named_visit(state: &CallState, session: &Session, params: &RawJson) -> Result<Option<RawJson>, RpcError> {
    if !state.rules().named_visits {
        return Ok(None);
    }
    let Ok(mut visit) = params.parse::<ElicitUrlParams>() else { return Ok(None) };
    match &visit.elicitation_id {
        Some(id) => open_visit(state, session, id)?,
        None => visit.elicitation_id = Some(crate::random::id().map_err(|_| RpcError::internal())?),
    }
    RawJson::from_serialize(&visit).map(Some).map_err(|_| RpcError::internal())
}

/// Remembers a visit, so that it can be completed.
pub(crate) fn open_visit(state: &CallState, session: &Session, id: &str) -> Result<(), RpcError> {
    state.server.visits().open(id, session).map_err(|unopened| match unopened {
        Unopened::TooMany => internal(format!("more than {} visits are open", state.server.limits().visits)),
        Unopened::Taken => {
            tracing::error!("two visits were given the same name");
            RpcError::internal()
        }
    })
}
