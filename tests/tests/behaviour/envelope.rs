//! The envelope of messages: ids, members, numbers, sizes; what is refused, and what is passed through untouched.
//!
//! Spec: 2026-07-28 basic/index, "Messages"

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_core::{HandlerError, NoArguments, RequestContext, Resource, Server, ServerBuilder, Tool, ToolReply};
use mcp_tests::{Client, Lane, Reply, lanes};
use mcp_wire::RawJson;
use serde_json::{Value, json};

lanes! {
    everywhere {
        an_id_is_echoed_as_the_integer_or_string_it_is,
        an_id_that_is_neither_is_refused_without_one,
        what_is_no_message_is_refused_with_its_id_where_that_can_be_read,
        what_is_not_json_is_a_parse_error,
        what_is_nested_too_deeply_is_refused,
        no_name_is_matched_by_folding_its_case,
        a_member_that_occurs_twice_is_refused,
        unknown_members_are_ignored,
        white_space_does_not_matter,
        a_schema_of_many_lines_is_listed_on_one,
        numbers_and_texts_pass_through_untouched,
        what_cannot_be_held_is_refused_and_not_altered,
        unknown_metadata_reaches_the_handler_untouched,
        long_messages_go_both_ways,
        notifications_are_never_answered_and_start_nothing,
    }
    legacy "modern clients have nothing to answer" {
        an_answer_that_nobody_awaits_is_ignored,
    }
    http "the shell of a pipe takes batches apart before the engine sees them; in memory there is no shell" {
        an_array_is_no_message,
    }
    stdio "the shell of a pipe takes batches apart before the engine sees them; in memory there is no shell" {
        an_array_is_no_message,
    }
}

fn echo() -> Tool {
    Tool::raw("echo", json!({ "type": "object" }), |arguments: RawJson, _context| async move {
        Ok::<_, HandlerError>(ToolReply::new(vec![]).with_structured(arguments))
    })
}

fn server() -> ServerBuilder {
    Server::builder("s", "1").tool(echo()).resource(Resource::text("test://a", "a", "x"))
}

/// A request as text, its id as written.
fn frame(client: &Client, id: &str, method: &str, params: Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{}}}"#, client.enveloped(params))
}

