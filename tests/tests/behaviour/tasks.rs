//! Tasks: which calls become one, what becomes of it, and how its end is told in both forms.
//!
//! When a call becomes one is in `tasks_hand_off.rs`, what a task asks in `tasks_asking.rs`, whose it is in
//! `tasks_owners.rs`, what runs outside in `tasks_outside.rs`.
//!
//! Spec: 2025-11-25 basic/utilities/tasks; tasks extension draft

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_core::{HandlerError, NoArguments, RequestContext, Server, ServerBuilder, TaskOffer, Tool};
use mcp_tasks::{ID, LegacyTasks, TaskOptions, Tasks};
use mcp_tests::{Client, Host, Lane, Profile, Reply, idle, lanes};
use mcp_wire::{ErrorCode, RpcError};
use serde_json::{Value, json};
use tokio::sync::Notify;

lanes! {
    everywhere {
        every_row_of_the_table_of_modes_is_as_decided,
        tasks_are_advertised_where_they_exist,
        a_task_is_found_at_once_and_its_result_when_it_ends,
        a_tool_that_fails_ends_its_task_in_the_words_of_the_revision,
        a_panic_and_a_protocol_error_are_failed_tasks,
        a_task_that_is_cancelled_stays_so_and_its_handler_hears_of_it,
        a_task_that_ended_is_not_cancelled,
        a_task_outlives_the_default_timeout_and_ends_with_its_lifetime,
        a_task_is_forgotten_a_minute_after_its_lifetime,
        there_is_an_answer_for_one_task_too_many,
        parameters_that_do_not_fit_are_refused,
        the_end_of_the_server_fails_what_runs,
    }
    modern "it is the extension that has neither, and that is declared request by request" {
        what_older_clients_have_is_not_there,
        whoever_does_not_declare_tasks_has_none,
    }
    legacy "the extension has neither a list nor a request that waits" {
        a_list_has_pages_that_neither_skip_nor_repeat,
        a_result_is_waited_for_and_tied_to_its_task,
        progress_goes_on_where_the_result_is_waited_for,
        a_lifetime_can_be_asked_for_within_bounds,
        negotiation_can_be_enough_for_a_task,
        who_waits_too_long_may_ask_again,
    }
}

/// A client that knows of tasks and can be asked everything.
pub(crate) fn tasking(lane: Lane) -> Profile {
    let mut profile = Profile::default();
    if lane.is_modern() {
        profile.capabilities["extensions"] = json!({ ID: {} });
    }
    profile
}

/// Tools that take ten seconds, that fail, and that end at once; each begins a task at once.
fn server(tasks: Tasks) -> ServerBuilder {
    let slow = Tool::typed("slow", async |_: NoArguments, _: RequestContext| {
        tokio::time::sleep(Duration::from_secs(10)).await;
        Ok::<_, HandlerError>("done")
    });
    let fails = Tool::typed("fails", async |_: NoArguments, _: RequestContext| {
        Err::<String, _>(HandlerError::tell("no such luck"))
    });
    let panics = Tool::typed("panics", async |_: NoArguments, _: RequestContext| -> Result<String, HandlerError> {
        panic!("on purpose")
    });
    let refuses = Tool::typed("refuses", async |_: NoArguments, _: RequestContext| {
        Err::<String, _>(HandlerError::rpc(RpcError::new(ErrorCode(-32099), "not today")))
    });
    let quick = Tool::plain("quick", |_: NoArguments| "quick");
    Server::builder("s", "1")
        .extension(tasks)
        .tool(slow.task(TaskOffer::optional().at_once()))
        .tool(fails.task(TaskOffer::optional().at_once()))
        .tool(panics.task(TaskOffer::optional().at_once()))
        .tool(refuses.task(TaskOffer::required().at_once()))
        .tool(quick)
}

pub(crate) async fn connected(lane: Lane, server: ServerBuilder) -> Client {
    lane.host(&server.build().unwrap()).connect_as(tasking(lane)).await
}

/// Calls a tool in the way of the lane that makes a task of it.
pub(crate) async fn called(client: &Client, tool: &str, arguments: Value) -> Reply {
    let mut params = json!({ "name": tool, "arguments": arguments });
    if !client.lane().is_modern() {
        params["task"] = json!({});
    }
    client.request("tools/call", params).await
}

/// Calls a tool whose call has to become a task; the facts of the task.
pub(crate) async fn created(client: &Client, tool: &str, arguments: Value) -> Value {
    let reply = called(client, tool, arguments).await;
    task_in(client.lane(), &reply)
}

