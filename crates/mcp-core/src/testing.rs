//! What tests of servers, handlers, transports and stores need: a client in memory, rehearsals, a scripted peer, a pair of pipes.
//!
//! Why here: whoever writes a server tests it against the engine itself, in both eras, without a carrier. This module comes
//! with the feature `testing`, which adds no dependency; put it into `[dev-dependencies]`:
//!
//! ```toml
//! [dev-dependencies]
//! mcp-core = { path = "../mcp/crates/mcp-core", features = ["testing"] }
//! ```
//!
//! Invariants: nothing here panics; only the checks of stores wait on a clock; what went wrong is a [`TestError`] for the test to fail of.
//!
//! ```
//! use mcp_core::testing::TestClient;
//! use mcp_core::{Server, Tool};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet { name: String }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let greet = Tool::plain("greet", |arguments: Greet| format!("Hello, {}!", arguments.name));
//! let server = Server::builder("greeter", "1.0.0").tool(greet).build()?;
//! for client in TestClient::of_every_revision(&server).await? {
//!     let reply = client.call_tool("greet", json!({ "name": "Ada" })).await?;
//!     assert_eq!(reply.text()?, "Hello, Ada!");
//! }
//! # Ok(())
//! # }
//! ```

use std::error::Error;
use std::fmt;

mod client;
mod pipe;
mod rehearse;
mod script;
mod stores;
mod transport;

pub use client::{Asked, Reply, TestClient};
pub use pipe::{ChannelPipe, ChannelReader, ChannelWriter, pair};
pub use rehearse::{Attempt, Rehearsal, rehearse};
pub use script::Script;
pub use stores::{check_answer_route, check_event_store, check_notice_bus, check_session_store};
pub use transport::check_transport;

/// What a test was told instead of what it expected.
#[derive(Debug)]
pub struct TestError(String);

impl TestError {
    /// With a text for whoever reads why a test failed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for TestError {}

impl From<mcp_wire::TransportError> for TestError {
    fn from(error: mcp_wire::TransportError) -> Self {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        Self(format!("{error}{cause}"))
    }
}

/// A frame is one JSON value on one line.
fn decoded(frame: &[u8]) -> Result<serde_json::Value, TestError> {
    let shown = || String::from_utf8_lossy(frame).into_owned();
    if frame.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return Err(TestError::new(format!("a frame with a line break: {}", shown())));
    }
    serde_json::from_slice(frame).map_err(|error| TestError::new(format!("no JSON ({error}): {}", shown())))
}

#[cfg(test)]
#[cfg(all(feature = "schemars", feature = "jsonschema"))]
mod tests;
