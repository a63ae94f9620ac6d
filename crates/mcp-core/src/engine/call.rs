//! A tool call as a value with one owner: whoever holds it polls it, in place or as a task that outlives its request.
//!
//! Why here: that a call may go on in the background is a move of a box, so no outcome can be lost or told twice.
//! Invariants: an outcome stays in its call until the owner takes it; dropping a call that runs cancels it, and its handler
//! has the grace of every cancelled one; a panic is the outcome of this call alone.
//! Spec: 2026-07-28 server/tools, "Calling Tools"

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use mcp_wire::types::MetaObject;
use mcp_wire::{RawJson, RpcError};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::exchange::{Outbound, Outbox, Popped};
use super::rounds::{Halt, Subject};
use super::worker::{self, drop_caught, panic_text, poll_caught};
use crate::access::{Action, Item};
use crate::context::{Attempt, CallState, Cancellation, TaskStage};
use crate::handler::Fault;
use crate::methods::tools::conclude;
use crate::protocol::answers::{Answers, Remembered};
use crate::task::TaskOffer;
use crate::tool::{ToolEntry, ToolReply};
use crate::{HandlerError, RequestContext};

/// A boxed future that owns everything it needs.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Runs the calls of tools, for a server that does not leave that to the engine: see
/// [`Extension::executor`](crate::Extension::executor).
pub trait CallExecutor: Send + Sync + 'static {
    /// Takes a call, or leaves it. Every call of the server comes here, so nothing slow belongs here.
    fn take(self: Arc<Self>, call: PreparedCall) -> Taken;
}

/// What an executor makes of a call.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "these are the ways to deal with a call")]
pub enum Taken {
    /// The engine runs it in place.
    Left(PreparedCall),
    /// It is not run, for this reason.
    Refused(HandlerError),
    /// The executor runs it; the request is answered with what this comes to. Dropped when the request is cancelled.
    Run(RunFuture),
}

/// What an executor does with a call that it took.
pub struct RunFuture(pub(crate) BoxFuture<CallReply>);

impl RunFuture {
    /// What the request waits for.
    pub fn new(future: impl Future<Output = CallReply> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }
}

impl fmt::Debug for RunFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunFuture")
    }
}

/// How the request of a call that was taken is answered.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallReply {
    /// With what came of the call, as if it had been run in place.
    Outcome(CallOutcome),
    /// With something else: an object without `_meta` and `resultType`.
    Instead {
        /// The members of the result.
        result: RawJson,
        /// What revisions with result types call it.
        result_type: &'static str,
    },
    /// With an error.
    Error(HandlerError),
}

/// A call that may begin: its tool is there, its caller may use it, and nothing has run.
pub struct PreparedCall {
    context: RequestContext,
    tool: Arc<ToolEntry>,
    subject: Subject,
    /// What an earlier run of the call left, where it is run anew.
    answers: Option<Box<Answers>>,
}

/// A call that began and belongs to a request no more: see [`PreparedCall::start_apart`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Apart {
    /// `_meta` of every notification of the call.
    pub tag: Option<MetaObject>,
    /// Whether its notifications are wanted: they then come as [`CallEvent::Said`].
    pub notices: bool,
    /// Cancels the call when cancelled. Default: the end of the server.
    pub scope: Option<CancellationToken>,
}

impl Apart {
    /// A call whose notifications nobody wants.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notifications are wanted, with this `_meta`.
    #[must_use]
    pub fn with_notices(mut self, tag: MetaObject) -> Self {
        self.tag = Some(tag);
        self.notices = true;
        self
    }

    /// The call ends when this is cancelled, a token that itself ends with the server, as a session's does.
    #[must_use]
    pub fn within(mut self, scope: CancellationToken) -> Self {
        self.scope = Some(scope);
        self
    }
}

impl PreparedCall {
    pub(crate) fn new(context: RequestContext, subject: Subject, tool: Arc<ToolEntry>) -> Self {
        Self { context, tool, subject, answers: None }
    }

    pub(crate) fn into_parts(self) -> (RequestContext, Subject, Arc<ToolEntry>) {
        (self.context, self.subject, self.tool)
    }

