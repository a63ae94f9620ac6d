//! The methods: one file per family, and the one table that leads to them.
//!
//! Why here: a reader finds from a method's name to its code in one step.
//! Invariants: a request gets here admitted; each arm returns an exchange and nothing runs before it is polled.

mod completion;
mod discover;
mod extension;
mod lists;
mod logging;
mod prompts;
mod resources;
mod subscriptions;
pub(crate) mod tools;

pub(crate) use self::resources::registered_address;

use std::future::Future;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcp_wire::params::Params;
use mcp_wire::types::{CacheHints, InputRequiredResult, LoggingLevel, MetaObject, ProgressToken};
use mcp_wire::{ErrorCode, Method, RawJson, Request, RequestId, Revision, RpcError, encode_error};
use serde::Serialize;
use serde_json::json;
use tracing::{Instrument, Span};

use crate::access::{Access, Action, Item};
use crate::context::{Attempt, CallState, Cancellation};
use crate::engine::exchange::{Exchange, Finished, Outbox};
use crate::engine::peer::{Ids, Interruptible, refused};
use crate::engine::rounds::{Halt, Subject};
use crate::engine::sessions::Session;
use crate::engine::worker::BoxFuture;
use crate::handler::Fault;
use crate::protocol::answers::Answers;
use crate::protocol::finish::{Dress, ResultType, response};
use crate::protocol::rejection::{Hint, Rejection, lacking_scope, missing_capability};
use crate::protocol::seal;
use crate::registry::Registry;
use crate::telemetry::Outcome;
use crate::tool::ToolEntry;
use crate::trace::TraceContext;
use crate::{ClientFacts, Principal, RequestContext, Server};

/// An admitted request.
pub(crate) struct Incoming {
    pub(crate) server: Server,
    pub(crate) principal: Principal,
    pub(crate) revision: Revision,
    pub(crate) client: ClientFacts,
    pub(crate) id: RequestId,
    pub(crate) method: Method,
    pub(crate) params: Box<Params>,
    /// The tool that is called, as it was when the request was admitted.
    pub(crate) tool: Option<Arc<ToolEntry>>,
    pub(crate) trace: TraceContext,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) progress_token: Option<ProgressToken>,
    pub(crate) session: Option<Session>,
    pub(crate) ids: Option<Arc<Ids>>,
    pub(crate) streaming: bool,
}

/// The table: which function serves which method.
pub(crate) fn serve(request: Incoming) -> Exchange {
    match request.method {
        Method::Discover => discover::discover(&request),
        Method::Ping => request.reply(&json!({})),
        Method::ToolsList => lists::tools(&request),
        Method::ToolsCall => tools::call(request),
        Method::ResourcesList => lists::resources(&request),
        Method::ResourceTemplatesList => lists::templates(&request),
        Method::ResourcesRead => resources::read(request),
        Method::ResourcesSubscribe => resources::subscribe(&request),
        Method::ResourcesUnsubscribe => resources::unsubscribe(&request),
        Method::PromptsList => lists::prompts(&request),
        Method::PromptsGet => prompts::get(request),
        Method::CompletionComplete => completion::complete(request),
        Method::LoggingSetLevel => logging::set_level(&request),
        Method::SubscriptionsListen => subscriptions::listen(request),
        _ => extension::call(request),
    }
}

/// The tool that a call names, if it is one and its caller sees such a tool.
pub(crate) fn tool_of<'a>(
    registry: &'a Registry,
    request: &Request,
    access: &Access,
    caller: &Principal,
) -> Option<&'a Arc<ToolEntry>> {
    if request.method != Method::ToolsCall {
        return None;
    }
    let name = request.params.name.as_ref()?.text()?;
    registry.tools.get(&*name).filter(|_| access.sees(caller, Item::Tool(&name)))
}

