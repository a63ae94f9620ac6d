//! An MCP endpoint beside other routes of one axum router.
//!
//! Why here: an application that has a router already mounts the service in it and needs no listener of ours.

use axum::Router;
use axum::routing::get;
use mcp_auth::Anonymous;
use mcp_core::{RegistrationError, Server, Tool};
use mcp_http::server::{HttpConfig, HttpService};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    /// Who is greeted.
    name: String,
}

/// A server with one tool.
///
/// # Errors
/// None: the tool is valid.
pub fn server() -> Result<Server, RegistrationError> {
    let greet = Tool::plain("greet", |arguments: Greet| format!("Hello, {}!", arguments.name));
    Server::builder("greeter", "1.0.0").tool(greet.description("Greets somebody")).build()
}

/// The server at `/mcp`, and what an application has besides.
pub fn router(server: Server) -> Router {
    // The router has found the path before the service is asked; layers of the router apply to it as to any route.
    let endpoint = HttpService::new(server, HttpConfig::new(Anonymous).any_path());
    // Both spellings of the path, since a redirect would lose the body of a POST.
    let router = Router::new().route_service("/mcp", endpoint.clone()).route_service("/mcp/", endpoint);
    router.route("/health", get(|| async { "well" }))
}
