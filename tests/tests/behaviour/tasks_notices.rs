//! Clients are told what becomes of their tasks: on a stream that names them, or in their session.
//!
//! Spec: tasks extension draft, "Task Status Notifications"; 2025-11-25 basic/utilities/tasks, "Task Status Notification"

use std::time::Duration;

use mcp_core::{Elicited, Form, HandlerError, NoArguments, RequestContext, Server, TaskOffer, Tool};
use mcp_tasks::{ID, Tasks};
use mcp_tests::{Item, Lane, Profile, idle, lanes};
use serde_json::{Value, json};

use crate::ask::Name;
use crate::tasks::{created, id_of, state, tasking};

lanes! {
    everywhere {
        a_client_is_told_what_becomes_of_its_task,
    }
    modern "older clients are told in their session and have no stream to ask for" {
        only_what_the_caller_owns_is_acknowledged,
        whoever_did_not_declare_tasks_cannot_listen_for_them,
        a_list_of_ids_that_is_none_is_refused,
        a_slow_reader_is_told_of_the_newest_state_alone,
        a_server_without_tasks_says_what_is_missing,
    }
}

/// A tool that asks, then sleeps for a second.
fn server() -> Server {
    let tool = Tool::typed("asks", async |_: NoArguments, context: RequestContext| {
        let name = match context.ask("who", Form::<Name>::new("Who are you?"))? {
            Elicited::Accepted(name) => name.name,
            Elicited::Declined | Elicited::Cancelled => String::new(),
        };
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok::<_, HandlerError>(name)
    });
    let slow = Tool::typed("slow", async |_: NoArguments, _: RequestContext| {
        tokio::time::sleep(Duration::from_secs(10)).await;
        Ok::<_, HandlerError>("done")
    });
    Server::builder("s", "1")
        .extension(Tasks::new())
        .tool(tool.task(TaskOffer::optional().at_once()))
        .tool(slow.task(TaskOffer::optional().at_once()))
        .build()
        .unwrap()
}

async fn a_client_is_told_what_becomes_of_its_task(lane: Lane) {
    let client = lane.host(&server()).connect_as(tasking(lane)).await;
    let answer = json!({ "action": "accept", "content": { "name": "Ann" } });
    if !lane.is_modern() {
        let task = created(&client, "asks", json!({})).await;
        let told = client.unsolicited().await;
        assert_eq!((&told["method"], &told["params"]["taskId"]), (&json!("notifications/tasks/status"), &task["taskId"]));
        assert_eq!(told["params"]["status"], "input_required");
        assert!(told["params"]["ttl"].is_u64() && told["params"].get("_meta").is_none(), "{told}");
        let mut waiting = client.start("tasks/result", json!({ "taskId": id_of(&task) }));
        let question = waiting.server_request().await;
        client.answer(&question, answer).await;
        assert_eq!(waiting.reply().await.tool_text(), "Ann");
        // It is the newest state that is told of.
        let mut told = client.unsolicited().await;
        if told["params"]["status"] == "working" {
            told = client.unsolicited().await;
        }
        assert_eq!(told["params"]["status"], "completed");
        return;
    }
    let slow = created(&client, "slow", json!({})).await;
    let task = created(&client, "asks", json!({})).await;
    idle().await;
    let filter = json!({ "taskIds": [id_of(&slow), id_of(&task)] });
    let mut listening = client.start("subscriptions/listen", json!({ "notifications": filter }));
    let acknowledged = listening.notification().await;
    assert_eq!(acknowledged["params"]["notifications"], filter);
    let update = json!({ "taskId": id_of(&task), "inputResponses": { "who": answer } });
    assert_eq!(client.request("tasks/update", update).await.result()["resultType"], "complete");
    let mut statuses = Vec::new();
    while statuses.last() != Some(&json!("completed")) {
        let told = listening.notification().await;
        assert_eq!((&told["method"], &told["params"]["taskId"]), (&json!("notifications/tasks"), &task["taskId"]));
        assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], *listening.id());
        let mut params = told["params"].clone();
        params.as_object_mut().unwrap().remove("_meta");
        if params["status"] == "completed" {
            // Just what `tasks/get` says.
            let mut read = state(&client, id_of(&task)).await;
            for member in ["_meta", "resultType"] {
                read.as_object_mut().unwrap().remove(member);
            }
            assert_eq!(params, read);
            assert_eq!(params["result"]["content"][0]["text"], "Ann");
        }
        statuses.push(params["status"].clone());
    }
    assert_eq!(statuses, ["working", "completed"]);
    listening.is_quiet().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let told = listening.notification().await;
    assert_eq!((&told["params"]["taskId"], &told["params"]["status"]), (&slow["taskId"], &json!("completed")));
}

