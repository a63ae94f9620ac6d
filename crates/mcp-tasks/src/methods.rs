//! The methods of tasks, in both eras.
//!
//! Why here: one function per method; what differs between the eras is what a method answers, and `shape` has that.
//! Invariants: every look-up is by owner; an answer counts once; a question is on the stream of one request at a time.
//! Spec: tasks extension draft; 2025-11-25 basic/utilities/tasks, "Protocol Messages"

use std::collections::{BTreeMap, HashSet};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_core::{
    CallExecutor, Extension, ExtensionMethod, ExtensionReply, ExtensionRequest, HandlerError, OwnerKey,
    ProtocolCapability, Question, RequestContext, Server, StoredCall, SubscriptionKind, check_answer,
};
use mcp_wire::capability::ClientCapability;
use mcp_wire::types::MetaObject;
use mcp_wire::{ErrorCode, Method, RawJson, Revision, RpcError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use crate::live::Seat;
use crate::provider::JobState;
use crate::record::{Applied, OpenQuestion, TaskEvent, TaskId, TaskRecord, TaskState};
use crate::shape;
use crate::tasks::{ChangeError, Tasks, now, refused};

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/tasks";

/// The parameters of every method but `tasks/list`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    task_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update {
    task_id: String,
    input_responses: BTreeMap<String, RawJson>,
}

#[derive(Deserialize)]
struct Page {
    cursor: Option<String>,
}

#[async_trait]
impl Extension for Tasks {
    fn id(&self) -> &str {
        ID
    }

    fn advertise(&self, revision: Revision) -> Option<MetaObject> {
        let rules = revision.rules();
        if rules.core_tasks {
            let settings = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
            settings.as_object().cloned()
        } else {
            rules.extensions.then(MetaObject::new)
        }
    }

    fn protocol_capability(&self, revision: Revision) -> Option<ProtocolCapability> {
        revision.rules().core_tasks.then_some(ProtocolCapability::Tasks)
    }

    fn executor(self: Arc<Self>) -> Option<Arc<dyn CallExecutor>> {
        Some(self)
    }

    fn methods(&self) -> Vec<ExtensionMethod> {
        let of_task = |method: Method| ExtensionMethod::new(method.as_str()).needs_declaration();
        vec![
            of_task(Method::TasksGet),
            of_task(Method::TasksUpdate),
            of_task(Method::TasksCancel),
            // It waits for as long as the options say.
            of_task(Method::TasksResult).timeout(None),
            ExtensionMethod::new(Method::TasksList.as_str()),
        ]
    }

    fn notifications(&self) -> Vec<String> {
        vec![Method::TaskStatus.as_str().to_owned()]
    }

    fn subscription_kinds(&self) -> Vec<SubscriptionKind> {
        vec![SubscriptionKind::of_named("taskIds", Method::Tasks.as_str())]
    }

    async fn grants(
        self: Arc<Self>,
        _member: &str,
        names: Vec<String>,
        owner: OwnerKey,
        server: &Server,
    ) -> Vec<String> {
        let mut granted = Vec::with_capacity(names.len());
        for name in names {
            if self.current(owner, &name, server).await.is_ok() {
                granted.push(name);
            }
        }
        granted
    }

    async fn handle(
        self: Arc<Self>,
        request: ExtensionRequest,
        context: RequestContext,
    ) -> Result<ExtensionReply, HandlerError> {
        match request.method {
            Method::TasksGet => self.get(&request, &context).await,
            Method::TasksUpdate => self.update(&request, &context).await,
            Method::TasksCancel => self.cancel(&request, &context).await,
            Method::TasksResult => self.result(&request, &context).await,
            _ => self.list(&request, &context).await,
        }
    }
}

impl Tasks {
    async fn get(&self, request: &ExtensionRequest, context: &RequestContext) -> Result<ExtensionReply, HandlerError> {
        let Named { task_id } = request.parse()?;
        let (record, open) = self.seen(&task_id, context).await?;
        ExtensionReply::new(&shape::detailed(&record, context.revision().rules(), open.as_deref()))
    }