pub(crate) fn task_in(lane: Lane, reply: &Reply) -> Value {
    let result = reply.result();
    if lane.is_modern() {
        assert_eq!(result["resultType"], "task");
        for absent in ["task", "result", "error", "inputRequests", "requestState", "ttl", "pollInterval"] {
            assert!(result.get(absent).is_none(), "{absent} in {result}");
        }
        assert!(result["ttlMs"].is_u64() && result["pollIntervalMs"].is_u64(), "{result}");
        return result.clone();
    }
    let task = &result["task"];
    assert!(task["ttl"].is_u64() && task["pollInterval"].is_u64(), "{result}");
    assert!(task.get("ttlMs").is_none());
    task.clone()
}

pub(crate) fn id_of(task: &Value) -> &str {
    let id = task["taskId"].as_str().expect("a task has an id");
    assert!(id.starts_with("task_") && id.len() >= 5 + 24, "{id}");
    id
}

/// The state of a task as its owner reads it.
pub(crate) async fn state(client: &Client, id: &str) -> Value {
    client.request("tasks/get", json!({ "taskId": id })).await.result().clone()
}

/// What an ended task came to: its state where that says it all, else with what `tasks/result` says.
pub(crate) async fn outcome(client: &Client, id: &str) -> (String, Value) {
    let task = state(client, id).await;
    let status = task["status"].as_str().unwrap().to_owned();
    if client.lane().is_modern() {
        let outcome = task.get("result").or_else(|| task.get("error")).cloned().unwrap_or_default();
        return (status, outcome);
    }
    for absent in ["result", "error", "inputRequests"] {
        assert!(task.get(absent).is_none(), "{absent} in {task}");
    }
    let response = client.request("tasks/result", json!({ "taskId": id })).await.response;
    let outcome = response.get("result").or_else(|| response.get("error")).cloned().unwrap();
    (status, outcome)
}

async fn every_row_of_the_table_of_modes_is_as_decided(lane: Lane) {
    let tool = |name: &str| Tool::plain(name, |_: NoArguments| "in place");
    let build = |options: TaskOptions| {
        Server::builder("s", "1")
            .extension(Tasks::builder().options(options).build())
            .tool(tool("forbidden"))
            .tool(tool("optional").task(TaskOffer::optional().at_once()))
            .tool(tool("required").task(TaskOffer::required().at_once()))
            .build()
            .unwrap()
    };
    let server = build(TaskOptions::default());
    // Whether the client declares tasks, whether it sends `task`, and what comes of it for each tool.
    let modern = [
        (false, false, ["in place", "in place", "-32021"]),
        (false, true, ["in place", "in place", "-32021"]),
        (true, false, ["in place", "task", "task"]),
        (true, true, ["in place", "task", "task"]),
    ];
    let legacy = [
        (false, false, ["in place", "in place", "-32601"]),
        (false, true, ["-32601", "task", "task"]),
        (true, false, ["in place", "in place", "-32601"]),
        (true, true, ["-32601", "task", "task"]),
    ];
    for (declares, sends, rows) in lane.pick(legacy, modern) {
        let capabilities = match (declares, lane.is_modern()) {
            (false, _) => json!({}),
            (true, true) => json!({ "extensions": { ID: {} } }),
            (true, false) => json!({ "tasks": { "list": {} } }),
        };
        let client = lane.host(&server).connect_as(Profile::able(capabilities)).await;
        for (tool, expected) in ["forbidden", "optional", "required"].into_iter().zip(rows) {
            let mut params = json!({ "name": tool, "arguments": {} });
            if sends {
                params["task"] = json!({ "ttl": 1000 });
            }
            let reply = client.request("tools/call", params).await;
            let got = kind_of(&reply);
            assert_eq!(got, expected, "{tool}: declares {declares}, sends {sends}: {}", reply.text);
            if got == "-32021" {
                assert_eq!(reply.code_at(400), -32021);
                assert_eq!(reply.error()["data"]["requiredCapabilities"]["extensions"][ID], json!({}));
            }
        }
    }
    // Revisions that never had tasks run everything in place, whatever is sent; what cannot be, is refused.
    for older in lane.each_revision().filter(|older| !older.is_modern() && *older != lane) {
        let client = older.host(&server).connect().await;
        for (tool, expected) in [("forbidden", "in place"), ("optional", "in place"), ("required", "-32601")] {
            let params = json!({ "name": tool, "arguments": {}, "task": { "ttl": 1 } });
            assert_eq!(kind_of(&client.request("tools/call", params).await), expected, "{older:?} {tool}");
        }
    }
}

