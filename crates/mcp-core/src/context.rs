//! What a handler knows of the request it serves, and the few things it can do besides returning.
//!
//! Why here: one value with everything, so that nothing travels by task-locals or hidden arguments.
//! Invariants: nothing here waits for the client; a clone in a spawned task works until the call is over.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_wire::capability::{ClientCapabilities, ClientCapability};
use mcp_wire::params::Params;
use mcp_wire::types::{Implementation, LogMessageParams, LoggingLevel, MetaObject, ProgressParams, ProgressToken};
use mcp_wire::{ErrorCode, Method, RawJson, RequestId, Revision, RpcError, Rules, encode_notification};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::engine::exchange::{Outbound, Outbox};
use crate::engine::rounds::open_visit;
use crate::engine::sessions::Session;
use crate::handler::Fault;
use crate::protocol::answers::{Answers, OpenQuestion, QuestionDigest};
use crate::question::{Elicited, Question, Questions, Visit};
use crate::telemetry::Outcome;
use crate::trace::TraceContext;
use crate::{HandlerError, OwnerKey, Principal, Server};

/// The request that a handler serves. Cheap to clone.
#[derive(Clone)]
pub struct RequestContext(pub(crate) Arc<CallState>);

/// A request that may be over.
#[derive(Clone)]
pub struct WeakRequestContext(Weak<CallState>);

impl WeakRequestContext {
    /// The request, if it is not over.
    #[must_use]
    pub fn upgrade(&self) -> Option<RequestContext> {
        self.0.upgrade().map(RequestContext)
    }
}

impl fmt::Debug for WeakRequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakRequestContext")
    }
}

/// What a client says of itself; a claim, never proof of anything.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClientFacts {
    /// What it declared: on this request in the modern era, in the handshake before.
    pub capabilities: ClientCapabilities,
    /// Its name and version, if it told.
    pub info: Option<RawJson>,
}

/// The state of one call, shared by its context, its exchange and whoever may cancel it.
pub(crate) struct CallState {
    pub(crate) id: RequestId,
    pub(crate) server: Server,
    pub(crate) principal: Principal,
    pub(crate) revision: Revision,
    pub(crate) client: ClientFacts,
    pub(crate) params: Box<Params>,
    pub(crate) trace: TraceContext,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) progress_token: Option<ProgressToken>,
    /// The legacy session whose client can be asked in place; `None` in the modern era.
    pub(crate) session: Option<Session>,
    /// Whether the carrier can bring anything before the response.
    pub(crate) streaming: bool,
    pub(crate) outbox: Outbox,
    pub(crate) cancellation: Cancellation,
    /// `_meta` of every notification of the call.
    pub(crate) tag: Option<MetaObject>,
    pub(crate) attempt: Mutex<Attempt>,
}

/// What changes while a handler runs and from one attempt to the next.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    pub(crate) answers: Answers,
    /// Log messages of the current attempt, suppressed ones included.
    logged: u32,
    /// The last progress that was sent.
    progress: Option<f64>,
    /// The tool's place among its calls that run at a time.
    pub(crate) slot: Option<OwnedSemaphorePermit>,
    /// A misuse of the context, which fails the call whatever the handler returns.
    pub(crate) misuse: Option<&'static str>,
    /// What the call came to, should its response be no plain result.
    pub(crate) outcome: Outcome,
    pub(crate) task: TaskStage,
    /// Whoever waits for the call to become a task.
    pub(crate) task_waker: Option<Waker>,
    /// Dropped with the call.
    held: Vec<Box<dyn Any + Send>>,
}

/// How a call stands to becoming a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TaskStage {
    /// It stays in place.
    #[default]
    Never,
    /// Its owner can make a task of it.
    Possible,
    /// Its handler wants it to be one.
    Wanted,
    /// It is one.
    Task,
}

impl Attempt {
    pub(crate) fn with(answers: Answers) -> Self {
        Self { answers, ..Self::default() }
    }
}

