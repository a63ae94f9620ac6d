//! What tasks may take in all, and the answer beyond it. The bound of one owner is in `tasks.rs`.
//!
//! Spec: 2025-11-25 basic/utilities/tasks; tasks extension draft

use mcp_core::{Server, TaskOffer, Tool};
use mcp_tasks::{TaskOptions, Tasks};
use mcp_tests::{Lane, idle, lanes};
use serde_json::json;

use crate::tasks::{called, connected, created};

lanes! {
    everywhere {
        there_are_so_many_tasks_in_all,
        tasks_hold_so_many_bytes_in_all,
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

fn server(options: TaskOptions) -> mcp_core::ServerBuilder {
    let tool = |name: &str| Tool::plain(name, |arguments: Text| arguments.text);
    Server::builder("s", "1")
        .extension(Tasks::builder().options(options).build())
        .tool(tool("may").task(TaskOffer::optional().at_once()))
        .tool(tool("must").task(TaskOffer::required().at_once()))
}

/// Makes as many tasks of `bytes` each as fit, and asks for one more.
async fn filled(lane: Lane, options: TaskOptions, bytes: usize, fitting: usize) {
    let client = connected(lane, server(options)).await;
    let arguments = json!({ "text": "x".repeat(bytes) });
    for _ in 0..fitting {
        created(&client, "may", arguments.clone()).await;
        // It ends, and has its result.
        idle().await;
    }
    let refused = called(&client, "must", arguments.clone()).await;
    assert_eq!(refused.code_at(200), -32603);
    let other = called(&client, "may", arguments.clone()).await;
    if lane.is_modern() {
        assert_eq!(other.tool_text(), "x".repeat(bytes), "a tool that can do without runs in place");
    } else {
        assert_eq!(other.code(), -32603, "who asked for a task gets one or none");
    }
}

async fn there_are_so_many_tasks_in_all(lane: Lane) {
    let mut options = TaskOptions::default();
    options.total = 3;
    filled(lane, options, 1, 3).await;
}

async fn tasks_hold_so_many_bytes_in_all(lane: Lane) {
    let mut options = TaskOptions::default();
    // A task that runs keeps its arguments, and one that has ended its result.
    options.bytes = 70_000;
    filled(lane, options, 40_000, 1).await;
}
