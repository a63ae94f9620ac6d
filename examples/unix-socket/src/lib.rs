//! A server with two tools at a Unix socket, over a transport of its own.
//!
//! Why here: of the library this uses only the engine and the traits of a transport; sockets are this crate's affair.

use std::error::Error;

use mcp_core::{HandlerError, Server, Tool, serve};
use tokio::net::UnixListener;
use tokio::task::JoinSet;

mod framed;

pub use framed::{FrameReader, FrameWriter, Framed, MAX_FRAME};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Shout {
    text: String,
}

/// A server with two tools.
///
/// # Errors
/// None: the tools are valid.
pub fn server() -> Result<Server, Box<dyn Error>> {
    let add = Tool::plain("add", |Add { a, b }| {
        a.checked_add(b).map(|sum| sum.to_string()).ok_or_else(|| HandlerError::tell("the sum is too large"))
    });
    let shout = Tool::plain("shout", |arguments: Shout| arguments.text.to_uppercase());
    Ok(Server::builder("unix-socket", "1.0.0").tool(add).tool(shout).build()?)
}

/// Serves every connection until accepting fails. Dropping the future ends them all.
///
/// # Errors
/// When no connection can be accepted any more.
pub async fn listen(server: &Server, listener: &UnixListener) -> Result<(), Box<dyn Error>> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _address) = listener.accept().await?;
        while connections.try_join_next().is_some() {}
        #[expect(clippy::disallowed_methods, reason = "the set owns the connections and ends them when it is dropped")]
        connections.spawn(serve(server.clone(), Framed(stream)));
    }
}