impl RequestContext {
    /// Who sent the request.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// The revision the request is served under. Handlers rarely need it: results are rewritten for older revisions.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.0.revision
    }

    /// What the client declared it can do, here and now.
    #[must_use]
    pub fn client_capabilities(&self) -> &ClientCapabilities {
        &self.0.client.capabilities
    }

    /// Whether the client can be asked for this.
    #[must_use]
    pub fn client_supports(&self, capability: &ClientCapability) -> bool {
        self.0.supports(capability)
    }

    /// What the client says it is. Informational only.
    #[must_use]
    pub fn client_info(&self) -> Option<Implementation> {
        self.0.client.info.as_ref().and_then(|info| info.parse().ok())
    }

    /// The request's `_meta`, untouched.
    #[must_use]
    pub fn meta(&self) -> Option<RawJson> {
        self.0.params.raw().as_ref().and_then(mcp_wire::params::meta_of)
    }

    /// The trace that the request belongs to: what its `_meta` says, else what the carrier's headers say. Never proof of
    /// anything.
    #[must_use]
    pub fn trace(&self) -> &TraceContext {
        &self.0.trace
    }

    /// The server that serves the request: to add and remove tools, and to tell of changes.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.0.server
    }

    /// The answer of the client (its user, its model, its configuration) to a question.
    ///
    /// This is a look-up. Where there is no answer yet it returns an error that the handler passes on with `?`; the
    /// server then asks, in the way the client's revision has, and runs the handler again with the answer. So code
    /// before the last question runs more than once: put effects after it, or behind [`Self::once`].
    ///
    /// `key` names the question within the call. An answer counts only for the very question it was given to, so a
    /// question that contains a time or a random value would be asked for ever: make such values with [`Self::once`].
    ///
    /// # Errors
    /// Unanswered, as said; a capability that the client did not declare (-32021 where the revision has it); an answer
    /// that does not fit the question (-32602).
    #[expect(clippy::needless_pass_by_value, reason = "a question is made for one ask and reads best in place")]
    pub fn ask<Q: Question>(&self, key: &str, question: Q) -> Result<Q::Answer, HandlerError> {
        self.0.ask(key, &question)
    }

    /// As [`Self::ask`], with a question that is only built while it has no answer, and whose answer counts whatever the
    /// question would be now. This is the way to ask with a time or a random value in the wording.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_with<Q: Question>(&self, key: &str, make: impl FnOnce() -> Q) -> Result<Q::Answer, HandlerError> {
        let worded = self.0.attempt().answers.remembered.worded.get(key).cloned();
        if let Some(params) = worded
            && let Some(answer) = self.0.answer::<Q>(key, &QuestionDigest::of(Q::METHOD, &params), &params)?
        {
            return Ok(answer);
        }
        let question = make();
        let params = question.params(Revision::NEWEST)?;
        self.0.attempt().answers.remembered.worded.insert(key.to_owned(), params);
        self.0.ask(key, &question)
    }

    /// Several questions at once: the client gets all that lack an answer in one round.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_all<T: Questions>(&self, questions: T) -> Result<T::Answers, HandlerError> {
        questions.ask_all(self)
    }

    /// As [`Self::ask_all`], for questions of one kind whose number is known only at run time.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_many<K: AsRef<str>, Q: Question>(
        &self,
        questions: impl IntoIterator<Item = (K, Q)>,
    ) -> Result<Vec<Q::Answer>, HandlerError> {
        let mut answers = Vec::new();
        let mut missing = None;
        for (key, question) in questions {
            match self.ask(key.as_ref(), question) {
                Ok(answer) => answers.push(answer),
                Err(error) if error.is_unanswered() => missing = Some(error),
                Err(error) => return Err(error),
            }
        }
        missing.map_or(Ok(answers), Err)
    }

    /// The error of a call that can only succeed once the user has been at a page, for a handler whose own records say
    /// that the user has not. The client opens the page and calls again, when it likes.
    ///
    /// Clients of 2025-11-25 get -32042 with the visit, which needs a [name](Visit::named) for its completion to be told.
    /// Newer ones are asked by a question with this `key`; if they were and the page was not finished, the call fails and
    /// says so. Older ones are told where to go in the text of a failed result.
    pub fn visit_first(&self, key: &str, visit: &Visit) -> HandlerError {
        self.0.visit_first(key, visit).unwrap_or_else(|error| error)
    }

    /// A value made the first time and remembered from then on, however often the handler runs for this call.
    ///
    /// It travels with the client between rounds, sealed, and counts towards
    /// [`Limits::state_bytes`](crate::Limits::state_bytes).
    ///
    /// # Errors
    /// When the value cannot be encoded, or is remembered in another shape: -32603.
    pub fn once<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        make: impl FnOnce() -> T,
    ) -> Result<T, HandlerError> {
        let remembered = self.0.attempt().answers.remembered.once.get(key).cloned();
        if let Some(raw) = remembered {
            return raw.parse().map_err(HandlerError::internal);
        }
        let value = make();
        let raw = RawJson::from_serialize(&value).map_err(HandlerError::internal)?;
        self.0.attempt().answers.remembered.once.insert(key.to_owned(), raw);
        Ok(value)
    }

    /// The handler's own state as [`Self::keep_note`] left it in an earlier attempt.
    #[must_use]
    pub fn note<T: DeserializeOwned>(&self) -> Option<T> {
        let note = self.0.attempt().answers.remembered.note.clone();
        note.and_then(|note| note.parse().ok())
    }

    /// Keeps state for the attempts to come; a later note replaces an earlier one.
    ///
    /// # Errors
    /// When the note cannot be encoded: -32603.
    pub fn keep_note<T: Serialize>(&self, note: &T) -> Result<(), HandlerError> {
        let note = RawJson::from_serialize(note).map_err(HandlerError::internal)?;
        self.0.attempt().answers.remembered.note = Some(note);
        Ok(())
    }

    /// Asks for the call to go on in the background as a task, and waits until it does. Returns at once where it is a task
    /// already, and where it cannot become one: the tool does not [offer](crate::Tool::task) it, the client cannot be given
    /// one, or the server has no tasks. The call then stays as it is.
    ///
    /// # Errors
    /// None; a call that cannot become a task although it [must](crate::TaskOffer::required) ends without coming back here.
    pub async fn become_task(&self) -> Result<(), HandlerError> {
        std::future::poll_fn(|context| self.0.poll_task(context)).await;
        Ok(())
    }

    /// Who owns what this request brings about: the caller, or the session of an anonymous one.
    #[must_use]
    pub fn owner(&self) -> OwnerKey {
        match &self.0.session {
            Some(session) if self.0.principal.is_anonymous() => OwnerKey::of_session(session.id()),
            _ => self.0.principal.key(),
        }
    }

    /// The session that the request belongs to, where its revision has sessions.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        self.0.session.as_ref()
    }

    /// Keeps a value until the request is over, however often its handler runs. What is kept must not hold the context.
    pub fn hold(&self, value: impl Send + 'static) {
        self.0.attempt().held.push(Box::new(value));
    }

    /// The request, for whoever must not keep it alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakRequestContext {
        WeakRequestContext(Arc::downgrade(&self.0))
    }

    /// Whether both are of the same request.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A token that is cancelled with the call, for whoever must not keep the whole request alive: see
    /// [`Self::cancelled`]. A call that has been answered is not cancelled any more, except by the end of what it belongs to.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.0.cancellation.token().clone()
    }

    /// Brings a notification that another call said to the client of this request, on the stream of this request. Never
    /// waits; beyond [`Limits::notices`](crate::Limits::notices) it is dropped, and nothing is sent to a client that takes no
    /// stream.
    pub fn relay(&self, frame: bytes::Bytes) {
        if self.0.streaming {
            self.0.outbox.push(Outbound::Notification(frame));
        }
    }

    /// Tells the client how far the call is, if it asked to know. Never waits; a value that does not increase is
    /// dropped.
    pub fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let state = &*self.0;
        let Some(token) = &state.progress_token else { return };
        if !done.is_finite() || !state.streaming {
            return;
        }
        {
            let mut attempt = state.attempt();
            if attempt.progress.is_some_and(|last| done <= last) {
                return;
            }
            attempt.progress = Some(done);
        }
        let mut params = ProgressParams::new(token.clone(), done);
        params.total = total.filter(|total| total.is_finite());
        // The message came in with the annotations of tools.
        params.message = message.filter(|_| state.rules().tool_annotations).map(ToOwned::to_owned);
        params.meta.clone_from(&state.tag);
        if let Ok(frame) = encode_notification(Method::Progress.as_str(), Some(&params)) {
            state.outbox.push_progress(frame);
        }
    }

    /// Sends a log message to the client, if this client asked for messages of this level. Never waits.
    ///
    /// Nothing secret belongs in `data`.
    pub fn log(&self, level: LoggingLevel, data: impl Serialize) {
        self.log_as(level, None, data);
    }

    /// As [`Self::log`], naming the part of the program that speaks.
    pub fn log_as(&self, level: LoggingLevel, logger: Option<&str>, data: impl Serialize) {
        let state = &*self.0;
        if !state.hears(level) {
            return;
        }
        {
            // Messages that an earlier attempt of this call has sent are not sent again.
            let mut attempt = state.attempt();
            attempt.logged += 1;
            if attempt.logged <= attempt.answers.remembered.logged {
                return;
            }
            attempt.answers.remembered.logged = attempt.logged;
        }
        let Ok(data) = RawJson::from_serialize(&data) else { return };
        let mut params = LogMessageParams::new(level, data);
        params.logger = logger.map(ToOwned::to_owned);
        params.meta.clone_from(&state.tag);
        if let Ok(frame) = encode_notification(Method::LogMessage.as_str(), Some(&params)) {
            state.outbox.push(Outbound::Notification(frame));
        }
    }

    /// Lets a legacy client that can poll for the rest go, for at least `retry`: its stream is closed now and it fetches
    /// the response later. Does nothing elsewhere.
    pub fn release_stream(&self, retry: Duration) {
        if self.0.session.is_some() && self.0.rules().polling {
            self.0.outbox.push(Outbound::Release { retry });
        }
    }

    /// Completes when the call is cancelled: the client went away or withdrew its request, its session ended, or the
    /// server shuts down. The handler then has [`Limits::cancel_grace`](crate::Limits::cancel_grace) to stop.
    pub async fn cancelled(&self) {
        self.0.cancellation.token().cancelled().await;
    }

    /// Whether the call is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancellation.is_cancelled()
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext")
            .field("revision", &self.0.revision)
            .field("principal", &self.0.principal)
            .finish_non_exhaustive()
    }
}

