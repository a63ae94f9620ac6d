//! The bounds of HTTP/2, per connection.
//!
//! Why here: hyper has defaults for most; what a peer may cause is ours to say.
//! Invariants: what a slow or hostile peer makes a connection hold is the sum of these.

use std::time::Duration;

/// Requests under way. Beyond: the stream is refused, and the peer may try again.
pub(super) const STREAMS: u32 = 100;
/// Requests that were taken back before they were looked at. Beyond: the connection ends.
pub(super) const RESETS: usize = 20;
/// Requests that had to be broken off because of how they were sent. Beyond: the connection ends.
pub(super) const FAULTS: usize = 200;
/// Bytes of a request's headers. Beyond: 431.
pub(super) const HEADER_LIST: u32 = 64 * 1024;
/// Bytes of a request's body that may come before we read them.
pub(super) const STREAM_WINDOW: u32 = 256 * 1024;
/// The same for all bodies together.
pub(super) const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Bytes of a response that wait for a slow reader.
pub(super) const SEND_BUFFER: usize = 64 * 1024;
/// How often a silent connection is asked whether it lives.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long it may take to say so. Beyond: it ends, and what was under way is cancelled.
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(20);
