//! The hand-off: a call is answered in place, or moved into a task that settles it.
//!
//! Why here: the one place where a call changes its owner, and the crate's only spawns.
//! Invariants: a ready outcome always wins over the end of the window; the record is stored before anybody is told of the
//! task; storing and moving are one unit that no disappearing request can cut in two; every task that runs is settled once.
//! Spec: tasks extension draft, "Task Creation"; 2025-11-25 basic/utilities/tasks, "Creating Tasks"

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mcp_core::{
    Apart, CallEvent, CallExecutor, CallOutcome, CallReply, HandlerError, OwnerKey, PreparedCall, RequestContext,
    RunFuture, RunningCall, Server, Settled, Taken, TaskOffer, TaskStart, WeakSession,
};
use mcp_wire::capability::ClientCapability;
use mcp_wire::types::TaskSupport;
use mcp_wire::{ErrorCode, RawJson, RpcError, Rules};
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::live::Seat;
use crate::methods::ID;
use crate::mode::{CallMode, ClientOffer, Refusal, call_mode};
use crate::options::{LegacyTasks, TaskOptions};
use crate::record::{TaskEvent, TaskId, TaskRecord, TaskState, owned};
use crate::shape;
use crate::store::{Saved, StoreError};
use crate::tasks::{ChangeError, Tasks, now, refused};

/// The member `task` of a call.
#[derive(Debug, Default, Deserialize)]
struct Requested {
    ttl: Option<f64>,
}

/// Everything that has to be known of a task before there is one.
struct Plan {
    server: Server,
    rules: &'static Rules,
    owner: OwnerKey,
    tool: Box<str>,
    arguments: RawJson,
    ttl: u64,
    poll_interval: u64,
    /// Without a task the call is run in place.
    is_optional: bool,
    /// What is cancelled when the client leaves before it knows of the task; a client that can come back does not leave.
    left: Option<CancellationToken>,
    /// The session that everything of an anonymous owner ends with.
    session: Option<CancellationToken>,
    /// The session that hears what becomes of the task.
    hears: Option<WeakSession>,
}

impl CallExecutor for Tasks {
    fn take(self: Arc<Self>, call: PreparedCall) -> Taken {
        let requested = match requested(&call, self.options().legacy) {
            Ok(requested) => requested,
            Err(error) => return Taken::Refused(HandlerError::rpc(error)),
        };
        let offer = call.offer();
        let support = offer.map_or(TaskSupport::Forbidden, TaskOffer::support);
        let start = offer.map_or(TaskStart::WhenAsked, TaskOffer::start);
        match call_mode(support, client_offer(&call, requested.as_ref()), start) {
            CallMode::Inline => Taken::Left(call),
            CallMode::Refuse(refusal) => Taken::Refused(refuse(refusal, &call)),
            CallMode::Task(start) => Taken::Run(RunFuture::new(async move {
                match start {
                    TaskStart::AtOnce => self.create(call, requested).await,
                    TaskStart::After(window) => self.escalate(call, requested, Some(window)).await,
                    TaskStart::WhenAsked => self.escalate(call, requested, None).await,
                }
            })),
        }
    }
}

/// What a call of a revision with core tasks says in `task`; elsewhere the member means nothing.
fn requested(call: &PreparedCall, policy: LegacyTasks) -> Result<Option<Requested>, RpcError> {
    if !call.context().revision().rules().core_tasks {
        return Ok(None);
    }
    let Some(task) = call.requested().filter(|task| task.as_str() != "null") else {
        let negotiated = call.context().client_capabilities().tasks.is_some();
        let makes_tasks = call.offer().is_some();
        return Ok((policy == LegacyTasks::OnNegotiation && negotiated && makes_tasks).then(Requested::default));
    };
    if !task.is_object() {
        let text = format!("params.task must be an object, not {}", task.kind().with_article());
        return Err(RpcError::invalid_params(text));
    }
    let wrong = || RpcError::invalid_params("params.task.ttl must be a number of milliseconds, at least 0");
    let requested: Requested = task.parse().map_err(|_| wrong())?;
    if requested.ttl.is_some_and(|ttl| ttl < 0.0) { Err(wrong()) } else { Ok(Some(requested)) }
}

fn client_offer(call: &PreparedCall, requested: Option<&Requested>) -> ClientOffer {
    let context = call.context();
    if requested.is_some() {
        ClientOffer::Requested
    } else if context.revision().rules().extensions
        && context.client_supports(&ClientCapability::Extension(ID.to_owned()))
    {
        ClientOffer::Declared
    } else {
        ClientOffer::Nothing
    }
}

