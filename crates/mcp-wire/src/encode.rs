//! JSON-RPC frames that leave: results, errors, requests, notifications, batches.
//!
//! Why here: every transport and both engines write the same envelopes, in one pass over a buffer.
//! Invariants: an encoded frame holds no raw newline.
//! Spec: 2026-07-28 basic/index, "Messages"

use bytes::Bytes;
use serde::Serialize;

use crate::{RequestId, RpcError};

/// Writes the frame of a successful response.
///
/// # Errors
/// When the result cannot be written as JSON.
pub fn encode_result<T: Serialize + ?Sized>(id: &RequestId, result: &T) -> Result<Bytes, serde_json::Error> {
    let mut frame = Vec::with_capacity(512);
    frame.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write_json(&mut frame);
    frame.extend_from_slice(br#","result":"#);
    serde_json::to_writer(&mut frame, result)?;
    frame.push(b'}');
    Ok(on_one_line(frame))
}

/// As [`encode_result`], for a body that encodes as an object and gets more members in front: `members` writes them,
/// separated by commas, or writes nothing. `capacity` is how many bytes the body will take; where it is less, or 0 because
/// nobody knows, the frame grows as it is written.
///
/// # Errors
/// When the body or a member cannot be written as JSON.
pub fn encode_result_with<T: Serialize + ?Sized>(
    id: &RequestId,
    capacity: usize,
    body: &T,
    members: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) -> Result<Bytes, serde_json::Error> {
    let mut frame = Vec::with_capacity(capacity.saturating_add(512));
    frame.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write_json(&mut frame);
    frame.extend_from_slice(br#","result":{"#);
    let before = frame.len();
    members(&mut frame)?;
    let joint = frame.len();
    serde_json::to_writer(&mut frame, body)?;
    if frame.get(joint..) == Some(b"{}") {
        frame.truncate(joint);
        frame.push(b'}');
    } else if joint == before {
        // Nothing in front: the body's own brace would stand behind ours.
        frame.remove(joint);
    } else if let Some(brace) = frame.get_mut(joint) {
        *brace = b',';
    }
    frame.push(b'}');
    Ok(on_one_line(frame))
}

/// As [`encode_result`], for a result whose members `members` writes as text, separated by commas; `capacity` is how many
/// bytes they will take. Nothing looks for raw line breaks in them again: [`on_one_line`] takes them out of text that may
/// have some.
#[must_use]
pub fn encode_result_members(id: &RequestId, capacity: usize, members: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut frame = Vec::with_capacity(capacity.saturating_add(128));
    frame.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write_json(&mut frame);
    frame.extend_from_slice(br#","result":{"#);
    members(&mut frame);
    frame.extend_from_slice(b"}}");
    debug_assert!(!frame.iter().any(|byte| matches!(byte, b'\n' | b'\r')), "a line break in a result's members");
    Bytes::from(frame)
}

/// Writes the frame of an error response. Without an id the member is left out, or `null` where `null_id` asks for it.
#[must_use]
pub fn encode_error(id: Option<&RequestId>, error: &RpcError, null_id: bool) -> Bytes {
    let mut frame = Vec::with_capacity(256);
    frame.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    match id {
        Some(id) => {
            frame.extend_from_slice(br#""id":"#);
            id.write_json(&mut frame);
            frame.push(b',');
        }
        None if null_id => frame.extend_from_slice(br#""id":null,"#),
        None => {}
    }
    frame.extend_from_slice(br#""error":"#);
    let start = frame.len();
    if serde_json::to_writer(&mut frame, error).is_err() {
        // Only a `data` that is not JSON could fail, and `RawJson` rules that out.
        frame.truncate(start);
        frame.extend_from_slice(br#"{"code":-32603,"message":"internal error"}"#);
    }
    frame.push(b'}');
    on_one_line(frame)
}

/// Writes the frame of a request.
///
/// # Errors
/// When the parameters cannot be written as JSON.
pub fn encode_request<T: Serialize + ?Sized>(
    id: &RequestId,
    method: &str,
    params: &T,
) -> Result<Bytes, serde_json::Error> {
    let mut frame = Vec::with_capacity(512);
    frame.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write_json(&mut frame);
    frame.extend_from_slice(br#","method":"#);
    serde_json::to_writer(&mut frame, method)?;
    frame.extend_from_slice(br#","params":"#);
    serde_json::to_writer(&mut frame, params)?;
    frame.push(b'}');
    Ok(on_one_line(frame))
}

/// Writes the frame of a notification; without parameters the member is left out.
///
/// # Errors
/// When the parameters cannot be written as JSON.
pub fn encode_notification<T: Serialize + ?Sized>(
    method: &str,
    params: Option<&T>,
) -> Result<Bytes, serde_json::Error> {
    let mut frame = Vec::with_capacity(256);
    frame.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    serde_json::to_writer(&mut frame, method)?;
    if let Some(params) = params {
        frame.extend_from_slice(br#","params":"#);
        serde_json::to_writer(&mut frame, params)?;
    }
    frame.push(b'}');
    Ok(on_one_line(frame))
}

/// Joins the responses of a batch into one array.
#[must_use]
pub fn join_batch(responses: &[Bytes]) -> Bytes {
    let mut frame = Vec::with_capacity(responses.iter().map(|response| response.len() + 1).sum::<usize>() + 1);
    frame.push(b'[');
    for (index, response) in responses.iter().enumerate() {
        if index > 0 {
            frame.push(b',');
        }
        frame.extend_from_slice(response);
    }
    frame.push(b']');
    Bytes::from(frame)
}

/// Puts valid JSON on one line, as frames have to be: schemas and structured results may have been pretty-printed. A raw
/// line break can only be white space between tokens, so a blank in its place keeps the meaning.
#[must_use]
pub fn on_one_line(mut json: Vec<u8>) -> Bytes {
    let mut from = 0;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', json.get(from..).unwrap_or_default()) {
        if let Some(byte) = json.get_mut(from + at) {
            *byte = b' ';
        }
        from += at + 1;
    }
    Bytes::from(json)
}
