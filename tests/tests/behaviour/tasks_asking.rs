//! What a task asks: parked, answered in parts, and asked again only under a new key.
//!
//! Spec: tasks extension draft, "Task Update Requests"; 2025-11-25 basic/utilities/tasks, "Input Required Status"

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_core::{
    Elicited, Form, HandlerError, Limits, NoArguments, RequestContext, Sample, Server, ServerBuilder, TaskOffer, Tool,
};
use mcp_tasks::{TaskOptions, Tasks};
use mcp_tests::{Client, Lane, idle, lanes};
use mcp_wire::types::{CreateMessageParams, SamplingMessage};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::Name;
use crate::tasks::{cancelled, connected, created, id_of, state, tasking};

lanes! {
    everywhere {
        a_task_parks_with_its_question_and_ends_with_the_answer,
        two_questions_are_answered_one_by_one,
        a_key_means_one_question_for_the_life_of_its_task,
        what_was_kept_before_a_question_is_there_after_it,
        an_answer_that_does_not_fit_is_refused_and_the_task_waits_on,
        a_task_that_waits_can_be_cancelled_and_expires,
        a_task_that_asks_too_much_fails,
        what_its_client_cannot_be_asked_ends_a_task_with_the_reason,
        a_tool_that_is_gone_takes_no_answer,
        a_model_is_asked_within_a_task,
    }
    modern "core tasks take answers on the stream of a request that waits" {
        what_a_call_asks_before_its_task_is_asked_of_the_call,
        answers_to_nothing_that_is_open_are_acknowledged_and_ignored,
        answers_that_come_twice_at_once_count_once,
    }
    legacy "the extension has no request that waits" {
        a_question_is_on_one_stream_at_a_time_and_goes_on_when_its_reader_leaves,
        a_client_that_answers_with_an_error_may_be_asked_again,
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Confirmed {
    confirm: bool,
}

/// A tool of a task that asks for a name, then for a confirmation.
fn asks() -> Tool {
    Tool::typed("asks", async |_: NoArguments, context: RequestContext| {
        let name = match context.ask("who", Form::<Name>::new("Who are you?"))? {
            Elicited::Accepted(Name { name, .. }) => name,
            Elicited::Declined | Elicited::Cancelled => "nobody".to_owned(),
        };
        let sure = context.ask("sure", Form::<Confirmed>::new(format!("Sure, {name}?")))?;
        Ok::<_, HandlerError>(format!("{name} {}", sure.accepted().is_some_and(|sure| sure.confirm)))
    })
    .task(TaskOffer::optional().at_once())
}

fn server(tool: Tool) -> ServerBuilder {
    Server::builder("s", "1").extension(Tasks::new()).tool(tool)
}

fn accepted(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// The questions of a task by key, asked in the way of the lane; each is answered by what `answer` makes of it, until the
/// task ends. What it came to, and every question with its key where keys are seen.
async fn interviewed(client: &Client, id: &str, mut answer: impl FnMut(&Value) -> Value) -> (Value, Vec<(String, Value)>) {
    let mut asked = Vec::new();
    if client.lane().is_modern() {
        for _ in 0..50 {
            idle().await;
            let task = state(client, id).await;
            let Some(open) = task.get("inputRequests").and_then(Value::as_object).cloned() else {
                return (task.get("result").or_else(|| task.get("error")).cloned().unwrap_or(task), asked);
            };
            assert_eq!(task["status"], "input_required");
            let mut responses = json!({});
            for (key, question) in open {
                responses[&key] = answer(&question["params"]);
                asked.push((key, question["params"].clone()));
            }
            let reply = client.request("tasks/update", json!({ "taskId": id, "inputResponses": responses })).await;
            assert_eq!(reply.result()["resultType"], "complete");
        }
        panic!("the questions never end");
    }
    let interview = client
        .interview_for("tasks/result", json!({ "taskId": id }), |question| {
            let related = &question.params["_meta"]["io.modelcontextprotocol/related-task"];
            assert_eq!(*related, json!({ "taskId": id }));
            asked.push((String::new(), question.params.clone()));
            answer(&question.params)
        })
        .await;
    let response = interview.reply.response;
    (response.get("result").or_else(|| response.get("error")).cloned().unwrap(), asked)
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {result}"))
}

fn by_message(question: &Value) -> Value {
    match question["message"].as_str().unwrap() {
        "Who are you?" => accepted(json!({ "name": "Ann" })),
        _ => accepted(json!({ "confirm": true })),
    }
}

async fn a_task_parks_with_its_question_and_ends_with_the_answer(lane: Lane) {
    let client = connected(lane, server(asks())).await;
    let task = created(&client, "asks", json!({})).await;
    idle().await;
    assert_eq!(state(&client, id_of(&task)).await["status"], "input_required");
    let (result, asked) = interviewed(&client, id_of(&task), by_message).await;
    assert_eq!(text(&result), "Ann true");
    let messages: Vec<_> = asked.iter().map(|(_, question)| question["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["Who are you?", "Sure, Ann?"]);
    assert_eq!(state(&client, id_of(&task)).await["status"], "completed");
}

/// Hands answers to a task; they are acknowledged and no more.
async fn updated(client: &Client, params: Value) {
    assert_eq!(client.request("tasks/update", params).await.result()["resultType"], "complete");
}

async fn two_questions_are_answered_one_by_one(lane: Lane) {
    let tool = Tool::typed("both", async |_: NoArguments, context: RequestContext| {
        let (name, sure) = context.ask_all((
            ("name", Form::<Name>::new("Who are you?")),
            ("confirm", Form::<Confirmed>::new("Sure?")),
        ))?;
        let name = name.accepted().map(|name| name.name).unwrap_or_default();
        Ok::<_, HandlerError>(format!("{name} {}", sure.accepted().is_some()))
    });
    let client = connected(lane, server(tool.task(TaskOffer::optional().at_once()))).await;
    let task = created(&client, "both", json!({})).await;
    let id = id_of(&task);
    idle().await;
    if lane.is_modern() {
        let open = state(&client, id).await["inputRequests"].clone();
        assert_eq!(open.as_object().unwrap().keys().collect::<Vec<_>>(), ["confirm", "name"]);
        let one = json!({ "taskId": id, "inputResponses": { "name": accepted(json!({ "name": "Ann" })) } });
        updated(&client, one.clone()).await;
        let after = state(&client, id).await;
        assert_eq!(after["status"], "input_required");
        assert_eq!(after["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["confirm"]);
        // An answer that is there already is no second one.
        updated(&client, one).await;
    }
    let (result, asked) = interviewed(&client, id, by_message).await;
    assert_eq!(text(&result), "Ann true");
    assert_eq!(asked.len(), lane.pick(2, 1));
}

async fn a_key_means_one_question_for_the_life_of_its_task(lane: Lane) {
    let attempts = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&attempts);
    let tool = Tool::typed("again", move |_: NoArguments, context: RequestContext| {
        let attempt = counter.fetch_add(1, Ordering::SeqCst).min(2);
        async move {
            // The wording changes twice, so the same key is another question each time.
            context.ask("who", Form::<Name>::new(format!("Who are you? ({attempt})")))?;
            Ok::<_, HandlerError>("known")
        }
    });
    let client = connected(lane, server(tool.task(TaskOffer::optional().at_once()))).await;
    let task = created(&client, "again", json!({})).await;
    let (result, asked) = interviewed(&client, id_of(&task), |_| accepted(json!({ "name": "Ann" }))).await;
    assert_eq!(text(&result), "known");
    if lane.is_modern() {
        let keys: Vec<_> = asked.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["who", "who#2", "who#3"]);
    }
    assert_eq!(asked.len(), 3);
}

async fn what_was_kept_before_a_question_is_there_after_it(lane: Lane) {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&made);
    let tool = Tool::typed("keeps", move |_: NoArguments, context: RequestContext| {
        let made = Arc::clone(&counter);
        async move {
            let number = context.once("number", || made.fetch_add(1, Ordering::SeqCst))?;
            if context.note::<String>().is_none() {
                context.keep_note(&format!("note {number}"))?;
            }
            context.ask("who", Form::<Name>::new("Who are you?"))?;
            Ok::<_, HandlerError>(context.note::<String>().unwrap_or_default())
        }
    });
    let client = connected(lane, server(tool.task(TaskOffer::optional().at_once()))).await;
    let task = created(&client, "keeps", json!({})).await;
    let (result, _) = interviewed(&client, id_of(&task), by_message).await;
    assert_eq!(text(&result), "note 0");
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

async fn an_answer_that_does_not_fit_is_refused_and_the_task_waits_on(lane: Lane) {
    let client = connected(lane, server(asks())).await;
    let task = created(&client, "asks", json!({})).await;
    let id = id_of(&task);
    idle().await;
    // What is no object is no response of an older client either.
    let no_object = lane.pick(json!({}), json!(7));
    for bad in [json!({}), no_object, accepted(json!({})), accepted(json!({ "name": 7 })), json!({ "action": "yes" })] {
        let reply = if lane.is_modern() {
            client.request("tasks/update", json!({ "taskId": id, "inputResponses": { "who": bad } })).await
        } else {
            client.interview_for("tasks/result", json!({ "taskId": id }), |_| bad.clone()).await.reply
        };
        assert_eq!(reply.code(), -32602, "{bad}");
        assert!(reply.message().contains("\"who\""), "{}", reply.message());
        assert_eq!(state(&client, id).await["status"], "input_required", "{bad}");
    }
    let (result, _) = interviewed(&client, id, by_message).await;
    assert_eq!(text(&result), "Ann true");
}

async fn a_task_that_waits_can_be_cancelled_and_expires(lane: Lane) {
    let host = lane.host(&server(asks()).build().unwrap());
    let client = host.connect_as(tasking(lane)).await;
    let (first, second) = (created(&client, "asks", json!({})).await, created(&client, "asks", json!({})).await);
    idle().await;
    cancelled(&client, id_of(&first)).await;
    assert_eq!(state(&client, id_of(&first)).await["status"], "cancelled");
    if lane.is_modern() {
        let late = json!({ "taskId": id_of(&first), "inputResponses": { "who": accepted(json!({ "name": "Ann" })) } });
        updated(&client, late).await;
        idle().await;
        assert_eq!(state(&client, id_of(&first)).await["status"], "cancelled", "an answer revives nothing");
    }
    tokio::time::sleep(Duration::from_secs(3601)).await;
    let client = host.connect_as(tasking(lane)).await;
    let expired = state(&client, id_of(&second)).await;
    assert_eq!(expired["status"], "failed");
    assert!(expired["statusMessage"].as_str().unwrap().contains("lifetime"));
}

async fn a_task_that_asks_too_much_fails(lane: Lane) {
    let endless = |name: &str| {
        let asked = AtomicUsize::new(0);
        Tool::typed(name, move |_: NoArguments, context: RequestContext| {
            let number = asked.fetch_add(1, Ordering::SeqCst);
            async move {
                context.ask("who", Form::<Name>::new(format!("Who? {number}")))?;
                Ok::<_, HandlerError>("")
            }
        })
        .task(TaskOffer::optional().at_once())
    };
    let hoards = Tool::typed("hoards", async |_: NoArguments, context: RequestContext| {
        context.keep_note(&"x".repeat(2000))?;
        context.ask("who", Form::<Name>::new("Who?"))?;
        Ok::<_, HandlerError>("")
    })
    .task(TaskOffer::optional().at_once());
    let mut limits = Limits::default();
    limits.rounds = 4;
    let mut options = TaskOptions::default();
    options.questions = 3;
    options.memory_bytes = 1000;
    let few_rounds = Server::builder("s", "1").limits(limits).extension(Tasks::new()).tool(endless("rounds"));
    let few_keys = Server::builder("s", "1")
        .extension(Tasks::builder().options(options).build())
        .tool(endless("keys"))
        .tool(hoards);
    let rounds = connected(lane, few_rounds).await;
    let keys = connected(lane, few_keys).await;
    for (client, tool, questions) in [(&rounds, "rounds", 4), (&keys, "keys", 3), (&keys, "hoards", 0)] {
        let task = created(client, tool, json!({})).await;
        let (error, asked) = interviewed(client, id_of(&task), |_| accepted(json!({ "name": "Ann" }))).await;
        assert_eq!((error["code"].as_i64(), asked.len()), (Some(-32603), questions), "{tool}: {error}");
        assert_eq!(state(client, id_of(&task)).await["status"], "failed", "{tool}");
    }
}

async fn what_its_client_cannot_be_asked_ends_a_task_with_the_reason(lane: Lane) {
    let mut profile = tasking(lane);
    for kind in ["elicitation", "sampling", "roots"] {
        profile.capabilities.as_object_mut().unwrap().remove(kind);
    }
    let client = lane.host(&server(asks()).build().unwrap()).connect_as(profile).await;
    let task = created(&client, "asks", json!({})).await;
    idle().await;
    let (outcome, asked) = interviewed(&client, id_of(&task), |_| panic!("nothing may be asked")).await;
    assert!(asked.is_empty());
    if lane.is_modern() {
        assert_eq!(outcome["code"], -32021);
    } else {
        assert_eq!(outcome["isError"], true, "{outcome}");
    }
    assert_eq!(state(&client, id_of(&task)).await["status"], "failed");
}

async fn a_tool_that_is_gone_takes_no_answer(lane: Lane) {
    let server = server(asks()).build().unwrap();
    let client = lane.host(&server).connect_as(tasking(lane)).await;
    let task = created(&client, "asks", json!({})).await;
    idle().await;
    server.remove_tool("asks");
    let reply = if lane.is_modern() {
        let answers = json!({ "who": accepted(json!({ "name": "Ann" })) });
        client.request("tasks/update", json!({ "taskId": id_of(&task), "inputResponses": answers })).await
    } else {
        client.interview_for("tasks/result", json!({ "taskId": id_of(&task) }), |question| by_message(&question.params)).await.reply
    };
    assert_eq!(reply.code(), -32602);
    assert!(reply.message().contains("asks"), "{}", reply.message());
    server.add_tool(asks()).unwrap();
    let (result, _) = interviewed(&client, id_of(&task), by_message).await;
    assert_eq!(text(&result), "Ann true", "nothing was lost by it");
}

async fn a_model_is_asked_within_a_task(lane: Lane) {
    let tool = Tool::typed("thinks", async |_: NoArguments, context: RequestContext| {
        let params = CreateMessageParams::new(vec![SamplingMessage::user_text("2 + 2?")], 10);
        let answer = context.ask("sum", Sample(params))?;
        Ok::<_, HandlerError>(answer.model)
    });
    let client = connected(lane, server(tool.task(TaskOffer::optional().at_once()))).await;
    let task = created(&client, "thinks", json!({})).await;
    let answer = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "4" } });
    let (result, asked) = interviewed(&client, id_of(&task), |_| answer.clone()).await;
    assert_eq!((text(&result), asked.len()), ("m", 1));
}

async fn what_a_call_asks_before_its_task_is_asked_of_the_call(lane: Lane) {
    let tool = Tool::typed("both", async |_: NoArguments, context: RequestContext| {
        let before = context.ask("before", Form::<Name>::new("Who are you?"))?;
        context.become_task().await?;
        let within = context.ask("within", Form::<Name>::new("And whom do you bring?"))?;
        let names = [before, within].map(|name| name.accepted().map(|name| name.name).unwrap_or_default());
        Ok::<_, HandlerError>(names.join(" and "))
    });
    let client = connected(lane, server(tool.task(TaskOffer::optional().when_asked()))).await;
    let first = client.call("both", json!({})).await;
    assert_eq!(first.result()["resultType"], "input_required");
    assert!(first.result().get("taskId").is_none());
    assert_eq!(first.result()["inputRequests"].as_object().unwrap().len(), 1);
    let again = json!({
        "name": "both",
        "arguments": {},
        "inputResponses": { "before": accepted(json!({ "name": "Ann" })) },
        "requestState": first.result()["requestState"],
    });
    let task = client.request("tools/call", again).await.result().clone();
    assert_eq!(task["resultType"], "task");
    let (result, asked) = interviewed(&client, id_of(&task), |_| accepted(json!({ "name": "Bob" }))).await;
    assert_eq!(text(&result), "Ann and Bob");
    assert_eq!(asked.len(), 1, "what the call knew is not asked of the task");
}

async fn answers_to_nothing_that_is_open_are_acknowledged_and_ignored(lane: Lane) {
    let client = connected(lane, server(asks())).await;
    let task = created(&client, "asks", json!({})).await;
    let id = id_of(&task);
    for responses in [json!({}), json!({ "other": {} }), json!({ "sure": accepted(json!({ "confirm": true })) })] {
        let reply = client.request("tasks/update", json!({ "taskId": id, "inputResponses": responses })).await;
        assert_eq!(reply.result()["resultType"], "complete", "{responses}");
        idle().await;
        assert_eq!(state(&client, id).await["status"], "input_required");
    }
    let (result, _) = interviewed(&client, id, by_message).await;
    assert_eq!(text(&result), "Ann true");
    let late = json!({ "taskId": id, "inputResponses": { "who": 7 } });
    assert_eq!(client.request("tasks/update", late).await.result()["resultType"], "complete");
}

async fn answers_that_come_twice_at_once_count_once(lane: Lane) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let tool = Tool::typed("counts", move |_: NoArguments, context: RequestContext| {
        let runs = Arc::clone(&counter);
        async move {
            context.ask("who", Form::<Name>::new("Who are you?"))?;
            runs.fetch_add(1, Ordering::SeqCst);
            Ok::<_, HandlerError>("known")
        }
    });
    let client = connected(lane, server(tool.task(TaskOffer::optional().at_once()))).await;
    let task = created(&client, "counts", json!({})).await;
    idle().await;
    let answer = json!({ "taskId": id_of(&task), "inputResponses": { "who": accepted(json!({ "name": "Ann" })) } });
    let calls: Vec<_> = (0..8).map(|_| client.start("tasks/update", answer.clone())).collect();
    for call in calls {
        assert_eq!(call.reply().await.result()["resultType"], "complete");
    }
    idle().await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(state(&client, id_of(&task)).await["status"], "completed");
}

async fn a_question_is_on_one_stream_at_a_time_and_goes_on_when_its_reader_leaves(lane: Lane) {
    let client = connected(lane, server(asks())).await;
    let task = created(&client, "asks", json!({})).await;
    idle().await;
    let params = json!({ "taskId": id_of(&task) });
    let mut first = client.start("tasks/result", params.clone());
    let asked = first.server_request().await;
    let mut second = client.start("tasks/result", params.clone());
    second.is_quiet().await;
    client.cancel(first).await;
    let again = second.server_request().await;
    assert_eq!(again["params"]["message"], asked["params"]["message"]);
    client.answer(&again, by_message(&again["params"])).await;
    let sure = second.server_request().await;
    client.answer(&sure, by_message(&sure["params"])).await;
    assert_eq!(second.reply().await.tool_text(), "Ann true");
}

async fn a_client_that_answers_with_an_error_may_be_asked_again(lane: Lane) {
    let client = connected(lane, server(asks())).await;
    let task = created(&client, "asks", json!({})).await;
    let mut waiting = client.start("tasks/result", json!({ "taskId": id_of(&task) }));
    let question = waiting.server_request().await;
    client.answer_error(&question, -1, "not now").await;
    assert_eq!(waiting.reply().await.code(), -32603);
    assert_eq!(state(&client, id_of(&task)).await["status"], "input_required");
    let (result, _) = interviewed(&client, id_of(&task), by_message).await;
    assert_eq!(text(&result), "Ann true");
}

