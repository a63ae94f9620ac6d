//! Tasks per second: created at once, run to their end, and stored twice each.
//!
//! Why here: what a file costs beside memory is a ratio of one run, on one machine.
//! Invariants: each task is created by a request of its own and acknowledged; all have ended when the clock stops.

use std::path::Path;
use std::sync::Arc;

use mcp_core::testing::TestClient;
use mcp_core::{NoArguments, Principal, Server, TaskOffer, Tool};
use mcp_tasks::{DurableTaskStore, MemoryTaskStore, TaskStore, Tasks};
use mcp_wire::Revision;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::{Outcome, capabilities, options, say};

pub(crate) fn run(folder: &Path) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        say("store    clients  tasks  per second")?;
        for (clients, number) in [(1, 20_000), (64, 20_000)] {
            measure("memory", Arc::new(MemoryTaskStore::new()), clients, number).await?;
        }
        for (clients, number) in [(1, 500), (64, 10_000)] {
            let file = folder.join(format!("rates-{clients}.redb"));
            let store = Arc::new(DurableTaskStore::open(&file)?);
            measure("file", Arc::<DurableTaskStore>::clone(&store), clients, number).await?;
            drop(store);
            std::fs::remove_file(file)?;
        }
        Ok(())
    })
}

async fn measure(name: &str, store: Arc<dyn TaskStore>, clients: usize, number: usize) -> Outcome<()> {
    let tasks = Tasks::builder().options(options(number)).store(Arc::clone(&store)).build();
    let tool = Tool::typed("echo", async |_: NoArguments, _context| Ok("done"));
    let tool = tool.task(TaskOffer::optional().at_once());
    let server = Server::builder("rates", "1.0.0").extension(tasks.clone()).tool(tool).build()?;
    let started = Instant::now();
    let mut running = JoinSet::new();
    for client in 0..clients {
        let server = server.clone();
        #[expect(clippy::disallowed_methods, reason = "ends with the set, which this function owns")]
        running.spawn(async move {
            let principal = Principal::new("fixed", "", &client.to_string());
            let client = TestClient::connect(&server, Revision::NEWEST, capabilities(), principal).await?;
            for _ in 0..number / clients {
                let reply = client.round("tools/call", json!({ "name": "echo", "arguments": {} })).await?;
                if reply.result()?["resultType"] != "task" {
                    return Err(format!("no task: {}", reply.response).into());
                }
            }
            Outcome::Ok(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    while tasks.live() > 0 {
        tokio::task::yield_now().await;
    }
    let created = number / clients * clients;
    let rate = created as f64 / started.elapsed().as_secs_f64();
    say(&format!("{name:<8} {clients:>7} {created:>6} {rate:>11.0}"))?;
    Ok(())
}
