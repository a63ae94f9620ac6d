//! rust-mcp-sdk with rust-mcp-axum under the benchmarks' load.
//!
//! Why here: a library whose current release serves the stateless revision alone.
//! Invariants: its kindest sensible form. The routes it mounts on a router of ours, behind its check of hosts; JSON
//! answers; the list of tools is built once and cloned.

#[path = "../../contract.rs"]
mod contract;
#[path = "../../../server/src/listed.rs"]
mod listed;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use contract::Outcome;
use rust_mcp_axum::{McpMountOptions, mcp_routes};
use rust_mcp_sdk::id_generator::{FastIdGenerator, UuidGenerator};
use rust_mcp_sdk::macros::{JsonSchema, mcp_tool};
use rust_mcp_sdk::mcp_http::{
    DEFAULT_MAX_LISTEN_STREAMS, DnsRebindingOptions, McpAppState, McpHttpHandler, Middleware, resolve_dns_middleware,
};
use rust_mcp_sdk::mcp_server::{McpServerOptions, ServerHandler, server_runtime};
use rust_mcp_sdk::schema::schema_utils::CallToolError;
use rust_mcp_sdk::schema::{
    CallToolRequestParams, CallToolResult, Implementation, ListToolsResult, ListToolsResultCacheScope,
    PaginatedRequestParams, RpcError, ServerCapabilities, ServerCapabilitiesTools, ServerResult, TextContent, Tool,
};
use rust_mcp_sdk::{
    McpServer, RequestContext, ServerDetails, StdioTransport, ToMcpServerHandler as _, TransportOptions,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fn main() -> ExitCode {
    contract::run(http, stdio)
}

async fn http(tools: usize) -> Outcome<()> {
    let state = McpAppState {
        id_generator: Arc::new(UuidGenerator {}),
        stream_id_gen: Arc::new(FastIdGenerator::new(Some("s_"))),
        server_details: Arc::new(details()),
        handler: Bench::new(tools)?.to_mcp_server_handler(),
        ping_interval: Duration::from_secs(12),
        transport_options: Arc::default(),
        enable_json_response: true,
        message_observer: None,
        extensions: Arc::default(),
        active_listen_streams: Arc::default(),
        max_listen_streams: DEFAULT_MAX_LISTEN_STREAMS,
    };
    contract::serve(|address| {
        let (host, port) = (address.ip().to_string(), address.port());
        let hosts = resolve_dns_middleware(&mut DnsRebindingOptions::default(), &host, port);
        let checks = hosts.into_iter().map(|hosts| Arc::new(hosts) as Arc<dyn Middleware>).collect();
        let mount = McpMountOptions { streamable_http_endpoint: "/mcp".to_owned(), ..Default::default() };
        Ok(mcp_routes(Arc::new(state), &mount, McpHttpHandler::new(None, checks, None)))
    })
    .await
}

async fn stdio(tools: usize) -> Outcome<()> {
    let options = McpServerOptions {
        server_details: details(),
        transport: StdioTransport::new(TransportOptions::default())?,
        handler: Bench::new(tools)?.to_mcp_server_handler(),
        message_observer: None,
    };
    Ok(server_runtime::create_server(options).start().await?)
}

fn details() -> ServerDetails {
    ServerDetails {
        server_info: Implementation {
            name: "bench".to_owned(),
            version: "1.0.0".to_owned(),
            title: None,
            description: None,
            icons: Vec::new(),
            website_url: None,
        },
        capabilities: ServerCapabilities {
            tools: Some(ServerCapabilitiesTools { list_changed: None }),
            ..Default::default()
        },
        meta: None,
        instructions: None,
    }
}

#[mcp_tool(name = "echo", description = "Answers the text it was given.")]
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Echo {
    /// The text to answer.
    text: String,
}

#[mcp_tool(name = "add", description = "Adds two whole numbers.")]
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

struct Bench {
    tools: Vec<Tool>,
}

impl Bench {
    fn new(count: usize) -> Outcome<Self> {
        let mut tools = vec![Echo::tool(), Add::tool()];
        for listed::Listed { name, description, schema } in listed::listed(count.saturating_sub(2)) {
            let tool = json!({ "name": name, "description": description, "inputSchema": schema });
            tools.push(serde_json::from_value(tool)?);
        }
        Ok(Self { tools })
    }
}

#[async_trait]
impl ServerHandler for Bench {
    async fn handle_list_tools_request(
        &self,
        _params: Option<PaginatedRequestParams>,
        _context: &RequestContext,
        _runtime: Arc<dyn McpServer>,
    ) -> Result<ListToolsResult, RpcError> {
        Ok(ListToolsResult {
            cache_scope: ListToolsResultCacheScope::Private,
            result_type: "complete".to_owned(),
            ttl_ms: 0,
            meta: None,
            next_cursor: None,
            tools: self.tools.clone(),
        })
    }

    async fn handle_call_tool_request(
        &self,
        params: CallToolRequestParams,
        _context: &RequestContext,
        _runtime: Arc<dyn McpServer>,
    ) -> Result<ServerResult, CallToolError> {
        let arguments = Value::from(params.arguments.unwrap_or_default());
        let text = match params.name.as_str() {
            "echo" => typed::<Echo>(arguments)?.text,
            "add" => {
                let Add { a, b } = typed(arguments)?;
                a.wrapping_add(b).to_string()
            }
            name if self.tools.iter().any(|tool| tool.name == name) => arguments.to_string(),
            name => return Err(CallToolError::unknown_tool(name.to_owned())),
        };
        Ok(CallToolResult::text_content(vec![TextContent::from(text)]).into())
    }
}

fn typed<T: DeserializeOwned>(arguments: Value) -> Result<T, CallToolError> {
    serde_json::from_value(arguments).map_err(CallToolError::new)
}
