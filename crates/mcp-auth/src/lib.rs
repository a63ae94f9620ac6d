//! Who is calling an MCP server over HTTP: the provider trait and providers.
//!
//! A transport asks its [`AuthProvider`] once per request and hands the [`Principal`](mcp_core::Principal) it gets to
//! the engine; a refusal becomes the provider's [`Challenge`]. There is no default provider: a server that is open to
//! everyone says so by naming [`Anonymous`].
//!
//! ```
//! use mcp_auth::StaticBearer;
//! use mcp_core::Principal;
//!
//! let provider = StaticBearer::new("2f0a9c51d3e84b7f", Principal::new("static", "", "build-server"))?
//!     .and("b81c5e6f90a2d347", Principal::new("static", "", "ann").with_scopes(["admin"]))?;
//! # Ok::<(), mcp_auth::StaticBearerError>(())
//! ```
//!
//! Feature `server` (default): the trait and the providers. Without it the crate needs no engine.

#[cfg(feature = "server")]
mod anonymous;
#[cfg(feature = "server")]
mod bearer;
mod challenge;
mod provider;

#[cfg(feature = "server")]
pub use anonymous::Anonymous;
#[cfg(feature = "server")]
pub use bearer::{StaticBearer, StaticBearerError};
pub use challenge::{BearerChallenge, Challenge, InvalidChallenge};
#[cfg(feature = "server")]
pub use provider::AuthProvider;
pub use provider::{AuthError, AuthRequest};