    async fn cancel(
        &self,
        request: &ExtensionRequest,
        context: &RequestContext,
    ) -> Result<ExtensionReply, HandlerError> {
        let Named { task_id } = request.parse()?;
        let rules = context.revision().rules();
        let record = self.current(context.owner(), &task_id, context.server()).await.map_err(fault)?;
        if let Some((provider, job)) = record.job() {
            self.job_system(provider)
                .map_err(HandlerError::internal)?
                .cancel(job)
                .await
                .map_err(HandlerError::internal)?;
        }
        let changed = self.change(context.owner(), &task_id, &TaskEvent::Cancelled, context.server()).await;
        let record = match changed {
            Ok(record) => {
                self.lives().stop(&record.id);
                record
            }
            // The newer form is for whoever wants the task to be over, which it is.
            Err(ChangeError::Ended(record)) if !rules.core_tasks => *record,
            Err(ChangeError::Ended(record)) => {
                let text = format!("the task cannot be cancelled: it is {} already", shape::status(&record, rules));
                return Err(HandlerError::rpc(RpcError::invalid_params(text)));
            }
            Err(error) => return Err(fault(error)),
        };
        if rules.core_tasks { ExtensionReply::new(&shape::brief(&record, rules)) } else { acknowledged() }
    }

    async fn update(
        &self,
        request: &ExtensionRequest,
        context: &RequestContext,
    ) -> Result<ExtensionReply, HandlerError> {
        let Update { task_id, input_responses } = request.parse()?;
        self.answer(&task_id, input_responses.into_iter().collect(), context).await?;
        acknowledged()
    }

