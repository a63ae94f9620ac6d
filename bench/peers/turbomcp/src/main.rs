//! turbomcp under the benchmarks' load.
//!
//! Why here: a library with both revisions whose design is closest to ours.
//! Invariants: its kindest sensible form. The traits behind its macros are written out, with `lookup_tool` indexed, where
//! the default would walk through all pages of the list for every call; tools are cloned from a list built once.

#[path = "../../contract.rs"]
mod contract;
#[path = "../../../server/src/listed.rs"]
mod listed;

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;

use contract::Outcome;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use turbomcp::http::HttpConfig;
use turbomcp::neutral::{CallToolParams, CallToolResult, ListParams, ListToolsResult, Tool};
use turbomcp::prelude::*;
use turbomcp::schemars::{JsonSchema, schema_for};
use turbomcp::{Implementation, LegacySessionAdapter, serve_stdio};

fn main() -> ExitCode {
    contract::run(http, stdio)
}

async fn http(tools: usize) -> Outcome<()> {
    let dispatcher = Bench::new(tools)?.into_server().with_tools().build();
    // A text of 1 MiB has to fit.
    let config = HttpConfig::new()
        .max_body_bytes(4 * 1_024 * 1_024)
        .with_session_terminator(Arc::new(dispatcher.session_terminator()));
    contract::serve(|_| Ok(turbomcp::http::router(dispatcher, config))).await
}

async fn stdio(tools: usize) -> Outcome<()> {
    let dispatcher = Bench::new(tools)?.into_server().with_tools().build();
    Ok(serve_stdio(LegacySessionAdapter::new(dispatcher)).await?)
}

#[derive(Clone)]
struct Bench {
    tools: Arc<[Tool]>,
    by_name: Arc<HashMap<String, usize>>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "turbomcp::schemars")]
struct Echo {
    /// The text to answer.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "turbomcp::schemars")]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

impl Bench {
    fn new(count: usize) -> Outcome<Self> {
        let echo = serde_json::to_value(schema_for!(Echo))?;
        let add = serde_json::to_value(schema_for!(Add))?;
        let mut tools =
            vec![tool("echo", "Answers the text it was given.", echo), tool("add", "Adds two whole numbers.", add)];
        tools.extend(
            listed::listed(count.saturating_sub(2))
                .map(|listed::Listed { name, description, schema }| tool(&name, &description, schema)),
        );
        let by_name = tools.iter().enumerate().map(|(index, tool)| (tool.name.clone(), index)).collect();
        Ok(Self { tools: tools.into(), by_name: Arc::new(by_name) })
    }
}

fn tool(name: &str, description: &str, schema: Value) -> Tool {
    let mut tool = Tool::new(name, schema);
    tool.description = Some(description.to_owned());
    tool
}

impl McpServerCore for Bench {
    fn server_info(&self) -> Implementation {
        Implementation::new("bench", "1.0.0")
    }
}

impl WithTools for Bench {
    async fn lookup_tool(&self, _context: &ListToolsContext, name: String) -> McpResult<Option<Tool>> {
        Ok(self.by_name.get(&name).and_then(|index| self.tools.get(*index)).cloned())
    }

    async fn list_tools(&self, _context: &ListToolsContext, _params: ListParams) -> McpResult<ListToolsResult> {
        Ok(ListToolsResult::new(self.tools.to_vec()))
    }

    async fn call_tool(&self, _context: &CallToolContext, params: CallToolParams) -> McpResult<CallToolResult> {
        let text = match params.name.as_str() {
            "echo" => typed::<Echo>(params.arguments)?.text,
            "add" => {
                let Add { a, b } = typed(params.arguments)?;
                a.wrapping_add(b).to_string()
            }
            _ => Value::from(params.arguments).to_string(),
        };
        Ok(CallToolResult::text(text))
    }
}

fn typed<T: DeserializeOwned>(arguments: Map<String, Value>) -> McpResult<T> {
    serde_json::from_value(Value::from(arguments)).map_err(|problem| McpError::invalid_params(problem.to_string()))
}