/// Field case 13: `7.0` is answered with id `7`, `1e2` with `100`; large integers are echoed digit for digit.
async fn an_id_is_echoed_as_the_integer_or_string_it_is(lane: Lane) {
    let client = lane.connect(server()).await;
    for (written, echoed) in [
        ("7", "7"),
        ("7.0", "7"),
        ("1e2", "100"),
        ("70e-1", "7"),
        ("0", "0"),
        ("-0", "0"),
        ("0.0", "0"),
        ("-3", "-3"),
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551616", "18446744073709551616"),
        ("1E19", "10000000000000000000"),
        (r#""""#, r#""""#),
        (r#""7""#, r#""7""#),
        (r#""\u0061""#, r#""a""#),
        (r#""\n\u2028\ud83d\ude00""#, "\"\\n\u{2028}\u{1f600}\""),
    ] {
        let reply = client.raw(frame(&client, written, "resources/list", json!({}))).await;
        assert!(reply.text.contains(&format!(r#""id":{echoed},"#)), "{written}: {}", reply.text);
        assert!(reply.response.get("result").is_some());
    }
}

fn refused_without_id(reply: &Reply, what: &str) {
    assert_eq!(reply.code_at(400), -32600, "{what}");
    assert!(reply.response.get("id").is_none_or(Value::is_null), "{what}: {}", reply.text);
}

/// Field case 13: other ids get an invalid-request error with no id or a null one, not silence.
async fn an_id_that_is_neither_is_refused_without_one(lane: Lane) {
    let client = lane.connect(server()).await;
    for id in ["7.5", "null", "true", "false", "{}", "[]", "[1]", "1e400", "1e-1", r#""\ud800""#] {
        let reply = client.raw(frame(&client, id, "resources/list", json!({}))).await;
        refused_without_id(&reply, id);
    }
}

async fn what_is_no_message_is_refused_with_its_id_where_that_can_be_read(lane: Lane) {
    let client = lane.connect(server()).await;
    for text in [
        r#"{"id":5,"method":"resources/list"}"#,
        r#"{"jsonrpc":"1.0","id":5,"method":"resources/list"}"#,
        r#"{"jsonrpc":2.0,"id":5,"method":"resources/list"}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":null}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"resources/list","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"resources/list","params":"x"}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"resources/list","params":7}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"resources/list","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":7}"#,
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":"1","message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":5}"#,
    ] {
        let reply = client.raw(text).await;
        assert_eq!(reply.code_at(400), -32600, "{text}");
        assert_eq!(reply.response["id"], 5, "{text}");
    }
    for text in ["{}", "7", "\"x\"", "null", "true", r#"{"jsonrpc":"2.0","result":{}}"#] {
        refused_without_id(&client.raw(text).await, text);
    }
}

async fn what_is_not_json_is_a_parse_error(lane: Lane) {
    let client = lane.connect(server()).await;
    let good = frame(&client, "1", "resources/list", json!({}));
    let mut bad: Vec<Vec<u8>> = ["", " ", "{", "nul", "{'a':1}", "{\"a\":1,}", "\u{feff}{}", "{} {}"]
        .into_iter()
        .map(|text| text.as_bytes().to_vec())
        .collect();
    if lane.is_stdio() {
        // A line without anything on it is no frame.
        bad.retain(|text| !text.trim_ascii().is_empty());
    }
    bad.push(good.as_bytes()[..good.len() - 1].to_vec());
    bad.push([good.as_bytes(), b"x"].concat());
    bad.push([&good.as_bytes()[..good.len() - 2], b"\"\xff\xfe\":1}}"].concat());
    for frame in bad {
        let shown = String::from_utf8_lossy(&frame).into_owned();
        let reply = client.raw(frame).await;
        assert_eq!(reply.code_at(400), -32700, "{shown:?}");
        assert!(reply.response.get("id").is_none_or(Value::is_null), "{shown:?}: {}", reply.text);
    }
    assert!(client.raw(good).await.response.get("result").is_some(), "and the connection goes on");
}

async fn what_is_nested_too_deeply_is_refused(lane: Lane) {
    let client = lane.connect(server()).await;
    for depth in [65, 1000, 200_000] {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        refused_without_id(&client.raw(text).await, "deep");
    }
    let mut fitting = json!(1);
    for _ in 0..50 {
        fitting = json!([fitting]);
    }
    let reply = client.call("echo", json!({ "deep": fitting })).await;
    assert_eq!(reply.result()["structuredContent"]["deep"], fitting);
}

/// Field case 37: no key is matched by folding its case.
async fn no_name_is_matched_by_folding_its_case(lane: Lane) {
    let client = lane.connect(server()).await;
    let params = client.enveloped(json!({}));
    for text in [
        format!(r#"{{"JSONRPC":"2.0","id":1,"method":"resources/list","params":{params}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"Method":"resources/list","params":{params}}}"#),
    ] {
        assert_eq!(client.raw(text.clone()).await.code(), -32600, "{text}");
    }
    assert_eq!(client.request("tools/call", json!({ "Name": "echo" })).await.code(), -32602);
    let reply = client.request("tools/call", json!({ "name": "echo", "Arguments": { "a": 1 } })).await;
    assert_eq!(reply.result()["structuredContent"], json!({}));
    // Beside the right member, one that differs in case is just unknown.
    let reply = client.request("tools/call", json!({ "name": "echo", "NAME": "other", "arguments": { "a": 1 } })).await;
    assert_eq!(reply.result()["structuredContent"], json!({ "a": 1 }));
}

async fn a_member_that_occurs_twice_is_refused(lane: Lane) {
    let client = lane.connect(server()).await;
    let params = client.enveloped(json!({ "name": "echo" }));
    let inner = params.to_string();
    let inner = inner.strip_suffix('}').unwrap();
    for (text, code) in [
        (format!(r#"{{"jsonrpc":"2.0","id":1,"id":1,"method":"tools/call","params":{params}}}"#), -32600),
        (
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{params}}}"#),
            -32600,
        ),
        (format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params},"params":{params}}}"#), -32600),
        (format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{inner},"name":"echo"}}}}"#), -32602),
        (
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{inner},"_meta":{{}},"_meta":{{}}}}}}"#),
            -32602,
        ),
    ] {
        let reply = client.raw(text.clone()).await;
        assert_eq!((reply.code(), reply.response["id"].clone()), (code, json!(1)), "{text}");
    }
}

async fn unknown_members_are_ignored(lane: Lane) {
    let client = lane.connect(server()).await;
    let params = client.enveloped(json!({ "unknown": [1], "more": null }));
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{params},"extra":{{"a":[]}}}}"#);
    assert!(client.raw(text).await.response.get("result").is_some());
}

async fn white_space_does_not_matter(lane: Lane) {
    let client = lane.connect(server()).await;
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": client.enveloped(json!({ "name": "echo", "arguments": { "a": [1, 2] } })) });
    let pretty = format!("\r\n\t {}\n\n", serde_json::to_string_pretty(&message).unwrap().replace('\n', "\r\n"));
    // A line cannot hold a line break.
    let pretty = if lane.is_stdio() { pretty.replace(['\r', '\n'], " ") } else { pretty };
    let reply = client.raw(pretty).await;
    assert_eq!(reply.result()["structuredContent"], json!({ "a": [1, 2] }), "and no line break is written");
}

async fn a_schema_of_many_lines_is_listed_on_one(lane: Lane) {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string", "description": "x\ny" } } });
    let pretty = serde_json::to_string_pretty(&schema).unwrap().replace('\n', "\r\n");
    let pretty = RawJson::from_bytes(pretty.into()).unwrap();
    let tool = Tool::raw("pretty", pretty.clone(), |_: RawJson, _context| async { Ok::<_, HandlerError>("x") });
    let client = lane.connect(server().tool(tool.output_schema(pretty))).await;
    let reply = client.request("tools/list", json!({})).await;
    let listed = &reply.result()["tools"][1];
    assert_eq!(listed["inputSchema"], schema);
    assert!(listed.get("outputSchema").is_none_or(|listed| *listed == schema), "{listed}");
}