    async fn list(&self, request: &ExtensionRequest, context: &RequestContext) -> Result<ExtensionReply, HandlerError> {
        let Page { cursor } = request.parse()?;
        if context.principal().is_anonymous() && context.session().is_none() {
            let text =
                "\"tasks/list\" needs a session or an authenticated caller: nobody else's tasks can be told apart";
            return Err(HandlerError::rpc(RpcError::new(ErrorCode::METHOD_NOT_FOUND, text)));
        }
        let after = cursor.map(|cursor| position(&cursor)).transpose().map_err(HandlerError::rpc)?;
        let limit = self.options().page.max(1);
        let (moment, rules) = (now(context.server()), context.revision().rules());
        let found = self.store().list(context.owner(), after, limit.saturating_add(1)).await;
        let mut records = found.map_err(|error| HandlerError::rpc(refused(&error)))?;
        let has_more = records.len() > limit;
        records.truncate(limit);
        let next = records.last().filter(|_| has_more).map(cursor_after);
        for record in &mut records {
            record.expire(moment);
        }
        records.retain(|record| !record.is_forgettable(moment));
        let tasks: Vec<_> = records.iter().map(|record| shape::brief(record, rules)).collect();
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Listed<'a> {
            tasks: Vec<shape::TaskView<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            next_cursor: Option<String>,
        }
        ExtensionReply::new(&Listed { tasks, next_cursor: next })
    }

    /// Waits for a task to end, and asks its questions meanwhile.
    async fn result(
        &self,
        request: &ExtensionRequest,
        context: &RequestContext,
    ) -> Result<ExtensionReply, HandlerError> {
        let Named { task_id } = request.parse()?;
        let deadline = Instant::now() + self.options().result_wait;
        // Before the first look, so that no change is missed.
        let mut seat = self.lives().join(&TaskId::from(&*task_id));
        // A job outside may take its time to notice an answer; meanwhile it seems to wait for it still.
        let mut answered = HashSet::new();
        loop {
            let (record, open) = self.seen(&task_id, context).await?;
            if record.is_ended() {
                return shape::outcome(&record, context.revision().rules());
            }
            let open = match &record.state {
                TaskState::InputRequired(parked) => &*parked.open,
                _ => open.as_deref().unwrap_or_default(),
            };
            let spoken_for = self.lives().speaks(&record.id, context).err();
            let to_ask: Vec<_> = open.iter().filter(|question| !answered.contains(&question.key)).collect();
            if !to_ask.is_empty() && spoken_for.is_none() {
                let answers = asked(&record, &to_ask, context)?;
                self.answer(&task_id, answers, context).await?;
                answered.extend(to_ask.into_iter().map(|question| question.key.clone()));
                continue;
            }
            let next_look = record.job().is_some().then(|| Duration::from_millis(record.poll_interval.max(1)));
            if waited(&mut seat, spoken_for, next_look, deadline).await.is_err() {
                let text = "the task has not ended; ask again";
                return Err(HandlerError::rpc(RpcError::new(ErrorCode::INTERNAL_ERROR, text)));
            }
        }
    }

    /// The task as its owner sees it, with what a job outside has to say.
    async fn seen(
        &self,
        id: &str,
        context: &RequestContext,
    ) -> Result<(TaskRecord, Option<Vec<OpenQuestion>>), HandlerError> {
        let (owner, server) = (context.owner(), context.server());
        let record = self.current(owner, id, server).await.map_err(fault)?;
        let Some((provider, job)) = record.job() else { return Ok((record, None)) };
        let state = self.job_state(provider, job).await.map_err(HandlerError::internal)?;
        self.stands(record, state, server).await.map_err(fault)
    }

    /// Hands answers to a task. Those to nothing that is open are ignored, and so is everything once it has ended.
    async fn answer(
        &self,
        id: &str,
        answers: Vec<(String, RawJson)>,
        context: &RequestContext,
    ) -> Result<(), HandlerError> {
        let (owner, server) = (context.owner(), context.server());
        loop {
            let mut record = self.current(owner, id, server).await.map_err(fault)?;
            if let Some((provider, job)) = record.job() {
                if let JobState::InputRequired(open) =
                    self.job_state(provider, job).await.map_err(HandlerError::internal)?
                {
                    check(&open, &answers)?;
                }
                self.job_system(provider)
                    .map_err(HandlerError::internal)?
                    .update(job, answers)
                    .await
                    .map_err(HandlerError::internal)?;
                self.lives().changed(&record.id);
                return Ok(());
            }
            if let TaskState::InputRequired(parked) = &record.state {
                check(&parked.open, &answers)?;
            }
            let expected = record.version;
            let event = TaskEvent::Answered(answers.clone());
            let is_stored = match record.apply(event, now(server), Some(self.ask_limits())) {
                Err(_) | Ok(Applied::Unchanged) => return Ok(()),
                Ok(Applied::Changed) => self.saved(&record, expected, server).await.map_err(fault)?,
                Ok(Applied::Resumed(parked)) => {
                    let given = parked.answers.into_iter().map(|(key, answer)| (key.into(), answer)).collect();
                    let stored = StoredCall::new(&*record.tool, record.arguments.clone(), parked.memory, given);
                    let call = context.prepare_again(stored)?;
                    self.resume(record, expected, call).await.map_err(|error| HandlerError::rpc(refused(&error)))?
                }
            };
            if is_stored {
                return Ok(());
            }
        }
    }
}

/// Refuses answers that do not fit their questions, before anything of them counts.
fn check(open: &[OpenQuestion], answers: &[(String, RawJson)]) -> Result<(), HandlerError> {
    for (key, answer) in answers {
        let Some(question) = open.iter().find(|open| *open.key == **key) else { continue };
        check_answer(&question.method, &question.params, answer).map_err(|reason| {
            let text = format!("the answer to \"{key}\" does not fit its question: {reason}");
            HandlerError::rpc(RpcError::invalid_params(text))
        })?;
    }
    Ok(())
}

