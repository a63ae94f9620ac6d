//! A server that a client starts as a child process: messages come by stdin and go by stdout, one to a line.
//!
//! `cargo run --package mcp-stdio --example echo-stdio`, then type a request or end the input.

use std::error::Error;

use mcp_core::{Server, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What is said back.
    text: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let echo = Tool::plain("echo", |arguments: Echo| arguments.text).description("Says back what it is told");
    let server = Server::builder("echo", "1.0.0").tool(echo).build()?;
    Ok(mcp_stdio::run(server)?)
}
