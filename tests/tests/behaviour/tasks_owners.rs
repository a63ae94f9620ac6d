//! Whose a task is: nobody else finds it, by any method, in any era.
//!
//! Spec: 2025-11-25 basic/utilities/tasks, "Task Isolation and Access Control"; tasks extension draft, "Security"

use std::time::Duration;

use mcp_core::{HandlerError, NoArguments, RequestContext, Server, TaskOffer, Tool};
use mcp_tasks::Tasks;
use mcp_tests::{Lane, Profile, idle, lanes};
use serde_json::json;

use crate::tasks::{connected, created, id_of, state, tasking};

lanes! {
    everywhere {
        a_foreign_task_and_an_unknown_one_have_the_same_answer,
        a_caller_finds_its_tasks_from_wherever_it_comes,
        ids_are_not_to_be_guessed,
    }
    http_legacy "only there a session ends while its clients stay" {
        the_tasks_of_an_anonymous_session_end_with_it,
    }
}

fn server() -> Server {
    let tool = Tool::typed("slow", async |_: NoArguments, _: RequestContext| {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok::<_, HandlerError>("done")
    });
    Server::builder("s", "1").extension(Tasks::new()).tool(tool.task(TaskOffer::optional().at_once())).build().unwrap()
}

async fn a_foreign_task_and_an_unknown_one_have_the_same_answer(lane: Lane) {
    let server = server();
    let host = lane.host(&server);
    let owner = host.connect_as(tasking(lane)).await;
    let stranger = host.connect_as(Profile { name: "bob", ..tasking(lane) }).await;
    let task = created(&owner, "slow", json!({})).await;
    let unknown = "task_".to_owned() + &"A".repeat(id_of(&task).len() - 5);
    for method in ["tasks/get", "tasks/cancel", "tasks/update", "tasks/result"] {
        let mut answers = Vec::new();
        for id in [id_of(&task), &unknown] {
            let call = stranger.start_as(json!("same"), method, json!({ "taskId": id, "inputResponses": {} }));
            let mut reply = call.reply().await;
            // The second may have changed between the two.
            reply.headers.retain(|(name, _)| name != "date");
            answers.push((reply.text, reply.status, reply.headers));
        }
        assert_eq!(answers[0], answers[1], "{method}");
    }
    if !lane.is_modern() {
        assert_eq!(stranger.request("tasks/list", json!({})).await.result()["tasks"], json!([]));
        assert_eq!(owner.request("tasks/list", json!({})).await.result()["tasks"].as_array().unwrap().len(), 1);
    }
    assert_eq!(state(&owner, id_of(&task)).await["status"], "working");
}

async fn a_caller_finds_its_tasks_from_wherever_it_comes(lane: Lane) {
    let server = server();
    let host = lane.host(&server);
    let first = host.connect_as(tasking(lane)).await;
    let task = created(&first, "slow", json!({})).await;
    drop(first);
    idle().await;
    let second = host.connect_as(tasking(lane)).await;
    assert_eq!(state(&second, id_of(&task)).await["status"], "working", "whoever authenticates is not its session");
}

async fn ids_are_not_to_be_guessed(lane: Lane) {
    let client = connected(lane, Server::builder("s", "1").extension(Tasks::new()).tool(
        Tool::plain("quick", |_: NoArguments| "").task(TaskOffer::optional().at_once()),
    )).await;
    let (first, second) = (created(&client, "quick", json!({})).await, created(&client, "quick", json!({})).await);
    let random = |task: &serde_json::Value| id_of(task)["task_".len()..].to_owned();
    // 24 letters of 6 bits each.
    assert_eq!((random(&first).len(), random(&second).len()), (24, 24));
    let same = random(&first).bytes().zip(random(&second).bytes()).filter(|(one, two)| one == two).count();
    assert!(same < 12, "{first} {second}");
}

async fn the_tasks_of_an_anonymous_session_end_with_it(lane: Lane) {
    let tasks = Tasks::new();
    let tool = Tool::typed("slow", async |_: NoArguments, context: RequestContext| {
        context.cancelled().await;
        Ok::<_, HandlerError>("")
    });
    let server = Server::builder("s", "1").extension(tasks.clone()).tool(tool.task(TaskOffer::optional())).build();
    let host = lane.host(&server.unwrap());
    let (one, two) = (host.connect_as(Profile::anonymous()).await, host.connect_as(Profile::anonymous()).await);
    let task = created(&one, "slow", json!({})).await;
    let foreign = two.request("tasks/get", json!({ "taskId": id_of(&task) })).await;
    assert_eq!(foreign.code(), -32602, "another session of nobody in particular is another owner");
    assert_eq!(two.request("tasks/list", json!({})).await.result()["tasks"], json!([]));
    assert_eq!(tasks.live(), 1);
    one.http(http::Method::DELETE, "", |_| ()).await;
    idle().await;
    assert_eq!(tasks.live(), 0, "the call is cancelled");
}
