//! The one door out: a result becomes a response, dressed as its revision has it.
//!
//! Why here: `resultType`, caching hints and the server's name are the same for every method.
//! Invariants: one encoding pass; legacy results carry none of it; the handler's own `_meta` is kept in both eras.
//! Spec: 2026-07-28 basic/index, "Results"; server/utilities/caching

use bytes::Bytes;
use mcp_wire::types::{CacheHints, MetaObject};
use mcp_wire::{RequestId, Rules, encode_result_members, encode_result_with, params};
use serde::Serialize;

/// What kind of answer a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultType {
    Complete,
    InputRequired,
    /// What an extension calls it.
    Other(&'static str),
}

impl ResultType {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::InputRequired => "input_required",
            Self::Other(name) => name,
        }
    }
}

/// How a result is dressed.
pub(crate) struct Dress<'a> {
    pub(crate) rules: &'static Rules,
    /// The server's name and version as JSON, unless it keeps them to itself.
    pub(crate) server_info: Option<&'a str>,
    pub(crate) result_type: ResultType,
    pub(crate) hints: Option<CacheHints>,
    /// `_meta` of the handler.
    pub(crate) meta: Option<&'a MetaObject>,
    /// The subscription that the result closes, named in `_meta`.
    pub(crate) subscription: Option<&'a RequestId>,
    /// The bytes of the large values in the body, so that the frame is made once; 0 where there are none.
    pub(crate) bulk: usize,
}

/// Writes the response frame of a result. `body` encodes as an object without `_meta`, `resultType` and hints.
///
/// # Errors
/// When the body cannot be written as JSON.
pub(crate) fn response<T: Serialize + ?Sized>(
    id: &RequestId,
    dress: &Dress<'_>,
    body: &T,
) -> Result<Bytes, serde_json::Error> {
    encode_result_with(id, dress.bulk, body, |out| dress.write_members(out))
}

/// Writes the response frame of a result whose own members `body` writes as text; `capacity` is how many bytes those take.
pub(crate) fn frame_of(id: &RequestId, dress: &Dress<'_>, capacity: usize, body: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    encode_result_members(id, capacity.saturating_add(256), |out| {
        let before = out.len();
        if dress.write_members(out).is_err() {
            // Only a `_meta` that is not JSON could fail, and lists have none.
            out.truncate(before);
        }
        if out.len() > before {
            out.push(b',');
        }
        body(out);
    })
}

impl Dress<'_> {
    /// Writes the members that go before the body's, separated by commas, without a trailing one.
    pub(crate) fn write_members(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let server_info = self.server_info.filter(|_| self.rules.result_type);
        if self.rules.result_type {
            out.extend_from_slice(br#""resultType":""#);
            out.extend_from_slice(self.result_type.as_str().as_bytes());
            out.push(b'"');
            if let Some(hints) = &self.hints {
                out.extend_from_slice(br#","ttlMs":"#);
                serde_json::to_writer(&mut *out, &hints.ttl_ms)?;
                out.extend_from_slice(br#","cacheScope":"#);
                serde_json::to_writer(&mut *out, &hints.cache_scope)?;
            }
        }
        if server_info.is_none() && self.subscription.is_none() && self.meta.is_none_or(MetaObject::is_empty) {
            return Ok(());
        }
        if self.rules.result_type {
            out.push(b',');
        }
        out.extend_from_slice(br#""_meta":{"#);
        if let Some(server_info) = server_info {
            out.push(b'"');
            out.extend_from_slice(params::SERVER_INFO.as_bytes());
            out.extend_from_slice(br#"":"#);
            out.extend_from_slice(server_info.as_bytes());
        }
        let mut first = server_info.is_none();
        if let Some(subscription) = self.subscription {
            if !std::mem::replace(&mut first, false) {
                out.push(b',');
            }
            serde_json::to_writer(&mut *out, params::SUBSCRIPTION_ID)?;
            out.push(b':');
            serde_json::to_writer(&mut *out, subscription)?;
        }
        for (key, value) in self.meta.into_iter().flatten() {
            // Ours to say, and a member must not occur twice.
            if server_info.is_some() && key == params::SERVER_INFO {
                continue;
            }
            if !std::mem::replace(&mut first, false) {
                out.push(b',');
            }
            serde_json::to_writer(&mut *out, key)?;
            out.push(b':');
            serde_json::to_writer(&mut *out, value)?;
        }
        out.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use mcp_wire::Revision;
    use mcp_wire::types::CacheScope;
    use serde_json::{Value, json};

    use super::*;

    fn dressed(revision: Revision, hints: Option<CacheHints>, meta: Option<&MetaObject>, body: &Value) -> Value {
        let dress = Dress {
            rules: revision.rules(),
            server_info: Some(r#"{"name":"s","version":"1"}"#),
            result_type: ResultType::Complete,
            hints,
            meta,
            subscription: None,
            bulk: 0,
        };
        serde_json::from_slice(&response(&RequestId::from(1), &dress, body).unwrap()).unwrap()
    }

    #[test]
    fn modern_results_are_dressed_even_when_empty() {
        let info = json!({ (params::SERVER_INFO): {"name": "s", "version": "1"} });
        assert_eq!(
            dressed(Revision::V2026_07_28, None, None, &json!({})),
            json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "_meta": info}})
        );
        let hints = CacheHints::new(5, CacheScope::Public);
        assert_eq!(
            dressed(Revision::V2026_07_28, Some(hints), None, &json!({"tools": []}))["result"],
            json!({"resultType": "complete", "ttlMs": 5, "cacheScope": "public", "_meta": info, "tools": []})
        );
    }

    #[test]
    fn legacy_results_are_bare() {
        let hints = CacheHints::new(5, CacheScope::Public);
        for revision in [Revision::V2024_11_05, Revision::V2025_11_25] {
            assert_eq!(dressed(revision, None, None, &json!({}))["result"], json!({}));
            assert_eq!(dressed(revision, Some(hints), None, &json!({"a": 1}))["result"], json!({"a": 1}));
        }
    }

    #[test]
    fn the_meta_of_a_handler_is_kept() {
        let meta: MetaObject = serde_json::from_value(json!({"x": 1, (params::SERVER_INFO): "mine"})).unwrap();
        let modern = dressed(Revision::V2026_07_28, None, Some(&meta), &json!({"a": 1}));
        assert_eq!(modern["result"]["_meta"], json!({"x": 1, (params::SERVER_INFO): {"name": "s", "version": "1"}}));
        let meta: MetaObject = serde_json::from_value(json!({"x": 1})).unwrap();
        assert_eq!(
            dressed(Revision::V2025_06_18, None, Some(&meta), &json!({"a": 1}))["result"],
            json!({"_meta": {"x": 1}, "a": 1})
        );
        assert_eq!(dressed(Revision::V2025_06_18, None, Some(&meta), &json!({}))["result"], json!({"_meta": {"x": 1}}));
    }
}
