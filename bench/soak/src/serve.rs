//! The server that is soaked, every check on and with bounds that minutes are enough to reach.
//!
//! Why here: what is kept for half an hour in real life would look like growth in a run of twenty minutes.
//! Invariants: only times and numbers differ from the defaults, never what is checked.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use mcp_core::{HandlerError, Limits, NoArguments, RequestContext, Resource, Server, Tool};
use mcp_http::server::{HttpConfig, HttpService, Listener};
use mcp_wire::types::LoggingLevel;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::{Outcome, say};

/// The resource that is watched.
pub(crate) const WATCHED: &str = "soak://watched";
/// How long a session lives without a message.
pub(crate) const SESSION_IDLE: Duration = Duration::from_secs(20);
/// How long a connection may be silent, or leave an answer lying.
pub(crate) const HEADER_TIMEOUT: Duration = Duration::from_secs(6);
/// How long a body may take.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(4);
/// Bytes of a body.
pub(crate) const BODY_BYTES: usize = 4 * 1024 * 1024;
/// Requests that one caller may have under way.
pub(crate) const PER_CALLER: usize = 200;

/// Serves on two workers until SIGTERM, or the end of its input: whoever started it is gone then.
pub(crate) fn run() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(serve())
}

/// Tells when the input has ended.
#[expect(
    clippy::disallowed_methods,
    reason = "a read of the input cannot be called off: the thread ends with the process"
)]
fn end_of_input() -> oneshot::Receiver<()> {
    let (over, told) = oneshot::channel();
    std::thread::spawn(move || {
        // An error is an end as well, and the server may have ended before.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = over.send(());
    });
    told
}

async fn serve() -> Outcome<()> {
    let input = end_of_input();
    let mut terminate = signal(SignalKind::terminate())?;
    let config = HttpConfig::new(mcp_auth::Anonymous)
        .sse_pair("/sse", "/messages")
        .health()
        .max_body_bytes(BODY_BYTES)
        .body_timeout(BODY_TIMEOUT)
        .keep_alive(Duration::from_secs(2))
        .max_in_flight(1_024)
        .max_in_flight_per_caller(PER_CALLER);
    let service = HttpService::new(server()?, config);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(address, service).await?.header_timeout(HEADER_TIMEOUT).max_connections(2_000);
    say(&format!("listening on {}", listener.local_addr()?))?;
    listener
        .run(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = input => {}
            }
        })
        .await;
    Ok(())
}

fn server() -> Outcome<Server> {
    let mut limits = Limits::default();
    limits.session_idle = SESSION_IDLE;
    limits.sessions = 2_000;
    limits.subscriptions = 500;
    limits.call_timeout = Some(Duration::from_secs(10));
    limits.cancel_grace = Duration::from_secs(1);
    limits.blocking = 4;
    let server = Server::builder("soak", "1.0.0")
        .limits(limits)
        .resource(Resource::text(WATCHED, "watched", "what is watched"))
        .tool(Tool::plain("echo", |arguments: Text| arguments.text))
        .tool(Tool::plain("large", |arguments: Number| "x".repeat(arguments.number)))
        .tool(Tool::typed("sleep", sleep))
        .tool(Tool::typed("count", count))
        .tool(Tool::typed("never", never))
        .tool(Tool::blocking("block", |arguments: Number, _context| {
            std::thread::sleep(milliseconds(arguments.number));
            format!("blocked for {}", arguments.number)
        }))
        .tool(Tool::typed("change", change));
    Ok(server.build()?)
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Number {
    number: usize,
}

fn milliseconds(number: usize) -> Duration {
    Duration::from_millis(u64::try_from(number).unwrap_or(u64::MAX))
}

async fn sleep(arguments: Number, _context: RequestContext) -> Result<String, HandlerError> {
    tokio::time::sleep(milliseconds(arguments.number)).await;
    Ok(format!("slept for {}", arguments.number))
}

/// Tells of each step.
async fn count(arguments: Number, context: RequestContext) -> Result<String, HandlerError> {
    for step in 1..=arguments.number {
        context.progress(step as f64, Some(arguments.number as f64), None);
        context.log(LoggingLevel::Info, "a step");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(format!("counted to {}", arguments.number))
}

/// Does not even look whether it was cancelled.
async fn never(_: NoArguments, _context: RequestContext) -> Result<String, HandlerError> {
    std::future::pending().await
}

async fn change(_: NoArguments, context: RequestContext) -> Result<&'static str, HandlerError> {
    context.server().tools_changed();
    context.server().resource_updated(WATCHED);
    Ok("changed")
}
