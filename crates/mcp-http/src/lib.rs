//! Streamable HTTP for the Model Context Protocol, on hyper.
//!
//! [`server::HttpService`] serves every revision on one path, decided request by request; it is a
//! [`tower_service::Service`] and mounts anywhere. [`server::Listener`] is a ready-made listener for it.
//!
//! ```no_run
//! use mcp_core::{Server, Tool};
//! use mcp_http::server::{HttpConfig, HttpService, Listener};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet { name: String }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let greet = Tool::typed("greet", |args: Greet, _context| async move {
//!     Ok(format!("Hello, {}!", args.name))
//! });
//! let server = Server::builder("greeter", "1.0.0").tool(greet).build()?;
//! let service = HttpService::new(server, HttpConfig::new(mcp_auth::Anonymous));
//! let listener = Listener::bind("127.0.0.1:3000".parse()?, service).await?;
//! listener.run(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```

pub mod codec;
#[cfg(feature = "fetch")]
pub mod fetch;
#[cfg(feature = "server")]
pub mod server;

// The pages' code is compiled and run with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
