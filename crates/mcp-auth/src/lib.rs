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
//! Feature `server` (default): the trait and the providers that need nothing more. Without it the crate needs no engine.
//! `jwt`, `introspection`, `api-key` and `basic` add a provider each, `fetch` the trait by which the first two ask
//! others.

#[cfg(any(feature = "server", feature = "fetch"))]
mod address;
#[cfg(feature = "server")]
mod anonymous;
#[cfg(feature = "api-key")]
mod api_key;
#[cfg(feature = "basic")]
mod basic;
#[cfg(feature = "server")]
mod bearer;
#[cfg(feature = "server")]
mod chain;
mod challenge;
#[cfg(any(feature = "jwt", feature = "introspection"))]
mod claims;
#[cfg(any(feature = "jwt", feature = "introspection"))]
mod clock;
#[cfg(feature = "server")]
mod credential;
#[cfg(feature = "fetch")]
mod fetch;
#[cfg(feature = "introspection")]
mod introspection;
#[cfg(feature = "jwt")]
mod jwks;
#[cfg(feature = "jwt")]
mod jwt;
#[cfg(feature = "jwt")]
mod keys;
#[cfg(feature = "server")]
mod metadata;
#[cfg(feature = "server")]
mod options;
mod provider;
#[cfg(feature = "server")]
mod scopes;
#[cfg(feature = "server")]
mod verifier;

#[cfg(feature = "server")]
pub use anonymous::Anonymous;
#[cfg(feature = "api-key")]
pub use api_key::{ApiKeyTable, ApiKeys, Pepper};
#[cfg(feature = "basic")]
pub use basic::{Basic, BasicUsers};
#[cfg(feature = "server")]
pub use bearer::{StaticBearer, StaticBearerError};
#[cfg(feature = "server")]
pub use chain::Chain;
pub use challenge::{BearerChallenge, Challenge, InvalidChallenge};
#[cfg(feature = "fetch")]
pub use fetch::{Fetch, FetchError, FetchRequest, FetchResponse};
#[cfg(feature = "introspection")]
pub use introspection::Introspection;
#[cfg(feature = "jwt")]
pub use jwks::Jwks;
#[cfg(feature = "jwt")]
pub use jwt::{IssuerKeys, JwtVerifier};
#[cfg(feature = "jwt")]
pub use keys::JwtAlgorithm;
#[cfg(feature = "server")]
pub use metadata::ProtectedResource;
#[cfg(feature = "server")]
pub use options::InvalidOption;
#[cfg(feature = "server")]
pub use provider::AuthProvider;
pub use provider::{AuthError, AuthRequest};
#[cfg(feature = "server")]
pub use scopes::RequiredScopes;
#[cfg(feature = "server")]
pub use verifier::{Bearer, TokenVerifier};

// The page's code is compiled with the documentation.
#[cfg(all(doctest, feature = "jwt"))]
#[doc = include_str!("../README.md")]
struct Readme;
