//! pmcp under the benchmarks' load.
//!
//! Why here: a library with both revisions and its own HTTP stack of layers.
//! Invariants: its kindest sensible form. The router that serves requests side by side, where its first constructor takes
//! one lock for all of them; JSON answers; no subscriber for what it logs.

#[path = "../../contract.rs"]
mod contract;
#[path = "../../../server/src/listed.rs"]
mod listed;

use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use contract::Outcome;
use pmcp::axum::{RouterConfig, concurrent_router_with_config};
use pmcp::server::streamable_http_server::StreamableHttpServerConfig;
use pmcp::types::capabilities::{ServerCapabilities, ToolCapabilities};
use pmcp::types::protocol::{LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_2026_07_28, ProtocolVersion};
use pmcp::types::{CallToolResult, Content, ToolInfo};
use pmcp::{RequestHandlerExtra, Server, ToolHandler, ToolOutput};
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn main() -> ExitCode {
    contract::run(http, stdio)
}

async fn http(tools: usize) -> Outcome<()> {
    let server_config = StreamableHttpServerConfig { enable_json_response: true, ..Default::default() };
    let config = RouterConfig { server_config, ..Default::default() };
    let server = Arc::new(server(tools)?);
    contract::serve(|_| Ok(Router::new().nest("/mcp", concurrent_router_with_config(server, config)))).await
}

async fn stdio(tools: usize) -> Outcome<()> {
    Ok(server(tools)?.run_stdio().await?)
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

fn server(tools: usize) -> Outcome<Server> {
    // Without it there is nothing to listen to, and a subscription is refused.
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(ToolCapabilities { list_changed: Some(true) });
    let versions = [LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_2026_07_28];
    let mut builder = Server::builder()
        .name("bench")
        .version("1.0.0")
        .capabilities(capabilities)
        .with_supported_protocol_versions(versions.map(|version| ProtocolVersion(version.to_owned())));
    let echo = serde_json::to_value(schema_for!(Echo))?;
    let add = serde_json::to_value(schema_for!(Add))?;
    let answers: [(&str, &str, Value, Answer); 2] = [
        ("echo", "Answers the text it was given.", echo, |arguments| Ok(typed::<Echo>(arguments)?.text)),
        ("add", "Adds two whole numbers.", add, |arguments| {
            let Add { a, b } = typed(arguments)?;
            Ok(a.wrapping_add(b).to_string())
        }),
    ];
    for (name, description, schema, answer) in answers {
        let info = ToolInfo::new(name, Some(description.to_owned()), schema);
        builder = builder.tool(name, Bench { info, answer });
    }
    for listed::Listed { name, description, schema } in listed::listed(tools.saturating_sub(2)) {
        let info = ToolInfo::new(name.clone(), Some(description), schema);
        builder = builder.tool(name, Bench { info, answer: |arguments| Ok(arguments.to_string()) });
    }
    Ok(builder.build()?)
}

type Answer = fn(Value) -> pmcp::Result<String>;

/// A tool that answers a text as it is. What a typed tool returns is answered as JSON, a string with its quotes.
struct Bench {
    info: ToolInfo,
    answer: Answer,
}

#[async_trait]
impl ToolHandler for Bench {
    async fn handle(&self, arguments: Value, _extra: RequestHandlerExtra) -> pmcp::Result<Value> {
        (self.answer)(arguments).map(Value::String)
    }

    async fn handle_output(&self, arguments: Value, _extra: RequestHandlerExtra) -> pmcp::Result<ToolOutput> {
        let text = (self.answer)(arguments)?;
        Ok(ToolOutput::Result(CallToolResult::new(vec![Content::text(text)])))
    }

    fn metadata(&self) -> Option<ToolInfo> {
        Some(self.info.clone())
    }
}

fn typed<T: DeserializeOwned>(arguments: Value) -> pmcp::Result<T> {
    serde_json::from_value(arguments).map_err(|problem| pmcp::Error::validation(problem.to_string()))
}