fn refuse(refusal: Refusal, call: &PreparedCall) -> HandlerError {
    let text = match refusal {
        Refusal::NoTasks => format!("tool \"{}\" does not run as a task; call it without \"task\"", call.tool()),
        Refusal::OnlyTasks if call.context().revision().rules().extensions => {
            return HandlerError::missing_capability(ClientCapability::Extension(ID.to_owned()));
        }
        Refusal::OnlyTasks => format!("tool \"{}\" runs only as a task; call it with \"task\"", call.tool()),
    };
    HandlerError::rpc(RpcError::new(ErrorCode::METHOD_NOT_FOUND, text))
}

impl Tasks {
    /// The task is there first, and the call begins within it.
    async fn create(&self, call: PreparedCall, requested: Option<Requested>) -> CallReply {
        let plan = Plan::of(self.options(), call.context(), call.tool(), call.offer(), call.arguments(), requested);
        self.reply_of_task(Unit::Prepared(call), plan).await
    }

    /// The call begins in place, and becomes a task when its window is over or its handler says so. Until then nothing is
    /// copied or reserved, for most calls end in their window.
    async fn escalate(&self, call: PreparedCall, requested: Option<Requested>, window: Option<Duration>) -> CallReply {
        let mut running = call.start();
        let moved_out = match within(&mut running, window).await {
            Some(outcome) if !outcome.is_elsewhere() => return CallReply::Outcome(outcome),
            ended => ended,
        };
        let context = running.context();
        let plan = Plan::of(self.options(), &context, running.tool(), running.offer(), running.arguments(), requested);
        match moved_out {
            Some(outcome) => self.hand_over(outcome, plan).await,
            // The handler of a call whose client is gone gets its grace and no task.
            None if context.is_cancelled() => in_place(running, &plan.server).await,
            None => self.reply_of_task(Unit::Running(running), plan).await,
        }
    }

    /// Makes a task of a call, and says so; where there can be none, the call stays in place if it may.
    async fn reply_of_task(&self, unit: Unit, plan: Plan) -> CallReply {
        let record = match plan.record(TaskState::Working) {
            Ok(record) => record,
            Err(error) => return CallReply::Error(HandlerError::rpc(error)),
        };
        let (server, rules, is_optional) = (plan.server.clone(), plan.rules, plan.is_optional);
        match self.store_and_run(unit, record.clone(), plan).await {
            Some(Ok(())) => created(&record, rules),
            Some(Err((unit, error))) if is_optional => {
                tracing::warn!(%error, "a call stays in place, because there can be no task for it");
                in_place(unit.in_place(), &server).await
            }
            Some(Err((_, error))) => CallReply::Error(HandlerError::rpc(refused(&error))),
            None => CallReply::Error(HandlerError::internal("the runtime ended")),
        }
    }

    /// Stores the record and moves the call into its task: one unit, which goes on when whoever waits for it is gone. Gives
    /// the call back where the record could not be stored; `None` when the runtime ended.
    async fn store_and_run(
        &self,
        unit: Unit,
        record: TaskRecord,
        plan: Plan,
    ) -> Option<Result<(), (Unit, StoreError)>> {
        let (tell, told) = oneshot::channel();
        let tasks = self.clone();
        spawn(async move {
            // Taken before anybody can end the task, so that its end is noticed.
            let seat = tasks.lives().join(&record.id);
            match tasks.insert(&record).await {
                Ok(()) => {
                    let running = unit.in_task(&record, &plan);
                    // Whoever left in between is noticed by the token.
                    let _ = tell.send(Ok(()));
                    tasks.look_after(&plan, &record.id);
                    tasks.collect(seat, record, running, plan.server, plan.left).await;
                }
                Err(error) => drop(tell.send(Err((unit, error)))),
            }
        });
        told.await.ok()
    }

    /// The call ended in place by going on outside.
    async fn hand_over(&self, outcome: CallOutcome, plan: Plan) -> CallReply {
        let Settled::Elsewhere { provider, job } = outcome.settled() else {
            return CallReply::Error(HandlerError::internal("an outcome changed"));
        };
        if let Err(error) = self.job_system(&provider) {
            return CallReply::Error(HandlerError::internal(error));
        }
        let state = TaskState::Elsewhere { provider: provider.into(), job: job.into() };
        let record = match plan.record(state) {
            Ok(record) => record,
            Err(error) => return CallReply::Error(HandlerError::rpc(error)),
        };
        match self.insert(&record).await {
            Ok(()) => {
                self.look_after(&plan, &record.id);
                created(&record, plan.rules)
            }
            Err(error) => CallReply::Error(HandlerError::rpc(refused(&error))),
        }
    }

