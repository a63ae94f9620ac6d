//! `logging/setLevel`: the log level of a legacy session.
//!
//! Why here: the modern era says its level with each request, so this is all there is.
//! Spec: 2025-11-25 server/utilities/logging, "Setting Log Level"

use mcp_wire::RpcError;
use mcp_wire::types::SetLevelParams;
use serde_json::json;

use super::Incoming;
use crate::engine::exchange::Exchange;

pub(super) fn set_level(request: &Incoming) -> Exchange {
    let params = request.params.raw().and_then(|params| params.parse::<SetLevelParams>().ok());
    let Some(params) = params else {
        return request.fail(RpcError::invalid_params(
            "params.level must be one of debug, info, notice, warning, error, critical, alert, emergency",
        ));
    };
    // Without a session there is nothing to remember it in.
    if let Some(session) = &request.session {
        session.set_log_level(params.level);
    }
    request.reply(&json!({}))
}
