//! The server that is killed: owners with a token each, tools that end, go on or ask, tasks in a file.
//!
//! Why here: what it acknowledged is remembered by `cargo xtask kill-tasks`, outside of what dies.
//! Invariants: every call is a task at once; an answered call leaves its line before it ends.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_auth::StaticBearer;
use mcp_core::{Elicited, Form, HandlerError, Principal, RequestContext, Server, TaskOffer, Tool};
use mcp_http::server::{HttpConfig, HttpService, Listener};
use mcp_tasks::{DurableTaskStore, Tasks};

use crate::{Outcome, options, say};

/// Whose token is `token-of-NAME-NAME-NAME`, which is long enough to be one.
const OWNERS: [&str; 4] = ["ann", "bob", "cat", "dan"];

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Marked {
    marker: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Answer {
    answer: String,
}

pub(crate) fn run(file: &Path, effects: &Path) -> Outcome<()> {
    let store = DurableTaskStore::open(file)?;
    let found = store.found();
    let tasks = Tasks::builder().options(options(1_000_000)).store(Arc::new(store)).build();
    let server = server(tasks, effects)?;
    let principal = |name: &str| Principal::new("fixed", "", name);
    let token = |name: &str| format!("token-of-{name}-{name}-{name}");
    let [first, others @ ..] = OWNERS;
    let mut tokens = StaticBearer::new(&token(first), principal(first))?;
    for name in others {
        tokens = tokens.and(&token(name), principal(name))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::bind(address, HttpService::new(server, HttpConfig::new(tokens))).await?;
        let (address, tasks, lost) = (listener.local_addr()?, found.tasks, found.lost);
        say(&format!("listening on {address} tasks {tasks} lost {lost} unreadable {}", found.unreadable))?;
        listener.run(std::future::pending()).await;
        Ok(())
    })
}

fn server(tasks: Tasks, effects: &Path) -> Outcome<Server> {
    let at_once = || TaskOffer::optional().at_once();
    let finish = Tool::typed("finish", async |arguments: Marked, _context| Ok(arguments.marker));
    let go_on = Tool::typed("go_on", async |_: Marked, context: RequestContext| {
        context.cancelled().await;
        Ok("cancelled")
    });
    let effects: Arc<PathBuf> = Arc::new(effects.to_owned());
    let ask = Tool::typed("ask", move |arguments: Marked, context: RequestContext| {
        let effects = Arc::clone(&effects);
        async move {
            let Elicited::Accepted(Answer { answer }) = context.ask("answer", Form::new("What is it?"))? else {
                return Err(HandlerError::tell("there is no answer"));
            };
            let line = format!("{}={answer}", arguments.marker);
            // One write, so that what is there of it is whole however the process ends.
            let mut file =
                OpenOptions::new().create(true).append(true).open(&*effects).map_err(HandlerError::internal)?;
            file.write_all(format!("{line}\n").as_bytes()).map_err(HandlerError::internal)?;
            Ok(line)
        }
    });
    let tools = [finish, go_on, ask].map(|tool| tool.task(at_once()));
    let mut builder = Server::builder("killed", "1.0.0").extension(tasks);
    for tool in tools {
        builder = builder.tool(tool);
    }
    Ok(builder.build()?)
}
