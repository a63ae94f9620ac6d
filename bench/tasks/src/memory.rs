//! Memory of tasks that wait for input, with the store in memory.
//!
//! Why here: a task that waits costs no running call, so what it costs is its record and its place in the tables.
//! Invariants: what is read is the resident memory of the whole process, before and after; nothing runs at either moment.

use std::fs;
use std::sync::Arc;

use mcp_core::testing::TestClient;
use mcp_core::{Elicited, Form, HandlerError, Principal, RequestContext, Server, TaskOffer, Tool};
use mcp_tasks::{MemoryTaskStore, TaskStore as _, Tasks};
use mcp_wire::Revision;
use serde_json::json;

use crate::{Outcome, capabilities, options, say};

/// Tasks that are created before memory is first read, so that what is needed once is there.
const WARM_UP: usize = 1_000;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    name: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Answer {
    answer: String,
}

pub(crate) fn run(number: usize) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = Arc::new(MemoryTaskStore::new());
        let tasks =
            Tasks::builder().options(options(number + WARM_UP)).store(Arc::<MemoryTaskStore>::clone(&store)).build();
        let tool = Tool::typed("ask", async |arguments: Arguments, context: RequestContext| {
            match context.ask("answer", Form::<Answer>::new(format!("What is {}?", arguments.name)))? {
                Elicited::Accepted(Answer { answer }) => Ok(answer),
                _ => Err(HandlerError::tell("there is no answer")),
            }
        });
        let tool = tool.task(TaskOffer::optional().at_once());
        let server = Server::builder("memory", "1.0.0").extension(tasks.clone()).tool(tool).build()?;
        let principal = Principal::new("fixed", "", "ann");
        let client = TestClient::connect(&server, Revision::NEWEST, capabilities(), principal.clone()).await?;
        create(&client, &tasks, WARM_UP).await?;
        let before = resident()?;
        create(&client, &tasks, number).await?;
        let each = resident()?.saturating_sub(before) / number as u64;
        let sample = store.list(principal.key(), None, 1).await?;
        let state = sample.first().map(|record| format!("{:?}", record.state)).unwrap_or_default();
        if store.len() != number + WARM_UP || !state.starts_with("InputRequired") {
            return Err(format!("{} tasks, the first {state}", store.len()).into());
        }
        let bytes = sample.first().map_or(0, |record| serde_json::to_vec(record).map_or(0, |json| json.len()));
        say(&format!("{number} tasks that wait for input: {each} bytes of resident memory each, {bytes} as JSON"))?;
        Ok(())
    })
}

async fn create(client: &TestClient, tasks: &Tasks, number: usize) -> Outcome<()> {
    for task in 0..number {
        let call = json!({ "name": "ask", "arguments": { "name": format!("number {task}") } });
        let reply = client.round("tools/call", call).await?;
        if reply.result()?["resultType"] != "task" {
            return Err(format!("no task: {}", reply.response).into());
        }
        while tasks.live() > 0 {
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

/// Bytes of this process that are in memory.
fn resident() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("the system does not tell")?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibibytes * 1024)
}
