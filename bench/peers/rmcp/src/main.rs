//! rmcp under the benchmarks' load.
//!
//! Why here: the official library is what ours is compared with first.
//! Invariants: its kindest sensible form. JSON answers where it can give them (`json_response`, the stateless revision; a
//! legacy session always answers with an event stream), and the router of tools is built once and shared, where the
//! documented `#[tool_handler]` without arguments would build it for every call.

#[path = "../../contract.rs"]
mod contract;
#[path = "../../../server/src/listed.rs"]
mod listed;

use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use contract::Outcome;
use rmcp::handler::server::router::tool::{ToolRoute, ToolRouter};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig, Tool};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt as _, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

fn main() -> ExitCode {
    contract::run(http, stdio)
}

async fn http(tools: usize) -> Outcome<()> {
    let bench = Bench::new(tools);
    let service = StreamableHttpService::new(
        move || Ok(bench.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default().with_json_response(true),
    );
    contract::serve(|_| Ok(Router::new().nest_service("/mcp", service))).await
}

async fn stdio(tools: usize) -> Outcome<()> {
    Bench::new(tools).serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}

#[derive(Clone)]
struct Bench {
    router: Arc<ToolRouter<Self>>,
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// The text to answer.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

#[tool_router(router = called)]
impl Bench {
    #[tool(description = "Answers the text it was given.")]
    async fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    #[tool(description = "Adds two whole numbers.")]
    async fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        a.wrapping_add(b).to_string()
    }
}

impl Bench {
    fn new(tools: usize) -> Self {
        let mut router = Self::called();
        for listed::Listed { name, description, schema } in listed::listed(tools.saturating_sub(2)) {
            let Value::Object(schema) = schema else { continue };
            router.add_route(ToolRoute::new_dyn(Tool::new(name, description, schema), |call| {
                let text = Value::from(call.arguments.unwrap_or_default()).to_string();
                let answer = CallToolResult::success(vec![ContentBlock::text(text)]);
                Box::pin(async { Ok(CallToolResponse::from(answer)) })
            }));
        }
        Self { router: Arc::new(router) }
    }
}

#[tool_handler(router = self.router)]
impl ServerHandler for Bench {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}
