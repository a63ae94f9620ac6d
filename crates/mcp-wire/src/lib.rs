//! Messages and revisions of the Model Context Protocol: encode and decode, without a runtime.
//!
//! Everything above this crate speaks in these types. Nothing here waits, spawns, reads a clock or opens a socket, so the
//! crate can serve any transport.
//!
//! - [`Frame::decode`] turns received bytes into [`Message`]s whose parameters are untouched slices of those bytes;
//!   [`encode_result`] and its neighbours write frames.
//! - [`Revision`] and its [`Rules`] say what each dated revision has; [`Method`] says who may send what in which one.
//! - [`types`] holds the results, parameters and notifications; [`downgrade`] is the one place that rewrites them for an
//!   older revision.
//! - [`Transport`] is the trait to implement for a pipe of one's own.

pub mod capability;
mod depth;
pub mod downgrade;
mod encode;
mod envelope;
mod error;
mod id;
mod method;
pub mod params;
mod pending;
mod raw;
mod revision;
mod transport;
pub mod types;

pub use encode::{
    encode_error, encode_notification, encode_request, encode_result, encode_result_members, encode_result_with,
    join_batch, on_one_line,
};
pub use envelope::{DecodeError, DecodeLimits, Frame, Message, Notification, Request, Response};
pub use error::{ErrorCode, RpcError};
pub use id::RequestId;
pub use method::{Direction, Gate, Method};
pub use pending::{Pending, PendingFull};
pub use raw::{JsonKind, RawJson};
pub use revision::{Era, Revision, Rules, UnknownRevision};
pub use transport::{MessageReader, MessageWriter, Transport, TransportError};

// The pages' code is compiled and run with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
