//! The hand-off of a call to its task: when it happens, and what its client may do before and after.
//!
//! Spec: tasks extension draft, "Task Creation"

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_core::{HandlerError, NoArguments, RequestContext, Server, TaskOffer, Tool};
use mcp_tasks::Tasks;
use mcp_tests::{Lane, lanes};
use serde_json::json;

use crate::tasks::{connected, created, id_of, outcome, task_in, tasking};

lanes! {
    everywhere {}
    modern "core tasks begin at once and belong to a client that comes back" {
        a_call_within_its_window_is_answered_in_place,
        a_handler_may_say_when_it_becomes_a_task,
        a_client_that_leaves_before_its_task_cancels_the_call,
        a_client_that_leaves_after_its_task_does_not,
        nothing_more_is_said_on_the_stream_of_a_call_that_became_a_task,
    }
}

async fn a_call_within_its_window_is_answered_in_place(lane: Lane) {
    let tool = |name: &str, time: u64| {
        Tool::typed(name, move |_: NoArguments, _: RequestContext| async move {
            tokio::time::sleep(Duration::from_millis(time)).await;
            Ok::<_, HandlerError>("done")
        })
        .task(TaskOffer::optional())
    };
    let builder = Server::builder("s", "1").extension(Tasks::new());
    let client = connected(lane, builder.tool(tool("within", 99)).tool(tool("beyond", 102))).await;
    let reply = client.call("within", json!({})).await;
    assert_eq!((reply.tool_text(), &reply.result()["resultType"]), ("done", &json!("complete")));
    let task = created(&client, "beyond", json!({})).await;
    assert_eq!(task["status"], "working");
    tokio::time::sleep(Duration::from_millis(10)).await;
    let (status, result) = outcome(&client, id_of(&task)).await;
    assert_eq!((status.as_str(), &result["content"][0]["text"]), ("completed", &json!("done")));
}

async fn a_handler_may_say_when_it_becomes_a_task(lane: Lane) {
    let tool = Tool::typed("decides", async |_: NoArguments, context: RequestContext| {
        tokio::time::sleep(Duration::from_secs(5)).await;
        context.become_task().await?;
        context.become_task().await?;
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok::<_, HandlerError>("done")
    });
    let plain = Tool::typed("plain", async |_: NoArguments, context: RequestContext| {
        context.become_task().await?;
        Ok::<_, HandlerError>("in place")
    });
    let builder = Server::builder("s", "1").extension(Tasks::new());
    let client = connected(lane, builder.tool(tool.task(TaskOffer::optional().when_asked())).tool(plain)).await;
    let began = tokio::time::Instant::now();
    let task = created(&client, "decides", json!({})).await;
    assert_eq!(began.elapsed().as_secs(), 5);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(outcome(&client, id_of(&task)).await.0, "completed");
    assert_eq!(client.call("plain", json!({})).await.tool_text(), "in place", "it changes nothing where it cannot");
}

/// A tool that counts its ends, and how it was cancelled.
fn counted(ends: &Arc<AtomicUsize>, cancelled: &Arc<AtomicUsize>) -> Tool {
    let (ends, cancelled) = (Arc::clone(ends), Arc::clone(cancelled));
    Tool::typed("counted", move |_: NoArguments, context: RequestContext| {
        let (ends, cancelled) = (Arc::clone(&ends), Arc::clone(&cancelled));
        async move {
            tokio::select! {
                () = context.cancelled() => cancelled.fetch_add(1, Ordering::SeqCst),
                () = tokio::time::sleep(Duration::from_secs(10)) => ends.fetch_add(1, Ordering::SeqCst),
            };
            Ok::<_, HandlerError>("done")
        }
    })
}

async fn a_client_that_leaves_before_its_task_cancels_the_call(lane: Lane) {
    let (ends, cancelled) = (Arc::default(), Arc::default());
    let tasks = Tasks::new();
    let tool = counted(&ends, &cancelled).task(TaskOffer::optional().after(Duration::from_secs(1)));
    let client = connected(lane, Server::builder("s", "1").extension(tasks.clone()).tool(tool)).await;
    let call = client.start_tool("counted", json!({}));
    tokio::time::sleep(Duration::from_millis(500)).await;
    client.cancel(call).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((ends.load(Ordering::SeqCst), cancelled.load(Ordering::SeqCst)), (0, 1));
    assert_eq!(tasks.live(), 0);
}

async fn a_client_that_leaves_after_its_task_does_not(lane: Lane) {
    let (ends, cancelled) = (Arc::default(), Arc::default());
    let tool = counted(&ends, &cancelled).task(TaskOffer::optional().after(Duration::from_secs(1)));
    let server = Server::builder("s", "1").extension(Tasks::new()).tool(tool).build().unwrap();
    let host = lane.host(&server);
    let client = host.connect_as(tasking(lane)).await;
    let task = created(&client, "counted", json!({})).await;
    // Taking back a request that has been answered, or going away, is nothing to the task.
    client.withdraw(&json!(1)).await;
    drop(client);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((ends.load(Ordering::SeqCst), cancelled.load(Ordering::SeqCst)), (1, 0));
    let back = host.connect_as(tasking(lane)).await;
    assert_eq!(outcome(&back, id_of(&task)).await.0, "completed");
}

async fn nothing_more_is_said_on_the_stream_of_a_call_that_became_a_task(lane: Lane) {
    let tool = Tool::typed("tells", async |_: NoArguments, context: RequestContext| {
        context.progress(1.0, None, None);
        tokio::time::sleep(Duration::from_secs(1)).await;
        context.progress(2.0, None, None);
        Ok::<_, HandlerError>("done")
    });
    let builder = Server::builder("s", "1").extension(Tasks::new()).tool(tool.task(TaskOffer::optional()));
    let client = connected(lane, builder).await;
    let params = json!({ "name": "tells", "arguments": {}, "_meta": { "progressToken": "p" } });
    let reply = client.request("tools/call", params).await;
    assert_eq!(reply.methods_before(), ["notifications/progress"], "what was said before stays");
    let task = task_in(lane, &reply);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(outcome(&client, id_of(&task)).await.0, "completed");
}