/// The answers of the client to everything that is open, asked on the stream of this request.
fn asked(
    record: &TaskRecord,
    open: &[&OpenQuestion],
    context: &RequestContext,
) -> Result<Vec<(String, RawJson)>, HandlerError> {
    let mut answers = Vec::with_capacity(open.len());
    let mut missing = None;
    for question in open {
        let params = tagged(record, &question.params)?;
        let answer = match &*question.method {
            Elicitation::METHOD => context.ask(&question.key, Relayed::<Elicitation>::new(params)),
            Sampling::METHOD => context.ask(&question.key, Relayed::<Sampling>::new(params)),
            Roots::METHOD => context.ask(&question.key, Relayed::<Roots>::new(params)),
            other => Err(HandlerError::internal(format!("nothing is known of the question \"{other}\""))),
        };
        match answer {
            Ok(answer) => answers.push((question.key.clone().into(), answer)),
            Err(error) if error.is_unanswered() => missing = Some(error),
            Err(error) => return Err(error),
        }
    }
    missing.map_or(Ok(answers), Err)
}

/// The parameters of a question, tied to its task.
fn tagged(record: &TaskRecord, params: &RawJson) -> Result<RawJson, HandlerError> {
    let mut members: BTreeMap<String, RawJson> = params.parse().map_err(HandlerError::internal)?;
    let mut meta: MetaObject = match members.get("_meta") {
        Some(meta) => meta.parse().map_err(HandlerError::internal)?,
        None => MetaObject::new(),
    };
    meta.extend(shape::related(record));
    members.insert("_meta".to_owned(), RawJson::from_serialize(&meta).map_err(HandlerError::internal)?);
    RawJson::from_serialize(&members).map_err(HandlerError::internal)
}

/// The methods that questions are asked by.
trait Asking: Send + 'static {
    const METHOD: &'static str;
}

struct Elicitation;
struct Sampling;
struct Roots;

impl Asking for Elicitation {
    const METHOD: &'static str = "elicitation/create";
}

impl Asking for Sampling {
    const METHOD: &'static str = "sampling/createMessage";
}

impl Asking for Roots {
    const METHOD: &'static str = "roots/list";
}

/// A question of a task, asked on behalf of the call that is not there to ask.
struct Relayed<A> {
    params: RawJson,
    by: PhantomData<fn() -> A>,
}

impl<A> Relayed<A> {
    fn new(params: RawJson) -> Self {
        Self { params, by: PhantomData }
    }
}

impl<A: Asking> Question for Relayed<A> {
    type Answer = RawJson;

    const METHOD: &'static str = A::METHOD;

    fn needs(&self) -> Vec<ClientCapability> {
        // What the question needs was looked at when the call asked it.
        Vec::new()
    }

    fn params(&self, _revision: Revision) -> Result<RawJson, HandlerError> {
        Ok(self.params.clone())
    }

    fn accept(asked: &RawJson, given: &RawJson) -> Result<RawJson, String> {
        check_answer(A::METHOD, asked, given)?;
        Ok(given.clone())
    }
}

/// It took too long.
struct TooLate;

/// Waits for the task to change, or for the word to be free.
async fn waited(
    seat: &mut Seat,
    spoken_for: Option<tokio_util::sync::CancellationToken>,
    next_look: Option<Duration>,
    deadline: Instant,
) -> Result<(), TooLate> {
    let free = async {
        match spoken_for {
            Some(speaker) => speaker.cancelled_owned().await,
            None => std::future::pending().await,
        }
    };
    let look = async {
        match next_look {
            Some(pause) => tokio::time::sleep(pause).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = seat.changed() => Ok(()),
        () = free => Ok(()),
        () = look => Ok(()),
        () = tokio::time::sleep_until(deadline) => Err(TooLate),
    }
}

fn acknowledged() -> Result<ExtensionReply, HandlerError> {
    ExtensionReply::new(&json!({}))
}

fn fault(error: ChangeError) -> HandlerError {
    HandlerError::rpc(error.into_rpc())
}

/// Where a page ends.
fn cursor_after(record: &TaskRecord) -> String {
    URL_SAFE_NO_PAD.encode(format!("{} {}", record.created_at, record.id))
}

fn position(cursor: &str) -> Result<(u64, TaskId), RpcError> {
    let wrong = || RpcError::invalid_params("params.cursor is none of this list's; start without one");
    let text = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(wrong)?;
    let (created_at, id) = text.split_once(' ').ok_or_else(wrong)?;
    Ok((created_at.parse().map_err(|_| wrong())?, TaskId::from(id)))
}