/// Field case 37: a pass-through keeps integers digit for digit and unknown members untouched; text is not escaped.
async fn numbers_and_texts_pass_through_untouched(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut params = client.enveloped(json!({ "name": "echo" })).to_string();
    params.pop();
    for arguments in [
        r#"{"a":9007199254740993,"b":-9223372036854775808,"c":18446744073709551615}"#,
        r#"{"a":123456789012345678901234567890,"b":0.1000000000000000055511151231257827}"#,
        r#"{"a":0.1,"b":1.0,"c":-0.0,"d":1e2,"e":1E+2}"#,
        r#"{"a":"<a&b>'","b":"\u2028","c":"\ud83d\ude00","d":"\/","e":"ü"}"#,
        r#"{"z":1,"a":{"z":1,"a":2},"":null}"#,
        r#"{"a":1,"a":2,"A":3}"#,
    ] {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params},"arguments":{arguments}}}}}"#);
        let reply = client.raw(text).await;
        assert!(reply.text.contains(arguments), "{arguments} became {}", reply.text);
    }
}

/// Field case 37: the out-of-range number and the lone surrogate are either preserved raw or refused, never altered in
/// silence.
async fn what_cannot_be_held_is_refused_and_not_altered(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut params = client.enveloped(json!({ "name": "echo" })).to_string();
    params.pop();
    for arguments in [r#"{"a":1e400}"#, r#"{"a":-1e400}"#, r#"{"a":"\ud800"}"#, r#"{"\udc00":1}"#] {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params},"arguments":{arguments}}}}}"#);
        let reply = client.raw(text).await;
        assert_eq!(reply.code_at(200), -32700, "{arguments} became {}", reply.text);
        assert!(reply.error()["message"].as_str().unwrap().starts_with("params.arguments cannot be read: "));
    }
}

async fn unknown_metadata_reaches_the_handler_untouched(lane: Lane) {
    let tool = Tool::typed("meta", |_: NoArguments, context: RequestContext| async move {
        Ok::<_, HandlerError>(context.meta().map(|meta| meta.to_string()).unwrap_or_default())
    });
    let client = lane.connect(server().tool(tool)).await;
    let meta = json!({ "com.example/own": { "deep": [1, "x"] }, "progressToken": "p" });
    let reply = client.request("tools/call", json!({ "name": "meta", "_meta": meta })).await;
    let seen: Value = serde_json::from_str(reply.tool_text()).unwrap();
    for (key, value) in meta.as_object().unwrap() {
        assert_eq!(&seen[key], value);
    }
}

/// Field case 17: lines longer than a default buffer go both ways.
async fn long_messages_go_both_ways(lane: Lane) {
    let client = lane.connect(server()).await;
    for length in [65_535, 65_536, 65_537, 1 << 20, 5 << 20] {
        let text = "x".repeat(length);
        let reply = client.call("echo", json!({ "text": text })).await;
        assert_eq!(reply.result()["structuredContent"]["text"].as_str().map(str::len), Some(length));
    }
}

async fn notifications_are_never_answered_and_start_nothing(lane: Lane) {
    let ran = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&ran);
    let tool = Tool::typed("counts", move |_: NoArguments, _context: RequestContext| {
        seen.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, HandlerError>("x") }
    });
    let client = lane.connect(server().tool(tool)).await;
    for (method, params) in [
        ("tools/call", json!({ "name": "counts" })),
        ("initialize", json!({})),
        ("no/such", json!({})),
        ("notifications/unknown", json!({})),
        ("notifications/progress", json!({ "progressToken": 1, "progress": 1 })),
        ("notifications/roots/list_changed", json!({})),
        ("notifications/cancelled", json!({ "requestId": { "odd": true } })),
        ("notifications/cancelled", json!({})),
        ("notifications/tools/list_changed", json!({})),
    ] {
        client.notify(method, client.enveloped(params)).await;
    }
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    assert!(!client.call("counts", json!({})).await.is_tool_error());
}

async fn an_answer_that_nobody_awaits_is_ignored(lane: Lane) {
    let client = lane.connect(server()).await;
    for id in [json!(1), json!(99), json!("1"), json!("")] {
        client.answer(&json!({ "id": id }), json!({ "action": "accept" })).await;
        client.answer_error(&json!({ "id": id }), -1, "no").await;
    }
    assert!(client.request("resources/list", json!({})).await.response.get("result").is_some());
}

/// Checklist 36: batches work in R2 and are -32600 elsewhere, and `initialize` inside a batch is refused. (Here: all
/// revisions but that one.)
async fn an_array_is_no_message(lane: Lane) {
    let client = lane.connect(server()).await;
    let one = frame(&client, "1", "resources/list", json!({}));
    for array in ["[]".to_owned(), format!("[{one}]"), format!("[{one},{one}]"), "[1]".to_owned()] {
        refused_without_id(&client.raw(array.clone()).await, &array);
    }
}