    /// The name of the tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool.definition.name
    }

    /// What the tool says of its calls as tasks; `None` where they must not be.
    #[must_use]
    pub fn offer(&self) -> Option<&TaskOffer> {
        self.tool.task.as_ref()
    }

    /// The member `task` of the parameters, as it came.
    #[must_use]
    pub fn requested(&self) -> Option<&RawJson> {
        self.context.0.params.task.as_ref()
    }

    /// The arguments, an object.
    #[must_use]
    pub fn arguments(&self) -> &RawJson {
        &self.subject.arguments
    }

    /// The request.
    #[must_use]
    pub fn context(&self) -> &RequestContext {
        &self.context
    }

    /// Begins the call in place. As long as it is not [detached](RunningCall::detach) it ends with its request, and what it
    /// asks is asked as by every call.
    #[must_use]
    pub fn start(self) -> RunningCall {
        let Self { context, tool, subject, .. } = self;
        context.0.attempt().task = TaskStage::Possible;
        RunningCall::of(context, tool, subject, false)
    }

    /// Begins the call apart from its request, which may be over long before. What it asks is for the owner to find out:
    /// [`Settled::Asks`].
    #[must_use]
    pub fn start_apart(self, apart: Apart) -> RunningCall {
        let Self { context, tool, subject, answers } = self;
        let of = &*context.0;
        let answers = answers.map_or_else(|| std::mem::take(&mut of.attempt().answers), |answers| *answers);
        let mut attempt = Attempt::with(answers);
        attempt.task = TaskStage::Task;
        let outbox = Outbox::new(of.server.limits().notices);
        if !apart.notices {
            outbox.close();
        }
        let state = CallState {
            id: of.id.clone(),
            server: of.server.clone(),
            principal: of.principal.clone(),
            revision: of.revision,
            client: of.client.clone(),
            params: of.params.clone(),
            trace: of.trace.clone(),
            log_level: of.log_level,
            progress_token: of.progress_token.clone(),
            session: of.session.clone(),
            streaming: apart.notices,
            outbox,
            cancellation: Cancellation::new(apart.scope.unwrap_or_else(|| of.server.root().clone())),
            tag: apart.tag,
            attempt: Mutex::new(attempt),
        };
        RunningCall::of(RequestContext(Arc::new(state)), tool, subject, apart.notices)
    }
}

impl fmt::Debug for PreparedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments may hold secrets.
        f.debug_struct("PreparedCall").field("tool", &self.tool()).finish_non_exhaustive()
    }
}

/// What is stored of a call that waits for answers, to be run anew: see [`RequestContext::prepare_again`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredCall {
    /// The name of the tool.
    pub tool: String,
    /// The arguments.
    pub arguments: RawJson,
    /// What [`Asked`] gave as memory.
    pub memory: RawJson,
    /// The answers, by the keys of the handler.
    pub answers: BTreeMap<String, RawJson>,
}

impl StoredCall {
    /// A call with everything that was stored of it.
    pub fn new(
        tool: impl Into<String>,
        arguments: RawJson,
        memory: RawJson,
        answers: BTreeMap<String, RawJson>,
    ) -> Self {
        Self { tool: tool.into(), arguments, memory, answers }
    }
}

impl RequestContext {
    /// Prepares a call to be run anew on behalf of the caller of this request, with the answers that its handler lacked.
    ///
    /// # Errors
    /// When the tool is no longer there or the caller does not see it (-32602), may not use it or lacks a scope (-32600 with
    /// a challenge), or what was stored is not readable (-32603).
    pub fn prepare_again(&self, stored: StoredCall) -> Result<PreparedCall, HandlerError> {
        let state = &*self.0;
        let StoredCall { tool: name, arguments, memory, answers } = stored;
        let registry = state.server.registry();
        let (access, item) = (state.server.access(), Item::Tool(&name));
        let tool = registry.tools.get(&*name).filter(|_| access.sees(&state.principal, item));
        let tool = tool.ok_or_else(|| {
            HandlerError::rpc(RpcError::invalid_params(format!("there is no tool \"{name}\" any more")))
        })?;
        if let Err(denied) = access.permits(&state.principal, Action::Call, item) {
            return Err(HandlerError::need_scopes(denied.scopes));
        }
        if !tool.rules.scopes.iter().all(|scope| state.principal.has_scope(scope)) {
            return Err(HandlerError::need_scopes(tool.rules.scopes.clone()));
        }
        let remembered: Remembered = memory.parse().map_err(HandlerError::internal)?;
        let subject = Subject { method: mcp_wire::Method::ToolsCall, target: name, arguments };
        let answers = Some(Box::new(Answers::resumed(remembered, answers)));
        Ok(PreparedCall { context: self.clone(), tool: Arc::clone(tool), subject, answers })
    }
}