    /// Sees to it that the session of a client hears of its task, and that the tasks of an anonymous client end with it.
    fn look_after(&self, plan: &Plan, id: &TaskId) {
        if let Some(session) = &plan.hears {
            self.lives().opens_channel(id, session.clone());
        }
        let Some(session) = plan.session.clone() else { return };
        let (tasks, owner) = (self.clone(), plan.owner);
        if tasks.watches(owner) {
            // Of all tasks of the session, so of no request.
            tracing::Span::none().in_scope(|| {
                spawn(async move {
                    session.cancelled().await;
                    tasks.session_ended(owner).await;
                });
            });
        }
    }

    /// Runs a call to its end and stores what comes of it.
    pub(crate) async fn collect(
        self,
        seat: Seat,
        record: TaskRecord,
        mut running: RunningCall,
        server: Server,
        left: Option<CancellationToken>,
    ) {
        let stopped = seat.runs();
        let cancelled = running.cancellation();
        let rest = Duration::from_millis(record.expires_at().saturating_sub(now(&server)));
        let lifetime = tokio::time::sleep(rest);
        tokio::pin!(lifetime);
        let event = loop {
            tokio::select! {
                biased;
                event = running.next() => match event {
                    CallEvent::Finished(outcome) => break event_of(outcome),
                    CallEvent::WantsTask => running.detach(),
                    CallEvent::Said(frame) => self.lives().relay(&record.id, frame),
                    _ => {}
                },
                // The record has ended already.
                () = stopped.cancelled() => return,
                () = gone(left.as_ref()) => break TaskEvent::Cancelled,
                () = cancelled.cancelled() => break TaskEvent::Cancelled,
                () = &mut lifetime => break TaskEvent::Expired,
            }
        };
        drop(running);
        let event = match event {
            TaskEvent::Cancelled if server.stopped().is_cancelled() => TaskEvent::Lost,
            event => event,
        };
        self.settle(&record, &event, &server).await;
    }

    /// Stores what came of a task; a store that does not work gets some time to recover.
    async fn settle(&self, record: &TaskRecord, event: &TaskEvent, server: &Server) {
        let mut pause = Duration::from_millis(50);
        for _ in 0..8 {
            match self.change(record.owner, record.id.as_str(), event, server).await {
                Ok(_) | Err(ChangeError::Unknown | ChangeError::Ended(_)) => return,
                Err(ChangeError::Store(error)) => {
                    tracing::warn!(%error, "what came of a task could not be stored; trying again");
                    tokio::time::sleep(pause).await;
                    pause = pause.saturating_mul(2);
                }
            }
        }
        tracing::error!("what came of a task is lost: its store does not work; the task expires");
    }

    /// Stores a task whose call has every answer, and runs the call again. `false` when somebody else changed the task.
    pub(crate) async fn resume(
        &self,
        record: TaskRecord,
        expected: u64,
        call: PreparedCall,
    ) -> Result<bool, StoreError> {
        let context = call.context();
        let session = context.session().filter(|_| context.principal().is_anonymous());
        let apart = apart(&record, context.revision().rules(), session.map(mcp_core::Session::ended));
        let server = context.server().clone();
        let (tell, told) = oneshot::channel();
        let tasks = self.clone();
        spawn(async move {
            let seat = tasks.lives().join(&record.id);
            match tasks.store().save(&record, expected).await {
                Ok(Saved::Stored) => {
                    tasks.told(&record, None, &server);
                    let _ = tell.send(Ok(true));
                    tasks.collect(seat, record, call.start_apart(apart), server, None).await;
                }
                Ok(Saved::Conflict) => drop(tell.send(Ok(false))),
                Err(error) => drop(tell.send(Err(error))),
            }
        });
        told.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the runtime ended".into())))
    }
}

/// A call that is to become a task.
enum Unit {
    Prepared(PreparedCall),
    Running(RunningCall),
}

impl Unit {
    fn in_task(self, record: &TaskRecord, plan: &Plan) -> RunningCall {
        match self {
            Self::Prepared(call) => call.start_apart(apart(record, plan.rules, plan.session.clone())),
            Self::Running(running) => {
                running.detach();
                running
            }
        }
    }

    fn in_place(self) -> RunningCall {
        match self {
            Self::Prepared(call) => call.start(),
            Self::Running(running) => running,
        }
    }
}