impl Incoming {
    fn dress(&self) -> Dress<'_> {
        Dress {
            rules: self.revision.rules(),
            server_info: self.server.info_json(),
            result_type: ResultType::Complete,
            hints: None,
            meta: None,
            subscription: None,
            bulk: 0,
        }
    }

    /// Answers at once.
    fn reply<T: Serialize + ?Sized>(&self, result: &T) -> Exchange {
        self.reply_with(None, result)
    }

    /// Answers at once, with caching hints.
    fn reply_with<T: Serialize + ?Sized>(&self, hints: Option<CacheHints>, result: &T) -> Exchange {
        match response(&self.id, &Dress { hints, ..self.dress() }, result) {
            Ok(frame) => Exchange::ready(frame, Hint::Ok),
            Err(error) => {
                tracing::error!(%error, "a result could not be encoded");
                self.refuse(RpcError::internal(), Hint::Ok)
            }
        }
    }

    fn refuse(&self, error: RpcError, hint: Hint) -> Exchange {
        refused(&self.server, &Rejection { id: Some(self.id.clone()), error, hint }, Some(self.revision))
    }

    /// Whether the caller sees an item; what it does not see is not there.
    fn sees(&self, item: Item<'_>) -> bool {
        self.server.access().sees(&self.principal, item)
    }

    /// The refusal of what the caller sees and may not do.
    fn denied(&self, action: Action, item: Item<'_>) -> Option<Exchange> {
        let denied = self.server.access().permits(&self.principal, action, item).err()?;
        let error = RpcError::new(ErrorCode::INVALID_REQUEST, "the caller may not do this");
        Some(self.refuse(error, Hint::Forbidden { scopes: denied.scopes }))
    }

    /// Refuses in band.
    fn fail(&self, error: RpcError) -> Exchange {
        self.refuse(error, Hint::Ok)
    }

    /// Answers by a future that may take its time, see a context, and be cancelled.
    fn start<W>(self, subject: Subject, run: impl FnOnce(RequestContext, Call) -> W) -> Exchange
    where
        W: Future<Output = Finished> + Send + 'static,
    {
        let answers = match self.answers(&subject) {
            Ok(answers) => answers,
            Err(error) => return self.fail(error),
        };
        let in_flight = match self.ids.as_ref().map(|ids| ids.enter(&self.id)).transpose() {
            Ok(in_flight) => in_flight,
            Err(error) => {
                self.server.meter().refused("in_flight");
                return self.fail(error);
            }
        };
        let scope = match &self.session {
            Some(session) => session.ended(),
            None => self.server.root().clone(),
        };
        let notices = self.server.limits().notices;
        let state = Arc::new(CallState {
            id: self.id,
            principal: self.principal,
            revision: self.revision,
            client: self.client,
            trace: self.trace,
            params: self.params,
            log_level: self.log_level,
            progress_token: self.progress_token,
            session: self.session,
            streaming: self.streaming,
            outbox: Outbox::new(notices),
            cancellation: Cancellation::new(scope),
            tag: None,
            attempt: Mutex::new(Attempt::with(answers)),
            server: self.server,
        });
        if let Some(in_flight) = &in_flight {
            in_flight.reaches(Interruptible::Call(Arc::clone(&state)));
        }
        let span = span_of(&subject, &state);
        let running = run(RequestContext(Arc::clone(&state)), Call { subject });
        // Where nobody traces, nothing is entered at every poll.
        let running: BoxFuture<Finished> =
            if span.is_disabled() { Box::pin(running) } else { Box::pin(running.instrument(span)) };
        Exchange::call(running, state, |state| state.failed(&RpcError::internal(), Hint::Ok), in_flight)
    }

    /// The answers that came with the request; only modern requests carry any.
    fn answers(&self, subject: &Subject) -> Result<Answers, RpcError> {
        let (state, responses) = (self.params.request_state.as_ref(), self.params.input_responses.as_ref());
        if !self.revision.rules().result_type || (state.is_none() && responses.is_none()) {
            return Ok(Answers::default());
        }
        let remembered = match state {
            None => None,
            Some(state) => Some(self.opened(state, subject).ok_or_else(|| {
                // One text for tampered, expired and foreign states: none of them learns which it was.
                RpcError::invalid_params("\"requestState\" is not valid for this request; start over without it")
            })?),
        };
        Answers::received(remembered, responses)
    }

    fn opened(&self, state: &RawJson, subject: &Subject) -> Option<crate::protocol::answers::Remembered> {
        if state.as_str().len() > self.server.limits().state_bytes.saturating_add(2) {
            return None;
        }
        let text = state.text()?;
        let binding = subject.binding(&self.principal);
        seal::open(&self.server.state_keys(), binding, &text, self.server.now_ms()).ok()
    }
}

/// The span that a call runs in, which costs nothing where nobody traces.
fn span_of(subject: &Subject, state: &Arc<CallState>) -> Span {
    let span = tracing::info_span!(target: "mcp_core", "mcp.call", mcp.method.name = subject.method.as_str());
    #[cfg(feature = "log-forwarding")]
    crate::log_layer::tie(&span, state);
    #[cfg(not(feature = "log-forwarding"))]
    let _ = state;
    span
}

/// What the methods with handlers have in common.
pub(crate) struct Call {
    pub(crate) subject: Subject,
}

