//! What every frame of a server has to be, checked in every test.
//!
//! Why here: a rule for all messages is worth nothing if only its own test looks at it.

use mcp_wire::{Rules, params};
use serde_json::Value;

use crate::call::Reply;

/// Checks the frames that answer one request.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    /// The id that the response has to carry; `None` where the test sends what is no request.
    pub(crate) id: Option<Value>,
    pub(crate) rules: &'static Rules,
    /// The id digit for digit, where the test says it: values round the integers of many digits.
    pub(crate) written: Option<&'static str>,
}

impl Checked {
    pub(crate) fn notification(&self, frame: &[u8]) -> Value {
        let message = decoded(frame);
        assert!(message["method"].is_string() && message.get("id").is_none(), "no notification: {message}");
        let tagged = message["params"]["_meta"].get(params::SUBSCRIPTION_ID).is_some();
        if let (true, Some(written)) = (tagged, &self.written) {
            let tag = format!("\"{}\":{written}", params::SUBSCRIPTION_ID);
            let text = String::from_utf8_lossy(frame);
            assert!(text.contains(&tag), "the tag is not the id as it was sent, {written}: {text}");
        }
        message
    }

    pub(crate) fn request(&self, frame: &[u8]) -> Value {
        let message = decoded(frame);
        assert!(message["method"].is_string() && message.get("id").is_some(), "no request: {message}");
        assert!(!self.rules.result_type, "a modern server asks inside results: {message}");
        message
    }

    pub(crate) fn response(&self, frame: &[u8], status: Option<u16>) -> Reply {
        let text = std::str::from_utf8(frame).expect("frames are UTF-8").to_owned();
        let response = decoded(frame);
        if let Some(id) = &self.id {
            assert_eq!(response.get("id"), Some(id), "the id is not that of the request: {text}");
        }
        assert!(response.get("result").is_some() != response.get("error").is_some(), "neither or both: {text}");
        if let Some(result) = response.get("result") {
            self.result(result);
        }
        Reply { before: Vec::new(), response, text, status, headers: Vec::new() }
    }

    /// Checklist 13: every R5 result, including empty acks, has `resultType`. Legacy results have nothing that came later.
    fn result(&self, result: &Value) {
        if self.rules.result_type {
            assert!(result["resultType"].is_string(), "no resultType: {result}");
            return;
        }
        for member in ["resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"] {
            assert!(result.get(member).is_none(), "{member} in a legacy result: {result}");
        }
        let meta = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert!(meta.is_null(), "the server's name in a legacy result: {result}");
    }
}

/// A frame is one JSON-RPC message on one line.
pub(crate) fn decoded(frame: &[u8]) -> Value {
    assert!(!frame.iter().any(|byte| matches!(byte, b'\n' | b'\r')), "a frame with a line break");
    let message: Value = serde_json::from_slice(frame).expect("frames are JSON");
    assert_eq!(message["jsonrpc"], "2.0", "no JSON-RPC: {message}");
    message
}
