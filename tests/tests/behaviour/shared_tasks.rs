//! Tasks in a store that several instances share: what one has acknowledged, every other one finds.
//!
//! Spec: tasks extension draft, "Task Creation" and "Getting Tasks"; 2025-11-25 basic/utilities/tasks

use std::sync::Arc;
use std::time::Duration;

use mcp_core::{HandlerError, NoArguments, RequestContext, Server, TaskOffer, Tool};
use mcp_tasks::{MemoryTaskStore, TaskStore, Tasks};
use mcp_tests::{Lane, lanes};
use serde_json::{Value, json};

use crate::tasks::{created, id_of, outcome, state, tasking};

lanes! {
    everywhere {
        a_task_is_found_at_once_by_every_instance,
    }
}

fn instance(store: &Arc<MemoryTaskStore>) -> Server {
    let slow = Tool::typed("slow", async |_: NoArguments, _: RequestContext| {
        tokio::time::sleep(Duration::from_secs(10)).await;
        Ok::<_, HandlerError>("done")
    });
    let tasks = Tasks::builder().store(Arc::clone(store) as Arc<dyn TaskStore>).build();
    Server::builder("s", "1").extension(tasks).tool(slow.task(TaskOffer::optional().at_once())).build().unwrap()
}

/// Checklist 25: `tasks/get` straight after `CreateTaskResult` succeeds on another instance sharing the store. Checklist
/// 26: `tasks/get` says `resultType: "complete"`, whatever the state of the task.
async fn a_task_is_found_at_once_by_every_instance(lane: Lane) {
    let store = Arc::new(MemoryTaskStore::new());
    let (one, other) = (lane.host(&instance(&store)), lane.host(&instance(&store)));
    let (here, there) = (one.connect_as(tasking(lane)).await, other.connect_as(tasking(lane)).await);
    let kind = lane.pick(Value::Null, json!("complete"));
    for _ in 0..20 {
        let task = created(&here, "slow", json!({})).await;
        for client in [&there, &here] {
            let found = state(client, id_of(&task)).await;
            assert_eq!((&found["taskId"], &found["status"]), (&task["taskId"], &json!("working")));
            assert_eq!(found["resultType"], kind);
        }
        tokio::time::sleep(Duration::from_secs(11)).await;
        for client in [&there, &here] {
            let (status, result) = outcome(client, id_of(&task)).await;
            assert_eq!((status.as_str(), &result["content"][0]["text"]), ("completed", &json!("done")));
            assert_eq!(state(client, id_of(&task)).await["resultType"], kind);
        }
        let cancelled = there.request("tasks/cancel", json!({ "taskId": id_of(&task) })).await;
        assert_eq!(cancelled.response.get("error").is_some(), !lane.is_modern(), "it has ended");
        let stranger = other.connect_as(mcp_tests::Profile { name: "bob", ..tasking(lane) }).await;
        let refused = stranger.request("tasks/get", json!({ "taskId": id_of(&task) })).await;
        assert_eq!(refused.code(), -32602, "sharing a store is not sharing its tasks");
    }
}
