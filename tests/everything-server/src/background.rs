//! Tools whose calls may go on in the background, one for each way in which a task can go.
//!
//! Why here: what a tool says of itself as a task stands beside the handler, which is written like any other.
//! Invariants: nothing here knows whether it runs in place or as a task.
//! Spec: tasks extension draft; 2025-11-25 basic/utilities/tasks

use std::time::Duration;

use mcp_core::{Elicited, Form, HandlerError, NoArguments, RequestContext, TaskOffer, Tool, ToolReply};
use schemars::JsonSchema;
use serde::Deserialize;

/// How long the job takes that fails.
const JOB: Duration = Duration::from_secs(1);
/// The longest that the slow tool is willing to sleep.
const PATIENCE: f64 = 120.0;

/// The tools in the order in which they are listed.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::plain("greet", |arguments: Greet| format!("Hello, {}!", arguments.name)).description("Greets, at once."),
        Tool::typed("slow_compute", slow_compute)
            .description(
                "Sleeps for as long as it is told to; in the background, where the client can be given a task.",
            )
            // A task by itself bounds how long it takes, and so does the handler.
            .timeout(Duration::from_secs(150))
            .task(TaskOffer::optional()),
        Tool::typed("failing_job", failing_job)
            .description("A job that fails after a second. Runs in the background only.")
            .task(TaskOffer::required()),
        Tool::typed("protocol_error_job", panicking_job)
            .description("A job that ends with an error of the protocol. Runs in the background only.")
            .task(TaskOffer::required().at_once()),
        Tool::typed("confirm_delete", confirm_delete)
            .description("Asks for a confirmation while it runs in the background.")
            .task(TaskOffer::optional().at_once()),
        Tool::typed("multi_input", multi_input)
            .description("Asks two questions at once while it runs in the background.")
            .task(TaskOffer::optional().at_once()),
        Tool::typed("test_tool_with_task", ask_then_work)
            .description("Asks for a name first and greets in the background then.")
            .task(TaskOffer::optional().when_asked()),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Who is greeted
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Slow {
    /// How long it takes
    seconds: f64,
    /// What the answer names
    #[serde(default)]
    label: Option<String>,
}

async fn slow_compute(arguments: Slow, context: RequestContext) -> Result<String, HandlerError> {
    let time = Duration::try_from_secs_f64(arguments.seconds.min(PATIENCE))
        .map_err(|_| HandlerError::tell("\"seconds\" must be a number that is not negative"))?;
    tokio::select! {
        () = context.cancelled() => Err(HandlerError::cancelled()),
        () = tokio::time::sleep(time) => {
            let label = arguments.label.as_deref().unwrap_or("it");
            Ok(format!("Computed {label} in {} s.", time.as_secs_f64()))
        }
    }
}

async fn failing_job(_: NoArguments, _: RequestContext) -> Result<ToolReply, HandlerError> {
    tokio::time::sleep(JOB).await;
    Ok(ToolReply::error("The job failed, as it always does."))
}

async fn panicking_job(_: NoArguments, _: RequestContext) -> Result<String, HandlerError> {
    Err(HandlerError::internal("the job has no result to give"))
}

#[derive(Deserialize, JsonSchema)]
struct Delete {
    /// What is to be deleted
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmed {
    /// Whether to go on
    confirm: bool,
}

async fn confirm_delete(arguments: Delete, context: RequestContext) -> Result<String, HandlerError> {
    let name = arguments.filename;
    let question = Form::<Confirmed>::new(format!("Delete {name}?"));
    Ok(match context.ask("confirm", question)? {
        Elicited::Accepted(Confirmed { confirm: true }) => format!("Deleted {name}, or would have."),
        _ => format!("Kept {name}."),
    })
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// What to call you
    name: String,
}

async fn multi_input(_: NoArguments, context: RequestContext) -> Result<String, HandlerError> {
    let questions = (("name", Form::<Name>::new("What is your name?")), ("confirm", Form::<Confirmed>::new("Go on?")));
    let (name, confirmed) = context.ask_all(questions)?;
    let name = name.accepted().map_or_else(|| "nobody".to_owned(), |answer| answer.name);
    let goes_on = confirmed.accepted().is_some_and(|answer| answer.confirm);
    Ok(format!("{name} goes {}.", if goes_on { "on" } else { "no further" }))
}

async fn ask_then_work(_: NoArguments, context: RequestContext) -> Result<String, HandlerError> {
    let name = context.ask("user_name", Form::<Name>::new("What is your name?"))?;
    context.become_task().await?;
    let name = name.accepted().map_or_else(|| "nobody".to_owned(), |answer| answer.name);
    Ok(format!("Hello, {name}, from the background!"))
}