impl CallState {
    fn dress(&self) -> Dress<'_> {
        Dress {
            rules: self.rules(),
            server_info: self.server.info_json(),
            result_type: ResultType::Complete,
            hints: None,
            meta: None,
            subscription: None,
            bulk: 0,
        }
    }

    /// The frame of a result. `bulk` is the bytes of the large values in it.
    pub(crate) fn finished<T: Serialize + ?Sized>(
        &self,
        result: &T,
        bulk: usize,
        meta: Option<&MetaObject>,
        hints: Option<CacheHints>,
    ) -> Finished {
        match response(&self.id, &Dress { meta, hints, bulk, ..self.dress() }, result) {
            Ok(frame) => (frame, Hint::Ok),
            Err(error) => {
                tracing::error!(%error, "a result could not be encoded");
                self.failed(&RpcError::internal(), Hint::Ok)
            }
        }
    }

    /// The frame of a result that stands for the one that was asked for.
    pub(crate) fn instead(&self, result: &RawJson, result_type: &'static str) -> Finished {
        match response(
            &self.id,
            &Dress { result_type: ResultType::Other(result_type), bulk: result.as_str().len(), ..self.dress() },
            result,
        ) {
            Ok(frame) => (frame, Hint::Ok),
            Err(error) => {
                tracing::error!(%error, "a result could not be encoded");
                self.failed(&RpcError::internal(), Hint::Ok)
            }
        }
    }

    /// The frame of a result that asks the client to come back with answers.
    fn asked(&self, result: &InputRequiredResult) -> Finished {
        self.attempt().outcome = Outcome::InputRequired;
        match response(&self.id, &Dress { result_type: ResultType::InputRequired, ..self.dress() }, result) {
            Ok(frame) => (frame, Hint::Ok),
            Err(error) => {
                tracing::error!(%error, "a question could not be encoded");
                self.failed(&RpcError::internal(), Hint::Ok)
            }
        }
    }

    /// The frame of an error.
    pub(crate) fn failed(&self, error: &RpcError, hint: Hint) -> Finished {
        let frame: Bytes = encode_error(Some(&self.id), error, false);
        self.attempt().outcome = Outcome::Error(error.code);
        (frame, hint)
    }

    /// The frame of a call without a result. Faults that a method treats by itself do not get here.
    pub(crate) fn halted(&self, halt: Halt) -> Finished {
        match halt {
            Halt::InputRequired(result) => self.asked(&result),
            Halt::Rpc(error) => self.failed(&error, Hint::Ok),
            Halt::Fault(fault) => {
                let is_cancelled = matches!(fault, Fault::Cancelled);
                let (error, hint) = self.error_of(fault);
                let finished = self.failed(&error, hint);
                if is_cancelled {
                    self.attempt().outcome = Outcome::Cancelled;
                }
                finished
            }
            Halt::Parked(_) => {
                tracing::error!("the owner of a call answered its request with what the call has to ask");
                self.failed(&RpcError::internal(), Hint::Ok)
            }
        }
    }

    /// The error that a fault is to the client.
    pub(crate) fn error_of(&self, fault: Fault) -> (RpcError, Hint) {
        match fault {
            Fault::Rpc(error) => (error, Hint::Ok),
            Fault::Missing(missing) => {
                let mut required = MetaObject::new();
                missing.iter().for_each(|each| each.add_to(&mut required));
                let error = missing_capability(self.rules().missing_capability, &required);
                let hint = if self.rules().result_type { Hint::BadRequest } else { Hint::Ok };
                (error, hint)
            }
            Fault::Forbidden(scopes) => (lacking_scope(), Hint::Forbidden { scopes }),
            Fault::Told(content) => {
                let text: Vec<&str> = content.iter().filter_map(|block| block.as_text()).collect();
                (RpcError::new(ErrorCode::INTERNAL_ERROR, text.join("\n")), Hint::Ok)
            }
            Fault::Cancelled => (RpcError::new(ErrorCode::INTERNAL_ERROR, "the request was cancelled"), Hint::Ok),
            Fault::Failed(cause) | Fault::Internal(cause) => {
                tracing::error!(error = %cause, "a handler failed");
                (RpcError::internal(), Hint::Ok)
            }
            Fault::Elsewhere { provider, .. } => {
                tracing::error!(provider, "a handler handed its call over where it cannot be a task");
                (RpcError::internal(), Hint::Ok)
            }
            Fault::NotFound | Fault::Unanswered => (RpcError::internal(), Hint::Ok),
        }
    }
}
