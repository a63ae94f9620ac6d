//! The server half: a service for every revision, and a listener for it.
//!
//! Why here: HTTP on one side, the engine on the other; nothing is decided here that the protocol decides.

mod body;
mod config;
mod guard;
mod in_flight;
mod legacy;
mod listen;
mod modern;
mod service;

pub use body::HttpBody;
pub use config::HttpConfig;
pub use listen::{ListenError, Listener};
#[cfg(feature = "tls")]
pub use listen::{Tls, TlsError};
pub use service::HttpService;

pub use crate::codec::forwarded::{NoNetwork, TrustedProxies};
pub use crate::codec::origin::{AllowedHosts, AllowedOrigins, InvalidEntry};