/// A call that runs while its owner asks for [what is next](Self::next).
pub struct RunningCall {
    /// Taken when it has ended.
    future: Option<BoxFuture<Concluded>>,
    state: Arc<CallState>,
    tool: Arc<ToolEntry>,
    arguments: RawJson,
    notices: bool,
    wanted: bool,
}

/// What a call came to, before it is said.
pub(crate) type Concluded = Result<ToolReply, Halt>;

/// What happens to a call that runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallEvent {
    /// It ended. Nothing comes after.
    Finished(CallOutcome),
    /// Its handler wants to go on in the background, and waits for [`RunningCall::detach`] or [`RunningCall::stay`].
    WantsTask,
    /// A notification, encoded, of a call that was [started apart](PreparedCall::start_apart).
    Said(Bytes),
}

impl RunningCall {
    fn of(context: RequestContext, tool: Arc<ToolEntry>, subject: Subject, notices: bool) -> Self {
        let (state, entry, arguments) = (Arc::clone(&context.0), Arc::clone(&tool), subject.arguments.clone());
        // The owner may change while the call runs; the span of the call does not.
        let span = tracing::Span::current();
        let running = async move { conclude(&context, &subject, &tool).await };
        let future: BoxFuture<Concluded> =
            if span.is_disabled() { Box::pin(running) } else { Box::pin(running.instrument(span)) };
        Self { future: Some(future), state, tool: entry, arguments, notices, wanted: false }
    }

    /// The name of the tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool.definition.name
    }

    /// What the tool says of its calls as tasks; `None` where they must not be.
    #[must_use]
    pub fn offer(&self) -> Option<&TaskOffer> {
        self.tool.task.as_ref()
    }

    /// The arguments, an object.
    #[must_use]
    pub fn arguments(&self) -> &RawJson {
        &self.arguments
    }

    /// The request. Whoever keeps it longer than the call keeps the request alive.
    #[must_use]
    pub fn context(&self) -> RequestContext {
        RequestContext(Arc::clone(&self.state))
    }

    /// The next thing that happens. Cancel-safe; the call runs only while this is polled. After the end: never again.
    pub async fn next(&mut self) -> CallEvent {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`Self::next`].
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<CallEvent> {
        loop {
            if self.notices
                && let Popped::Item(Outbound::Notification(frame)) = self.state.outbox.pop()
            {
                return Poll::Ready(CallEvent::Said(frame));
            }
            let Some(future) = &mut self.future else { return Poll::Pending };
            match poll_caught(future.as_mut(), context) {
                Poll::Ready(outcome) => {
                    if let Some(future) = self.future.take() {
                        drop_caught(future);
                    }
                    let concluded = outcome.unwrap_or_else(|payload| {
                        tracing::error!(panic = panic_text(&*payload), "a handler panicked");
                        Err(Halt::Rpc(RpcError::internal()))
                    });
                    return Poll::Ready(CallEvent::Finished(CallOutcome { concluded, state: Arc::clone(&self.state) }));
                }
                Poll::Pending => {
                    if !self.wanted && self.state.attempt().task == TaskStage::Wanted {
                        self.wanted = true;
                        return Poll::Ready(CallEvent::WantsTask);
                    }
                    if !self.notices || !self.state.outbox.wait(context.waker()) {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    /// The call is a task from here on: it is bounded by its owner and not by its tool's default timeout, nothing more is
    /// said on the stream of its request, and what it asks comes to the owner as [`Settled::Asks`].
    pub fn detach(&self) {
        if !self.notices {
            self.state.outbox.close();
        }
        self.decide(TaskStage::Task);
    }

    /// The call stays in place for good: [`RequestContext::become_task`] returns and changes nothing.
    pub fn stay(&self) {
        self.decide(TaskStage::Never);
    }

    fn decide(&self, stage: TaskStage) {
        let waker = {
            let mut attempt = self.state.attempt();
            attempt.task = stage;
            attempt.task_waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Is cancelled with the call: by its request, as long as that is not over, and by the end of the server.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.state.cancellation.token().clone()
    }

    /// Whether the call is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state.cancellation.is_cancelled()
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            self.state.outbox.close();
            self.state.cancellation.cancel();
            worker::reap(future, self.state.server.limits().cancel_grace, ());
        }
    }
}

impl fmt::Debug for RunningCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningCall").field("ended", &self.future.is_none()).finish_non_exhaustive()
    }
}

/// What a call came to, once.
#[must_use = "an outcome that is dropped is lost"]
pub struct CallOutcome {
    pub(crate) concluded: Concluded,
    state: Arc<CallState>,
}

/// An outcome in a form that can be stored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Settled {
    /// The result of the tool in the words of the newest revision, `_meta` included.
    Result {
        /// A `CallToolResult`.
        result: RawJson,
        /// Whether it says that the tool failed.
        is_error: bool,
    },
    /// A JSON-RPC error.
    Error(RpcError),
    /// The call needs answers, and has to be [run anew](RequestContext::prepare_again) with them.
    Asks(Asked),
    /// The call goes on outside: see [`HandlerError::elsewhere`].
    Elsewhere {
        /// What names the system there.
        provider: String,
        /// What names the call there.
        job: String,
    },
}