/// What a call came to: `task`, `in place`, or the code of an error.
fn kind_of(reply: &Reply) -> String {
    if reply.response.get("error").is_some() {
        return reply.code().to_string();
    }
    let is_task = reply.result()["resultType"] == "task" || reply.result().get("task").is_some();
    if is_task { "task".to_owned() } else { reply.tool_text().to_owned() }
}

async fn tasks_are_advertised_where_they_exist(lane: Lane) {
    let server = server(Tasks::new()).build().unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).connect_as(tasking(lane)).await;
        let listed = client.request("tools/list", json!({})).await;
        let execution = listed.result()["tools"][0].get("execution").cloned();
        let rules = lane.revision().rules();
        let support = rules.core_tasks.then(|| json!({ "taskSupport": "optional" }));
        assert_eq!(execution, support.clone().or_else(|| rules.result_type.then_some(execution.clone()).flatten()));
        assert_eq!(support.is_some(), rules.core_tasks);
        let get = client.request("tasks/get", json!({ "taskId": "task_x" })).await;
        let exists = rules.core_tasks || rules.extensions;
        assert_eq!(get.code(), if exists { -32602 } else { -32601 }, "{lane:?}");
    }
    if lane.is_modern() {
        let client = lane.host(&server).connect().await;
        let discovered = client.request("server/discover", json!({})).await;
        let capabilities = &discovered.result()["capabilities"];
        assert_eq!(capabilities["extensions"][ID], json!({}));
        assert!(capabilities.get("tasks").is_none());
    }
}

async fn a_task_is_found_at_once_and_its_result_when_it_ends(lane: Lane) {
    let client = connected(lane, server(Tasks::new())).await;
    let task = created(&client, "slow", json!({})).await;
    let id = id_of(&task);
    assert_eq!(task["status"], "working");
    let found = state(&client, id).await;
    assert_eq!((&found["taskId"], &found["status"]), (&task["taskId"], &json!("working")));
    assert_eq!(found["createdAt"], task["createdAt"]);
    tokio::time::sleep(Duration::from_secs(11)).await;
    let (status, result) = outcome(&client, id).await;
    assert_eq!((status.as_str(), &result["content"][0]["text"]), ("completed", &json!("done")));
    assert!(result.get("isError").is_none_or(|failed| failed == false));
    let related = result["_meta"].get("io.modelcontextprotocol/related-task").cloned();
    assert_eq!(related, lane.pick(Some(json!({ "taskId": id })), None));
    let ended = state(&client, id).await;
    assert_ne!(ended["lastUpdatedAt"], ended["createdAt"]);
}

async fn a_tool_that_fails_ends_its_task_in_the_words_of_the_revision(lane: Lane) {
    let client = connected(lane, server(Tasks::new())).await;
    let task = created(&client, "fails", json!({})).await;
    idle().await;
    let (status, result) = outcome(&client, id_of(&task)).await;
    assert_eq!(status, lane.pick("failed", "completed"));
    assert_eq!((&result["isError"], &result["content"][0]["text"]), (&json!(true), &json!("no such luck")));
}

async fn a_panic_and_a_protocol_error_are_failed_tasks(lane: Lane) {
    let client = connected(lane, server(Tasks::new())).await;
    for (tool, code) in [("panics", -32603), ("refuses", -32099)] {
        let task = created(&client, tool, json!({})).await;
        idle().await;
        let (status, error) = outcome(&client, id_of(&task)).await;
        assert_eq!((status.as_str(), &error["code"]), ("failed", &json!(code)), "{tool}");
        assert!(error["message"].is_string());
        assert_eq!(state(&client, id_of(&task)).await["statusMessage"], error["message"]);
    }
}