impl Plan {
    fn of(
        options: &TaskOptions,
        context: &RequestContext,
        tool: &str,
        offer: Option<&TaskOffer>,
        arguments: &RawJson,
        requested: Option<Requested>,
    ) -> Self {
        let is_requested = requested.is_some();
        let own = offer.and_then(TaskOffer::lifetime).unwrap_or(options.ttl);
        let wanted = requested.and_then(|requested| requested.ttl);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is not negative")]
        let ttl =
            wanted.map_or_else(|| milliseconds(own), |ttl| (ttl as u64).min(milliseconds(options.max_ttl.max(own))));
        let session = context.session().filter(|_| context.principal().is_anonymous());
        Self {
            server: context.server().clone(),
            rules: context.revision().rules(),
            owner: context.owner(),
            tool: tool.into(),
            arguments: owned(arguments),
            ttl,
            poll_interval: milliseconds(offer.and_then(TaskOffer::polling).unwrap_or(options.poll_interval)),
            is_optional: !is_requested && offer.is_some_and(|offer| offer.support() == TaskSupport::Optional),
            left: context.session().is_none().then(|| context.cancellation()),
            session: session.map(mcp_core::Session::ended),
            hears: context.session().map(mcp_core::Session::downgrade),
        }
    }

    fn record(&self, state: TaskState) -> Result<TaskRecord, RpcError> {
        let now = now(&self.server);
        Ok(TaskRecord {
            id: TaskId::random()?,
            owner: self.owner,
            version: 1,
            created_at: now,
            updated_at: now,
            ttl: self.ttl,
            poll_interval: self.poll_interval,
            tool: self.tool.clone(),
            arguments: self.arguments.clone(),
            issued: Vec::new(),
            state,
        })
    }
}

/// How a call is run whose request may be over.
fn apart(record: &TaskRecord, rules: &Rules, session: Option<CancellationToken>) -> Apart {
    // Core tasks tell of their progress as long as they run; the extension's do not.
    let apart = if rules.core_tasks { Apart::new().with_notices(shape::related(record)) } else { Apart::new() };
    match session {
        Some(session) => apart.within(session),
        None => apart,
    }
}

/// The outcome of a call, if it comes before the end of the window and before its handler wants a task; the timer is only
/// started when the call is not ready at once.
async fn within(running: &mut RunningCall, window: Option<Duration>) -> Option<CallOutcome> {
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|context| {
        while let Poll::Ready(event) = running.poll_next(context) {
            match event {
                CallEvent::Finished(outcome) => return Poll::Ready(Some(outcome)),
                CallEvent::WantsTask => return Poll::Ready(None),
                _ => {}
            }
        }
        let Some(window) = window else { return Poll::Pending };
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(window)));
        timer.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// Runs a call to its end without a task.
async fn in_place(mut running: RunningCall, server: &Server) -> CallReply {
    running.stay();
    loop {
        match running.next().await {
            CallEvent::Finished(outcome) if outcome.is_elsewhere() => {
                tracing::error!(server = ?server, "a call that goes on outside needs a task, and there can be none");
                return CallReply::Error(HandlerError::rpc(RpcError::internal()));
            }
            CallEvent::Finished(outcome) => return CallReply::Outcome(outcome),
            _ => running.stay(),
        }
    }
}

fn created(record: &TaskRecord, rules: &Rules) -> CallReply {
    match shape::created(record, rules) {
        Ok(result) => CallReply::Instead { result, result_type: shape::RESULT_TYPE },
        Err(error) => CallReply::Error(error),
    }
}

fn event_of(outcome: CallOutcome) -> TaskEvent {
    match outcome.settled() {
        Settled::Result { result, is_error } => TaskEvent::Finished { result, is_error },
        Settled::Error(error) => TaskEvent::Failed(error),
        Settled::Asks(asked) => TaskEvent::Asks(asked),
        Settled::Elsewhere { provider, job } => TaskEvent::HandedOver { provider, job },
        _ => TaskEvent::Failed(RpcError::internal()),
    }
}

/// Completes when the client has gone; never, if it can come back.
async fn gone(left: Option<&CancellationToken>) {
    match left {
        Some(left) => left.cancelled().await,
        None => std::future::pending().await,
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A call that goes on apart is still within the span of the request that brought it.
fn spawn(unit: impl Future<Output = ()> + Send + 'static) {
    #[expect(clippy::disallowed_methods, reason = "ends with the call, the lifetime of its task, or the server")]
    drop(tokio::spawn(unit.in_current_span()));
}