async fn only_what_the_caller_owns_is_acknowledged(lane: Lane) {
    let host = lane.host(&server());
    let owner = host.connect_as(tasking(lane)).await;
    let stranger = host.connect_as(Profile { name: "bob", ..tasking(lane) }).await;
    let task = created(&owner, "slow", json!({})).await;
    let filter = json!({ "taskIds": [id_of(&task), "task_unknown"], "toolsListChanged": true });
    let mut listening = stranger.start("subscriptions/listen", json!({ "notifications": filter }));
    let granted = listening.notification().await["params"]["notifications"].clone();
    assert_eq!(granted, json!({ "taskIds": [], "toolsListChanged": true }), "foreign and unknown are the same");
    tokio::time::sleep(Duration::from_secs(11)).await;
    listening.is_quiet().await;
    let mut listening = owner.start("subscriptions/listen", json!({ "notifications": filter }));
    let granted = listening.notification().await["params"]["notifications"].clone();
    assert_eq!(granted, json!({ "taskIds": [id_of(&task)], "toolsListChanged": true }));
}

async fn whoever_did_not_declare_tasks_cannot_listen_for_them(lane: Lane) {
    let client = lane.host(&server()).connect().await;
    let params = json!({ "notifications": { "taskIds": ["task_unknown"] } });
    let reply = client.request("subscriptions/listen", params).await;
    assert_eq!(reply.code_at(400), -32021);
    assert_eq!(reply.error()["data"]["requiredCapabilities"]["extensions"][ID], json!({}));
}

async fn a_list_of_ids_that_is_none_is_refused(lane: Lane) {
    let client = lane.host(&server()).connect_as(tasking(lane)).await;
    let many: Vec<Value> = (0..1001).map(|number| json!(format!("task_{number}"))).collect();
    for wrong in [json!("task_x"), json!([7]), json!({}), json!(many), json!(["x".repeat(9000)])] {
        let params = json!({ "notifications": { "taskIds": wrong } });
        assert_eq!(client.request("subscriptions/listen", params).await.code(), -32602);
    }
}

async fn a_slow_reader_is_told_of_the_newest_state_alone(lane: Lane) {
    let server = server();
    let client = lane.host(&server).connect_as(tasking(lane)).await;
    let task = created(&client, "slow", json!({})).await;
    let params = json!({ "notifications": { "taskIds": [id_of(&task)] } });
    let mut listening = client.start("subscriptions/listen", params);
    listening.notification().await;
    // All within one turn of whoever reads.
    for number in 0..100 {
        let params = mcp_wire::RawJson::from(json!({ "taskId": id_of(&task), "status": "working", "number": number }));
        server.named_changed("notifications/tasks", id_of(&task), &params);
    }
    let mut numbers = Vec::new();
    idle().await;
    while numbers.last() != Some(&json!(99)) {
        match listening.next().await {
            Some(Item::Notification(told)) => numbers.push(told["params"]["number"].clone()),
            other => panic!("{other:?}"),
        }
    }
    assert!(numbers.len() <= 2, "{numbers:?}");
}

async fn a_server_without_tasks_says_what_is_missing(lane: Lane) {
    let client = lane.connect(Server::builder("s", "1")).await;
    let params = json!({ "notifications": { "taskIds": ["task_x"] } });
    assert_eq!(client.request("subscriptions/listen", params).await.code_at(400), -32021);
}