async fn a_task_that_is_cancelled_stays_so_and_its_handler_hears_of_it(lane: Lane) {
    let heard = Arc::new(AtomicUsize::new(0));
    let record = Arc::clone(&heard);
    let tool = Tool::typed("waits", move |_: NoArguments, context: RequestContext| {
        let heard = Arc::clone(&record);
        async move {
            context.cancelled().await;
            heard.fetch_add(1, Ordering::SeqCst);
            Ok::<_, HandlerError>("too late")
        }
    });
    let tasks = Tasks::new();
    let builder = Server::builder("s", "1").extension(tasks.clone()).tool(tool.task(TaskOffer::optional().at_once()));
    let client = connected(lane, builder).await;
    let task = created(&client, "waits", json!({})).await;
    let id = id_of(&task);
    let reply = client.request("tasks/cancel", json!({ "taskId": id })).await;
    if lane.is_modern() {
        let mut members: Vec<_> = reply.result().as_object().unwrap().keys().collect();
        members.retain(|member| *member != "_meta");
        assert_eq!(members, ["resultType"], "an acknowledgement and nothing else");
    } else {
        assert_eq!((&reply.result()["taskId"], &reply.result()["status"]), (&json!(id), &json!("cancelled")));
    }
    idle().await;
    assert_eq!(heard.load(Ordering::SeqCst), 1, "the handler had its grace");
    assert_eq!(state(&client, id).await["status"], "cancelled", "what it said after is not heard");
    if !lane.is_modern() {
        assert_eq!(client.request("tasks/result", json!({ "taskId": id })).await.code(), -32602);
    }
    assert_eq!(tasks.live(), 0);
}

async fn a_task_that_ended_is_not_cancelled(lane: Lane) {
    let client = connected(lane, server(Tasks::new())).await;
    let task = created(&client, "fails", json!({})).await;
    idle().await;
    let before = state(&client, id_of(&task)).await;
    for _ in 0..2 {
        let reply = client.request("tasks/cancel", json!({ "taskId": id_of(&task) })).await;
        if lane.is_modern() {
            assert_eq!(reply.result()["resultType"], "complete");
        } else {
            assert_eq!(reply.code(), -32602);
            assert!(reply.message().contains("failed"), "{}", reply.message());
        }
    }
    assert_eq!(state(&client, id_of(&task)).await["status"], before["status"]);
}

async fn a_task_outlives_the_default_timeout_and_ends_with_its_lifetime(lane: Lane) {
    let hangs = |name: &str| {
        Tool::typed(name, async |_: NoArguments, context: RequestContext| {
            context.cancelled().await;
            Ok::<_, HandlerError>("")
        })
    };
    let builder = Server::builder("s", "1")
        .extension(Tasks::new())
        .tool(hangs("long").task(TaskOffer::optional().at_once().ttl(Duration::from_secs(300))))
        .tool(hangs("bounded").timeout(Duration::from_secs(30)).task(TaskOffer::optional().at_once()));
    let client = connected(lane, builder).await;
    let (long, bounded) =
        (created(&client, "long", json!({})).await, created(&client, "bounded", json!({})).await);
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(state(&client, id_of(&long)).await["status"], "working", "60 seconds bound calls in place alone");
    let (status, error) = outcome(&client, id_of(&bounded)).await;
    assert_eq!((status.as_str(), &error["code"]), ("failed", &json!(-32603)), "a tool's own bound counts");
    tokio::time::sleep(Duration::from_secs(101)).await;
    let (status, error) = outcome(&client, id_of(&long)).await;
    assert_eq!((status.as_str(), &error["code"]), ("failed", &json!(-32603)));
    assert!(error["message"].as_str().unwrap().contains("lifetime"), "{error}");
}

async fn a_task_is_forgotten_a_minute_after_its_lifetime(lane: Lane) {
    let tasks = Tasks::new();
    let tool = Tool::plain("quick", |_: NoArguments| "quick")
        .task(TaskOffer::optional().at_once().ttl(Duration::from_secs(100)));
    let client = connected(lane, Server::builder("s", "1").extension(tasks).tool(tool)).await;
    let task = created(&client, "quick", json!({})).await;
    tokio::time::sleep(Duration::from_secs(155)).await;
    assert_eq!(state(&client, id_of(&task)).await["status"], "completed");
    tokio::time::sleep(Duration::from_secs(6)).await;
    let reply = client.request("tasks/get", json!({ "taskId": id_of(&task) })).await;
    let unknown = client.request("tasks/get", json!({ "taskId": "task_unknown" })).await;
    assert_eq!((reply.code(), reply.message()), (unknown.code(), unknown.message()));
}

