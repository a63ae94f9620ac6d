//! Frames that are taken apart and put together, and those that are refused.

use proptest::prelude::*;

use super::*;
use crate::encode::{encode_error, encode_request, encode_result};

fn decode(text: &str) -> Frame {
    Frame::decode(&Bytes::from(text.to_owned()), DecodeLimits::default())
}

fn refused(text: &str) -> (i64, Option<RequestId>, String) {
    match decode(text) {
        Frame::Malformed(error) => (error.to_rpc().code.0, error.id().cloned(), error.to_string()),
        other => panic!("{text} was taken as {other:?}"),
    }
}

#[test]
fn parameters_are_read_with_their_message_and_found_whole_in_it() {
    let frame = r#" {"params" : {"name":"x","_meta":{"progressToken":1}} ,"id":1,"jsonrpc":"2.0","method":"m"} "#;
    let Frame::One(Message::Request(request)) = decode(frame) else { panic!("no request") };
    assert_eq!(request.params.name.as_ref().unwrap().as_str(), "\"x\"");
    assert_eq!(request.params.keys.progress_token.as_ref().unwrap().as_str(), "1");
    assert_eq!(request.params.raw().unwrap().as_str(), r#"{"name":"x","_meta":{"progressToken":1}}"#);
    let batch = format!(r#"[{{"jsonrpc":"2.0","method":"n","p\u0061rams":{{"uri":"u"}}}},{frame}]"#);
    let Frame::Batch(messages) = decode(&batch) else { panic!("no batch") };
    let Ok(Message::Notification(first)) = &messages[0] else { panic!("no notification") };
    assert_eq!(first.params.raw().unwrap().as_str(), r#"{"uri":"u"}"#);
    assert_eq!(messages[1].as_ref().unwrap(), &Message::Request(request));
}

#[test]
fn parameters_that_readers_could_see_differently_are_the_fault_of_their_request() {
    for params in [r#"{"name":1,"name":1}"#, r#"{"_meta":[]}"#, r#"{"_meta":{"traceparent":1,"traceparent":2}}"#] {
        let (code, id, text) = refused(&format!(r#"{{"params":{params},"jsonrpc":"2.0","method":"m","id":7}}"#));
        assert_eq!((code, id), (-32602, Some(RequestId::from(7))), "{params}");
        assert!(text.starts_with("params: "), "{text}");
    }
    // What is wrong with the message itself counts first.
    assert_eq!(refused(r#"{"params":{"_meta":[]},"method":"m","id":7}"#).0, -32600);
    assert_eq!(refused(r#"{"params":{"_meta":[]},"method":"m","id":7"#).0, -32700);
}

#[test]
fn the_three_kinds_of_messages_are_told_apart() {
    let Frame::One(Message::Request(request)) =
        decode(r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"x"}}"#)
    else {
        panic!("not a request")
    };
    assert_eq!((request.id, request.method), (RequestId::from(0), Method::ToolsCall));
    assert_eq!(request.params.raw().unwrap().as_str(), r#"{"name":"x"}"#);
    for params in ["", r#","params":null"#, r#","params":{}"#] {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/initialized"{params}}}"#);
        assert!(matches!(decode(&text), Frame::One(Message::Notification(_))), "{text}");
    }
    for outcome in [r#""result":{}"#, r#""error":{"code":-1,"message":"no"}"#] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":"a",{outcome},"extra":1}}"#);
        assert!(matches!(decode(&text), Frame::One(Message::Response(_))), "{text}");
    }
    assert!(matches!(
        decode(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#),
        Frame::One(Message::Response(Response { id: None, .. }))
    ));
}

#[test]
fn text_that_is_not_json_is_a_parse_error() {
    for text in ["", "   ", "{", "nonsense", r#"{"jsonrpc":"2.0",}"#, "{}{}", "[", "\u{feff}{}"] {
        assert_eq!(refused(text).0, -32700, "{text}");
    }
    let broken = Frame::decode(&Bytes::from_static(b"{\"a\":\"\xff\"}"), DecodeLimits::default());
    assert!(matches!(broken, Frame::Malformed(DecodeError::NotJson(_))));
}

#[test]
fn json_that_is_no_message_is_an_invalid_request_and_keeps_its_id() {
    let id = Some(RequestId::from(3));
    for (text, expected) in [
        ("7", None),
        ("\"x\"", None),
        ("{}", None),
        (r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, id.clone()),
        (r#"{"id":3,"method":"ping"}"#, id.clone()),
        (r#"{"jsonrpc":"2.0","id":3}"#, id.clone()),
        (r#"{"jsonrpc":"2.0","id":3,"method":1}"#, id.clone()),
        (r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":[1]}"#, id.clone()),
        (r#"{"jsonrpc":"2.0","id":3,"method":"ping","result":{}}"#, id.clone()),
        (r#"{"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":""}}"#, id.clone()),
        (r#"{"jsonrpc":"2.0","id":3,"result":[]}"#, id.clone()),
        (r#"{"jsonrpc":"2.0","id":3,"error":"no"}"#, id.clone()),
        (r#"{"jsonrpc":"2.0","id":3,"method":"a","method":"b"}"#, id.clone()),
        (r#"{"jsonrpc":"2.0","id":3,"id":4,"method":"a"}"#, id),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":7.5,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None),
        ("[]", None),
    ] {
        let (code, id, reason) = refused(text);
        assert_eq!((code, id), (-32600, expected), "{text}");
        assert!(!reason.is_empty());
    }
}

#[test]
fn nesting_beyond_the_limit_is_refused_before_decoding() {
    let nested = |levels: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{}{}}}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    assert!(matches!(decode(&nested(62)), Frame::One(_)));
    assert_eq!(refused(&nested(63)).0, -32600);
    assert_eq!(refused(&nested(500_000)).0, -32600);
}

#[test]
fn a_bad_element_of_a_batch_spoils_only_itself() {
    let Frame::Batch(elements) = decode(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},1,{"jsonrpc":"2.0","id":2}]"#)
    else {
        panic!("not a batch")
    };
    assert!(elements[0].is_ok() && elements[1].is_err() && elements[2].is_err());
    assert_eq!(elements[2].as_ref().unwrap_err().id(), Some(&RequestId::from(2)));
    let many = format!("[{}]", vec!["1"; 101].join(","));
    assert_eq!(refused(&many).0, -32600);
}

#[test]
fn a_frame_never_holds_a_raw_line_break() {
    let pretty: RawJson = serde_json::from_str("{\n  \"a\": \"x\\ny\"\r\n}").unwrap();
    let frame = encode_result(&RequestId::from(1), &pretty).unwrap();
    assert!(!frame.contains(&b'\n') && !frame.contains(&b'\r'));
    let value: serde_json::Value = serde_json::from_slice(&frame).unwrap();
    assert_eq!(value["result"]["a"], "x\ny");
}

#[test]
fn an_error_without_id_leaves_it_out_or_says_null() {
    let error = RpcError::invalid_params("no");
    assert_eq!(encode_error(None, &error, false), r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"no"}}"#);
    assert_eq!(
        encode_error(None, &error, true),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no"}}"#
    );
    assert_eq!(
        encode_error(Some(&RequestId::from("")), &error.with_data(serde_json::json!({"uri": "x"})), true),
        r#"{"jsonrpc":"2.0","id":"","error":{"code":-32602,"message":"no","data":{"uri":"x"}}}"#
    );
}

proptest! {
    #[test]
    fn what_is_encoded_decodes_to_the_same(id in any::<i64>(), name in "\\PC{0,20}", text in "\\PC{0,40}") {
        let id = RequestId::from(id);
        let params = serde_json::json!({ "text": text });
        let frame = encode_request(&id, &name, &params).unwrap();
        let Frame::One(Message::Request(request)) = Frame::decode(&frame, DecodeLimits::default()) else {
            return Err(TestCaseError::fail("not a request"));
        };
        prop_assert_eq!(request.id, id);
        prop_assert_eq!(request.method.as_str(), name);
        prop_assert_eq!(request.params.raw().unwrap().parse::<serde_json::Value>().unwrap(), params);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
        let _ = Frame::decode(&Bytes::from(bytes), DecodeLimits::default());
    }

    #[test]
    fn no_json_makes_it_panic(text in "[\\[\\]{}:,\"a-z0-9.jsonrpc \\\\]{0,64}") {
        let _ = Frame::decode(&Bytes::from(text), DecodeLimits::default());
    }
}