impl CallState {
    pub(crate) fn rules(&self) -> &'static Rules {
        self.revision.rules()
    }

    pub(crate) fn attempt(&self) -> std::sync::MutexGuard<'_, Attempt> {
        self.attempt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin_attempt(&self) {
        self.attempt().logged = 0;
    }

    /// Whether the call goes on in the background.
    pub(crate) fn is_task(&self) -> bool {
        self.attempt().task == TaskStage::Task
    }

    fn poll_task(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut attempt = self.attempt();
        match attempt.task {
            TaskStage::Never | TaskStage::Task => Poll::Ready(()),
            TaskStage::Possible | TaskStage::Wanted => {
                attempt.task = TaskStage::Wanted;
                attempt.task_waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whether a log message of this level would be sent.
    pub(crate) fn hears(&self, level: LoggingLevel) -> bool {
        self.streaming && self.wanted_level().is_some_and(|wanted| level >= wanted)
    }

    fn wanted_level(&self) -> Option<LoggingLevel> {
        match &self.session {
            Some(session) => Some(session.log_level()),
            None => self.log_level,
        }
    }

    fn supports(&self, capability: &ClientCapability) -> bool {
        let rules = self.rules();
        let exists = match capability {
            ClientCapability::ElicitationForm => rules.elicitation,
            ClientCapability::ElicitationUrl => rules.elicitation_extended,
            ClientCapability::SamplingTools | ClientCapability::SamplingContext => rules.sampling_tools,
            _ => true,
        };
        exists && self.client.capabilities.supports(capability)
    }

    fn ask<Q: Question>(&self, key: &str, question: &Q) -> Result<Q::Answer, HandlerError> {
        // The newest revision has every form, so the digest does not depend on who is asked.
        let worded = question.params(Revision::NEWEST)?;
        let digest = QuestionDigest::of(Q::METHOD, &worded);
        if let Some(answer) = self.answer::<Q>(key, &digest, &worded)? {
            return Ok(answer);
        }
        let missing: Vec<_> = question.needs().into_iter().filter(|needed| !self.supports(needed)).collect();
        if !missing.is_empty() {
            return Err(HandlerError::new(Fault::Missing(missing)));
        }
        let params = question.params(self.revision)?;
        let open = OpenQuestion { key: key.to_owned(), digest, method: Q::METHOD, params };
        let mut attempt = self.attempt();
        if let Err(misuse) = attempt.answers.ask(open) {
            attempt.misuse = Some(misuse);
        }
        Err(HandlerError::new(Fault::Unanswered))
    }

    fn visit_first(&self, key: &str, visit: &Visit) -> Result<HandlerError, HandlerError> {
        let rules = self.rules();
        if !rules.elicitation_extended {
            let page = visit.worded(None)?;
            return Ok(HandlerError::tell(format!("{} Open {} and call again.", page.message, page.url)));
        }
        if !rules.named_visits {
            return Ok(match self.ask(key, visit)? {
                Elicited::Accepted(()) => {
                    HandlerError::tell("the page was opened and is not finished; call again later")
                }
                Elicited::Declined | Elicited::Cancelled => HandlerError::tell("this needs a page that was not opened"),
            });
        }
        if !self.supports(&ClientCapability::ElicitationUrl) {
            return Err(HandlerError::new(Fault::Missing(vec![ClientCapability::ElicitationUrl])));
        }
        let id = match visit.id() {
            Some(id) => id.to_owned(),
            None => crate::random::id().map_err(HandlerError::internal)?,
        };
        if let (Some(_), Some(session)) = (visit.id(), &self.session) {
            open_visit(self, session, &id).map_err(HandlerError::rpc)?;
        }
        let page = visit.worded(Some(id))?;
        let message = page.message.clone();
        let error = RpcError::new(ErrorCode::URL_ELICITATION_REQUIRED, message);
        Ok(HandlerError::rpc(error.with_data(json!({ "elicitations": [page] }))))
    }

    /// The answer that was given to this very question, checked against it.
    fn answer<Q: Question>(
        &self,
        key: &str,
        digest: &QuestionDigest,
        worded: &RawJson,
    ) -> Result<Option<Q::Answer>, HandlerError> {
        let Some(given) = self.attempt().answers.answer(key, digest).cloned() else { return Ok(None) };
        let answer = Q::accept(worded, &given).map_err(|reason| {
            HandlerError::rpc(RpcError::invalid_params(format!(
                "the answer to \"{key}\" does not fit its question: {reason}"
            )))
        })?;
        self.attempt().answers.pin(key, digest);
        Ok(Some(answer))
    }
}

/// A token that is only made when somebody looks at it; most calls end without.
pub(crate) struct Cancellation {
    scope: CancellationToken,
    own: OnceLock<CancellationToken>,
}

impl Cancellation {
    pub(crate) fn new(scope: CancellationToken) -> Self {
        Self { scope, own: OnceLock::new() }
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        self.own.get_or_init(|| self.scope.child_token())
    }

    pub(crate) fn cancel(&self) {
        self.token().cancel();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.own.get().map_or_else(|| self.scope.is_cancelled(), CancellationToken::is_cancelled)
    }
}
