//! A server on stdio whose handlers do not end, each in a way of its own.
//!
//! Why here: that a process comes to its end whatever its handlers do can only be seen in a process.

use std::error::Error;
use std::thread;
use std::time::Duration;

use mcp_core::{HandlerError, ListRoots, NoArguments, RequestContext, Server, Tool};

const HOUR: Duration = Duration::from_secs(3600);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Length {
    bytes: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::builder("stubborn", "1.0.0")
        .tool(Tool::typed("sleep", |_: NoArguments, _| async {
            tokio::time::sleep(HOUR).await;
            Ok::<_, HandlerError>("slept")
        }))
        .tool(Tool::blocking("block", |_: NoArguments, _| {
            thread::sleep(HOUR);
            "blocked a thread that may block"
        }))
        .tool(Tool::plain("hang", |_: NoArguments| {
            thread::sleep(HOUR);
            "blocked a thread of the runtime"
        }))
        .tool(Tool::plain("text", |length: Length| "x".repeat(length.bytes)))
        .tool(Tool::typed("tell", |length: Length, context: RequestContext| async move {
            context.progress(1.0, None, Some(&"x".repeat(length.bytes)));
            Ok::<_, HandlerError>("told")
        }))
        .tool(Tool::typed("ask", |_: NoArguments, context: RequestContext| async move {
            Ok::<_, HandlerError>(context.ask("roots", ListRoots)?.len().to_string())
        }))
        .build()?;
    Ok(mcp_stdio::run(server)?)
}