async fn there_is_an_answer_for_one_task_too_many(lane: Lane) {
    let mut options = TaskOptions::default();
    options.per_owner = 2;
    let must = Tool::plain("must", |_: NoArguments| "ran").task(TaskOffer::required().at_once());
    let tasks = Tasks::builder().options(options).build();
    let server = server(tasks).tool(must).build().unwrap();
    let host = lane.host(&server);
    let client = host.connect_as(tasking(lane)).await;
    for _ in 0..2 {
        created(&client, "fails", json!({})).await;
    }
    // Where a client asked for a task, or the tool needs one, nothing runs without.
    let reply = called(&client, "must", json!({})).await;
    assert_eq!(reply.code_at(200), -32603);
    assert!(reply.message().contains("too many") || reply.message().contains("as many"), "{}", reply.message());
    let reply = called(&client, "fails", json!({})).await;
    if lane.is_modern() {
        assert!(reply.is_tool_error(), "a tool that can do without runs in place");
    } else {
        assert_eq!(reply.code(), -32603);
    }
    // What is over makes room.
    tokio::time::sleep(Duration::from_secs(3600 + 61)).await;
    let client = host.connect_as(tasking(lane)).await;
    created(&client, "fails", json!({})).await;
}

async fn parameters_that_do_not_fit_are_refused(lane: Lane) {
    let client = connected(lane, server(Tasks::new())).await;
    for params in [json!({}), json!({ "taskId": 7 }), json!({ "taskId": null })] {
        for method in ["tasks/get", "tasks/cancel"] {
            let reply = client.request(method, params.clone()).await;
            assert_eq!(reply.code(), -32602, "{method} {params}");
        }
    }
    if lane.is_modern() {
        for params in [json!({ "taskId": "task_x" }), json!({ "taskId": "task_x", "inputResponses": [] })] {
            assert_eq!(client.request("tasks/update", params.clone()).await.code(), -32602, "{params}");
        }
        return;
    }
    for task in [json!([]), json!("now"), json!(true), json!({ "ttl": "1" }), json!({ "ttl": -1 })] {
        let params = json!({ "name": "slow", "arguments": {}, "task": task });
        let reply = client.request("tools/call", params).await;
        assert_eq!(reply.code(), -32602, "{task}");
        assert!(reply.message().contains("params.task"), "{}", reply.message());
    }
    for cursor in ["", "x", "MTI", "//"] {
        assert_eq!(client.request("tasks/list", json!({ "cursor": cursor })).await.code(), -32602, "{cursor}");
    }
}

/// Cancels a task that can be.
pub(crate) async fn cancelled(client: &Client, id: &str) {
    let reply = client.request("tasks/cancel", json!({ "taskId": id })).await;
    assert!(reply.result().is_object());
}

async fn the_end_of_the_server_fails_what_runs(lane: Lane) {
    let tasks = Tasks::new();
    let server = server(tasks.clone()).build().unwrap();
    let client = lane.host(&server).connect_as(tasking(lane)).await;
    created(&client, "slow", json!({})).await;
    idle().await;
    assert_eq!(tasks.live(), 1);
    server.shutdown(Duration::from_secs(1)).await;
    idle().await;
    assert_eq!(tasks.live(), 0, "nobody looks after a task any more");
}

async fn what_older_clients_have_is_not_there(lane: Lane) {
    let client = connected(lane, server(Tasks::new())).await;
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(client.request(method, json!({ "taskId": "task_x" })).await.code_at(404), -32601, "{method}");
    }
}

async fn whoever_does_not_declare_tasks_has_none(lane: Lane) {
    let server = server(Tasks::new()).build().unwrap();
    let host = lane.host(&server);
    let knows = host.connect_as(tasking(lane)).await;
    let task = created(&knows, "slow", json!({})).await;
    let client = host.connect().await;
    for id in [id_of(&task), "task_unknown"] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            let reply = client.request(method, params).await;
            assert_eq!(reply.code_at(400), -32021, "{method}");
            assert_eq!(reply.error()["data"]["requiredCapabilities"]["extensions"][ID], json!({}));
        }
    }
    assert_eq!(state(&knows, id_of(&task)).await["status"], "working");
}

async fn a_list_has_pages_that_neither_skip_nor_repeat(lane: Lane) {
    let mut options = TaskOptions::default();
    options.page = 2;
    let client = connected(lane, server(Tasks::builder().options(options).build())).await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(id_of(&created(&client, "fails", json!({})).await).to_owned());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let params = cursor.map_or_else(|| json!({}), |cursor: Value| json!({ "cursor": cursor }));
        let page = client.request("tasks/list", params).await.result().clone();
        let tasks = page["tasks"].as_array().unwrap();
        assert!(tasks.len() <= 2);
        seen.extend(tasks.iter().map(|task| id_of(task).to_owned()));
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
        // What comes in between goes to the end.
        if seen.len() == 2 {
            made.push(id_of(&created(&client, "fails", json!({})).await).to_owned());
        }
    }
    assert_eq!(seen, made);
}

