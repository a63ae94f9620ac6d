//! Frames: what decodes encodes to itself, what does not is answered by an error that decodes, and bounds hold.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mcp_wire::params::Params;
use mcp_wire::{
    DecodeLimits, ErrorCode, Frame, Message, Notification, RawJson, Request, Response, encode_error,
    encode_notification, encode_request, encode_result, join_batch,
};
use serde_json::{Value, json};

const DEPTH: usize = 8;
const BATCH: usize = 4;

fuzz_target!(|data: &[u8]| {
    let frame = Bytes::copy_from_slice(data);
    match Frame::decode(&frame, limits()) {
        Frame::One(message) => holds(&message),
        Frame::Batch(elements) => {
            assert!((1..=BATCH).contains(&elements.len()), "{} elements", elements.len());
            elements.iter().flatten().for_each(holds);
            let encoded: Vec<Bytes> = elements.iter().flatten().map(encode).collect();
            if !encoded.is_empty() {
                let Frame::Batch(again) = Frame::decode(&join_batch(&encoded), limits()) else { panic!("no batch") };
                assert!(again.iter().flatten().map(encode).eq(encoded));
            }
        }
        Frame::Malformed(error) => {
            let rpc = error.to_rpc();
            let codes = [ErrorCode::PARSE_ERROR, ErrorCode::INVALID_REQUEST, ErrorCode::INVALID_PARAMS];
            assert!(codes.contains(&rpc.code), "{rpc:?}");
            if rpc.code == ErrorCode::PARSE_ERROR {
                let is_json = std::str::from_utf8(data).is_ok_and(|text| serde_json::from_str::<Value>(text).is_ok());
                assert!(!is_json, "this is JSON: {error}");
            }
            let id = error.id().cloned();
            let answer = encode_error(id.as_ref(), &rpc, false);
            let expected = Message::Response(Response { id, outcome: Err(rpc) });
            assert_eq!(one(&answer), expected);
            // What a peer sent is quoted in bounds.
            assert!(answer.len() < 4096 + 2 * data.len(), "{} bytes about {}", answer.len(), data.len());
        }
    }
});

fn limits() -> DecodeLimits {
    let mut limits = DecodeLimits::default();
    (limits.depth, limits.batch) = (DEPTH, BATCH);
    limits
}

fn one(frame: &Bytes) -> Message {
    match Frame::decode(frame, limits()) {
        Frame::One(message) => message,
        other => panic!("{frame:?} is {other:?}"),
    }
}

fn holds(message: &Message) {
    let encoded = encode(message);
    assert!(!encoded.iter().any(|byte| matches!(byte, b'\n' | b'\r')), "a frame with a line break: {encoded:?}");
    let again = one(&encoded);
    assert_eq!(encode(&again), encoded);
    // Line breaks between the members are written as spaces; otherwise all is as it came.
    if !breaks(message) {
        assert_eq!(again, *message);
    }
    let (value, depth_before) = match message {
        Message::Request(Request { params, .. }) | Message::Notification(Notification { params, .. }) => {
            members(params);
            (params.raw(), 1)
        }
        Message::Response(Response { outcome, .. }) => (outcome.as_ref().ok().cloned(), 1),
    };
    if let Some(value) = value {
        assert!(value.is_object(), "{value}");
        // A number that no float holds, or half a character in a string, is JSON all the same.
        let Ok(value) = value.parse::<Value>() else { return };
        assert!(depth(&value) + depth_before <= DEPTH, "{value}");
    }
}

/// Whether there are line breaks anywhere in the message, as they came or shown escaped.
fn breaks(message: &Message) -> bool {
    let shown = format!("{message:?}");
    ["\n", "\r", "\\n", "\\r"].iter().any(|found| shown.contains(found))
}

/// The members that were read in passing are those that are there, whole and untouched.
fn members(params: &Params) {
    let Some(raw) = params.raw() else {
        assert!(params.name.is_none() && params.arguments.is_none() && params.cursor.is_none(), "{params:?}");
        return;
    };
    let again = Params::read(Some(&raw)).expect("what was read can be read again");
    assert_eq!(*params, again);
    let Ok(value) = raw.parse::<Value>() else { return };
    for (name, member) in [
        ("name", &params.name),
        ("uri", &params.uri),
        ("taskId", &params.task_id),
        ("arguments", &params.arguments),
        ("inputResponses", &params.input_responses),
        ("requestState", &params.request_state),
        ("cursor", &params.cursor),
        ("task", &params.task),
    ] {
        let member: Option<Value> = member.as_ref().map(|member| member.parse().expect("a member is JSON"));
        assert_eq!(member.as_ref(), value.get(name), "{name} of {raw}");
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn encode(message: &Message) -> Bytes {
    match message {
        Message::Request(Request { id, method, params }) => match params.raw() {
            Some(params) => encode_request(id, method.as_str(), &params).expect("raw JSON can be written"),
            // The encoder always writes parameters.
            None => {
                // A `Value` would round a number that no float holds.
                let id = RawJson::from_serialize(id).expect("an id can be written");
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{}}}"#, json!(method.as_str())).into()
            }
        },
        Message::Notification(Notification { method, params }) => {
            encode_notification(method.as_str(), params.raw().as_ref()).expect("raw JSON can be written")
        }
        Message::Response(Response { id: Some(id), outcome: Ok(result) }) => {
            encode_result(id, result).expect("raw JSON can be written")
        }
        Message::Response(Response { id, outcome: Err(error) }) => encode_error(id.as_ref(), error, false),
        Message::Response(response) => panic!("a result without an id: {response:?}"),
    }
}
