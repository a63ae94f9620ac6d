//! Puts the server together.
//!
//! Why here: the program and the behaviour tests serve the same server.
//! Invariants: the first tool needs no arguments and the first resource can be read, so that a client that picks the
//! first of a list gets an answer.

use std::error::Error;

use mcp_core::{Limits, Server};
use mcp_tasks::Tasks;

use crate::{asking, background, prompts, resources, skills, tools, waiting};

/// The sample server, ready for any transport, within these bounds.
///
/// # Errors
/// When something could not be registered, or there is no randomness for its key.
pub fn server(limits: Limits) -> Result<Server, Box<dyn Error>> {
    let mut builder = Server::builder("everything-server", env!("CARGO_PKG_VERSION"))
        .instructions("A sample with one of everything. Every tool can be called at will; none has lasting effects.")
        .limits(limits)
        .extension(Tasks::new());
    for tool in tools::all().into_iter().chain(asking::tools()).chain(background::tools()) {
        builder = builder.tool(tool);
    }
    for resource in resources::direct() {
        builder = builder.resource(resource);
    }
    let (waits, cancelled) = waiting::tool_and_count();
    builder = builder.tool(waits).resource(cancelled);
    builder = builder.resource_template(resources::template());
    for prompt in prompts::all() {
        builder = builder.prompt(prompt);
    }
    Ok(skills::all()?.install(builder).build()?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn everything_can_be_registered() {
        super::server(mcp_core::Limits::default()).unwrap();
    }
}