async fn a_result_is_waited_for_and_tied_to_its_task(lane: Lane) {
    let client = connected(lane, server(Tasks::new())).await;
    let task = created(&client, "slow", json!({})).await;
    let mut waiting = client.start("tasks/result", json!({ "taskId": id_of(&task) }));
    let also = client.start("tasks/result", json!({ "taskId": id_of(&task) }));
    waiting.is_quiet().await;
    for call in [waiting, also] {
        let reply = call.reply().await;
        assert_eq!(reply.tool_text(), "done");
        let related = &reply.result()["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(*related, json!({ "taskId": id_of(&task) }));
    }
    let task = created(&client, "slow", json!({})).await;
    let given_up = client.start("tasks/result", json!({ "taskId": id_of(&task) }));
    idle().await;
    client.cancel(given_up).await;
    assert_eq!(state(&client, id_of(&task)).await["status"], "working", "waiting no more is not cancelling");
}

async fn progress_goes_on_where_the_result_is_waited_for(lane: Lane) {
    let go = Arc::new(Notify::new());
    let gate = Arc::clone(&go);
    let tool = Tool::typed("tells", move |_: NoArguments, context: RequestContext| {
        let gate = Arc::clone(&gate);
        async move {
            gate.notified().await;
            context.progress(1.0, None, None);
            gate.notified().await;
            Ok::<_, HandlerError>("done")
        }
    });
    let builder = Server::builder("s", "1").extension(Tasks::new()).tool(tool.task(TaskOffer::optional()));
    let client = connected(lane, builder).await;
    let params =
        json!({ "name": "tells", "arguments": {}, "task": {}, "_meta": { "progressToken": "p" } });
    let task = task_in(lane, &client.request("tools/call", params).await);
    // Over a pipe the test finds by the token what belongs together, as clients do.
    let params = json!({ "taskId": id_of(&task), "_meta": { "progressToken": "p" } });
    let mut waiting = client.start("tasks/result", params);
    waiting.is_quiet().await;
    go.notify_one();
    let progress = waiting.notification().await;
    assert_eq!((&progress["method"], &progress["params"]["progressToken"]), (&json!("notifications/progress"), &json!("p")));
    let related = &progress["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(*related, json!({ "taskId": id_of(&task) }));
    go.notify_one();
    assert_eq!(waiting.reply().await.tool_text(), "done");
}

async fn a_lifetime_can_be_asked_for_within_bounds(lane: Lane) {
    let client = connected(lane, server(Tasks::new())).await;
    for (asked, given) in [(json!(5000), 5000), (json!(1.5), 1), (json!(1e300), 3_600_000), (json!(null), 3_600_000)] {
        let params = json!({ "name": "slow", "arguments": {}, "task": { "ttl": asked } });
        let task = task_in(lane, &client.request("tools/call", params).await);
        assert_eq!(task["ttl"], given, "{asked}");
    }
}

async fn negotiation_can_be_enough_for_a_task(lane: Lane) {
    let mut options = TaskOptions::default();
    options.legacy = LegacyTasks::OnNegotiation;
    let server = server(Tasks::builder().options(options).build()).build().unwrap();
    let host: Host = lane.host(&server);
    let negotiated = host.connect_as(Profile::able(json!({ "tasks": {} }))).await;
    let task = task_in(lane, &negotiated.call("slow", json!({})).await);
    assert_eq!(task["status"], "working");
    assert_eq!(negotiated.call("quick", json!({})).await.tool_text(), "quick", "a tool without tasks stays one");
    let other = host.connect().await;
    assert!(other.call("fails", json!({})).await.is_tool_error(), "who did not negotiate waits");
}

async fn who_waits_too_long_may_ask_again(lane: Lane) {
    let mut options = TaskOptions::default();
    options.result_wait = Duration::from_secs(3);
    let client = connected(lane, server(Tasks::builder().options(options).build())).await;
    let task = created(&client, "slow", json!({})).await;
    let mut refused = 0;
    loop {
        let reply = client.request("tasks/result", json!({ "taskId": id_of(&task) })).await;
        if reply.response.get("error").is_none() {
            assert_eq!(reply.tool_text(), "done");
            break;
        }
        assert_eq!(reply.code(), -32603);
        refused += 1;
    }
    assert_eq!(refused, 3);
}