/// What a call needs to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Asked {
    /// What has to be kept until then, as JSON.
    pub memory: RawJson,
    /// Which round of questions this is; the first is 1.
    pub round: u32,
    /// The questions, each with a key of its own.
    pub questions: Vec<AskedQuestion>,
}

impl Asked {
    /// What a call would ask: for tests of whoever runs calls.
    #[must_use]
    pub fn new(memory: RawJson, round: u32, questions: Vec<AskedQuestion>) -> Self {
        Self { memory, round, questions }
    }
}

/// A question of a handler.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AskedQuestion {
    /// The key under which the handler asked.
    pub key: String,
    /// The method that asks the client.
    pub method: &'static str,
    /// Its parameters.
    pub params: RawJson,
}

impl AskedQuestion {
    /// A question under a key: for tests of whoever runs calls.
    #[must_use]
    pub fn new(key: impl Into<String>, method: &'static str, params: RawJson) -> Self {
        Self { key: key.into(), method, params }
    }
}

impl CallOutcome {
    /// Whether the call goes on outside, so that it has to become a task.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.concluded, Err(Halt::Fault(Fault::Elsewhere { .. })))
    }

    /// The outcome as it can be stored.
    #[must_use]
    pub fn settled(self) -> Settled {
        let state = &*self.state;
        match self.concluded {
            Ok(reply) => {
                let is_error = reply.is_error;
                match RawJson::from_serialize(&reply.into_result()) {
                    Ok(result) => Settled::Result { result, is_error },
                    Err(error) => {
                        tracing::error!(%error, "a result could not be encoded");
                        Settled::Error(RpcError::internal())
                    }
                }
            }
            Err(Halt::Parked(questions)) => {
                let (memory, round) = {
                    let attempt = state.attempt();
                    (RawJson::from_serialize(&attempt.answers.remembered), attempt.answers.remembered.round)
                };
                let Ok(memory) = memory else { return Settled::Error(RpcError::internal()) };
                let questions = questions
                    .into_iter()
                    .map(|open| AskedQuestion { key: open.key, method: open.method, params: open.params })
                    .collect();
                Settled::Asks(Asked { memory, round, questions })
            }
            Err(Halt::InputRequired(_)) => Settled::Error(RpcError::internal()),
            Err(Halt::Rpc(error)) => Settled::Error(error),
            Err(Halt::Fault(Fault::Elsewhere { provider, job })) => Settled::Elsewhere { provider, job },
            Err(Halt::Fault(fault)) => Settled::Error(state.error_of(fault).0),
        }
    }
}

impl fmt::Debug for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOutcome").field("succeeded", &self.concluded.is_ok()).finish_non_exhaustive()
    }
}

/// Makes a halt of a refusal.
pub(crate) fn refusal(error: HandlerError) -> Halt {
    Halt::Fault(match error.into_fault() {
        Fault::Unanswered => Fault::Internal("an executor returned an unanswered question".into()),
        fault => fault,
    })
}
