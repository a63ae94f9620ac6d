//! `server/discover`: what the server is and can do, for clients of the modern era.
//!
//! Why here: the modern counterpart of the handshake, without a memory of it.
//! Spec: 2026-07-28 server/discover

use mcp_wire::types::DiscoverResult;

use super::Incoming;
use crate::engine::exchange::Exchange;

pub(super) fn discover(request: &Incoming) -> Exchange {
    let versions = request.server.revisions().iter().map(|revision| revision.as_str().to_owned()).collect();
    let mut result = DiscoverResult::new(versions, request.server.capabilities(request.revision));
    result.instructions = request.server.instructions().map(ToOwned::to_owned);
    request.reply_with(Some(request.server.discover_hints()), &result)
}
