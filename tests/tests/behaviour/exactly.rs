//! What is exact or wrong: digits, characters, lengths, and the moment at which a window ends.
//!
//! Spec: 2026-07-28 basic/index, "Messages"; RFC 8259, "Numbers" and "Strings"; tasks extension draft, "Task Creation"

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_core::{
    Form, HandlerError, ListRoots, NoArguments, Prompt, PromptReply, RequestContext, Resource, Server, ServerBuilder, TaskOffer, Tool,
    ToolReply,
};
use mcp_tasks::Tasks;
use mcp_tests::{Client, Lane, lanes};
use mcp_wire::RawJson;
use mcp_wire::types::LoggingLevel;
use serde_json::{Value, json};

use crate::tasks::{connected, id_of, outcome};

lanes! {
    everywhere {
        messages_of_exactly_a_buffers_length_go_both_ways,
        a_long_response_may_follow_a_notification,
        digits_survive_in_every_revision,
        digits_survive_wherever_a_peer_has_its_own_values,
        digits_survive_an_answer_and_a_note,
        characters_that_are_none_are_refused_wherever_they_stand,
        arguments_that_nothing_holds_are_a_parse_error_without_a_schema_too,
        notifications_need_no_parameters,
    }
    modern "core tasks have no window" {
        a_call_that_ends_with_its_window_is_answered_once,
    }
}

/// Numbers that a float cannot hold, and texts that some writers escape.
const VALUES: &str = r#"{"a":9007199254740993,"b":-9223372036854775808,"c":18446744073709551615,"d":123456789012345678901234567890,"e":0.1,"f":1.0,"g":0.1000000000000000055511151231257827,"h":"<a&b>\u2028","i":"\ud83d\ude00","k":{"Z":1,"z":2,"":[null]}}"#;

fn echo() -> Tool {
    Tool::raw("echo", json!({ "type": "object" }), |arguments: RawJson, _context| async move {
        Ok::<_, HandlerError>(ToolReply::new(vec![]).with_structured(arguments))
    })
}

/// Says something first, so that the response comes in a stream where there are streams.
fn lengthy() -> Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Length {
        bytes: usize,
    }
    Tool::typed("lengthy", |length: Length, context: RequestContext| async move {
        context.progress(1.0, None, None);
        Ok::<_, HandlerError>("x".repeat(length.bytes))
    })
}

fn server() -> ServerBuilder {
    Server::builder("s", "1").tool(echo()).tool(lengthy()).resource(Resource::text("test://a", "a", "x"))
}

/// A request for a tool, its arguments as written.
fn call(client: &Client, tool: &str, arguments: &str, meta: &str) -> String {
    let mut params = client.enveloped(json!({ "name": tool, "_meta": {} }));
    let mut own: Value = serde_json::from_str(meta).unwrap();
    params["_meta"].as_object_mut().unwrap().append(own.as_object_mut().unwrap());
    let params = params.to_string();
    let params = params.strip_suffix('}').unwrap();
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params},"arguments":{arguments}}}}}"#)
}

/// Lengths around those of buffers, and of megabytes.
const LENGTHS: [usize; 14] =
    [4_095, 4_096, 4_097, 8_191, 8_192, 8_193, 16_384, 65_534, 65_535, 65_536, 65_537, 131_072, 1 << 20, 5 << 20];

/// Field case 17: requests and responses of exactly these lengths, in bytes of the whole message.
async fn messages_of_exactly_a_buffers_length_go_both_ways(lane: Lane) {
    let client = lane.connect(server()).await;
    let of = |length: usize| call(&client, "echo", &format!(r#"{{"text":"{}"}}"#, "x".repeat(length)), "{}");
    let (around, empty) = (of(0).len(), client.raw(of(0)).await.text.len());
    for length in LENGTHS {
        let request = of(length - around);
        assert_eq!(request.len(), length);
        let reply = client.raw(request).await;
        let text = &reply.result()["structuredContent"]["text"];
        assert_eq!(text.as_str().map(str::len), Some(length - around), "a request of {length} bytes");
        let reply = client.raw(of(length - empty)).await;
        assert_eq!(reply.text.len(), length, "a response of {length} bytes");
    }
}

/// Field case 17, for what is inside one event of a stream.
async fn a_long_response_may_follow_a_notification(lane: Lane) {
    let client = lane.connect(server()).await;
    let of = |bytes: usize| json!({ "name": "lengthy", "arguments": { "bytes": bytes }, "_meta": { "progressToken": 1 } });
    let empty = client.request("tools/call", of(0)).await.text.len();
    for length in LENGTHS {
        // Ids that are counted grow.
        let call = client.start_as(json!(1), "tools/call", of(length - empty));
        let reply = call.reply().await;
        assert_eq!(reply.methods_before(), ["notifications/progress"]);
        assert_eq!(reply.text.len(), length);
    }
}

/// Field case 37: what comes down to an older revision, or goes into a text block, keeps its digits.
async fn digits_survive_in_every_revision(lane: Lane) {
    let tool = Tool::raw("both", json!({ "type": "object" }), |arguments: RawJson, _context| async move {
        let meta = serde_json::from_str(r#"{"own":18446744073709551615}"#)?;
        Ok::<_, HandlerError>(ToolReply::text("x").with_structured(arguments).with_meta(meta))
    });
    let server = server().tool(tool.output_schema(json!({ "type": "object" }))).build().unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).connect().await;
        let reply = client.raw(call(&client, "both", VALUES, "{}")).await;
        if lane.revision().rules().structured {
            assert!(reply.text.contains(VALUES), "{lane:?}: {}", reply.text);
        }
        assert!(reply.text.contains(r#""own":18446744073709551615"#), "{lane:?}: {}", reply.text);
        let reply = client.raw(call(&client, "echo", VALUES, "{}")).await;
        let said = match lane.revision().rules().structured {
            true => reply.text.clone(),
            // What is lost is told as text.
            false => reply.tool_text().to_owned(),
        };
        assert!(said.contains(VALUES), "{lane:?}: {said}");
    }
}

/// Field case 37: tokens, metadata and logs are the peer's own values too.
async fn digits_survive_wherever_a_peer_has_its_own_values(lane: Lane) {
    let tool = Tool::typed("tells", |_: NoArguments, context: RequestContext| async move {
        let meta = context.meta().map(|meta| meta.to_string()).unwrap_or_default();
        context.progress(1.0, None, None);
        context.log(LoggingLevel::Error, serde_json::from_str::<Value>("[18446744073709551615,-9223372036854775808]")?);
        Ok::<_, HandlerError>(meta)
    });
    let client = lane.connect(server().tool(tool)).await;
    client.set_log_level("error").await;
    for token in ["0", "-1", "9007199254740993", "-9223372036854775808", "9223372036854775807", r#""""#, r#""7""#] {
        let meta = format!(r#"{{"progressToken":{token},"com.example/own":[9007199254740993,18446744073709551615]}}"#);
        let reply = client.raw(call(&client, "tells", "{}", &meta)).await;
        let told: Vec<_> = reply.before.iter().map(|notice| &notice["params"]).collect();
        assert_eq!(told[0]["progressToken"].to_string(), token);
        assert_eq!(told[1]["data"].to_string(), "[18446744073709551615,-9223372036854775808]");
        assert!(reply.tool_text().contains("[9007199254740993,18446744073709551615]"), "{}", reply.text);
    }
}

/// Field case 37: what travels with the client while it answers comes back as it was.
async fn digits_survive_an_answer_and_a_note(lane: Lane) {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Key {
        key: i64,
    }
    let tool = Tool::raw("asks", json!({ "type": "object" }), |arguments: RawJson, context: RequestContext| async move {
        let note = context.note::<u64>();
        context.keep_note(&u64::MAX)?;
        let roots = context.ask("roots", ListRoots)?.len();
        let key = context.ask("key", Form::<Key>::new("Which?"))?.accepted().map(|answer| answer.key);
        Ok::<_, HandlerError>(format!("{roots} {note:?} {key:?} {arguments}"))
    });
    let client = lane.connect(server().tool(tool)).await;
    let arguments: Value = json!({ "id": 9_007_199_254_740_993_i64, "most": u64::MAX });
    let interview = client
        .interview("asks", arguments.clone(), |question| match question.method.as_str() {
            "roots/list" => json!({ "roots": [] }),
            _ => json!({ "action": "accept", "content": { "key": 9_007_199_254_740_993_i64 } }),
        })
        .await;
    let expected = format!("0 Some({}) Some(9007199254740993) {arguments}", u64::MAX);
    assert_eq!(interview.reply.tool_text(), expected);
}

/// Field case 37: a lone surrogate is refused wherever a text means something, and never altered in silence.
async fn characters_that_are_none_are_refused_wherever_they_stand(lane: Lane) {
    let client = lane.connect(server()).await;
    let good = client.enveloped(json!({})).to_string();
    let good = good.strip_suffix('}').unwrap();
    let params = |own: &str| match good {
        "{" => format!("{{{own}}}"),
        _ => format!("{good},{own}}}"),
    };
    // Modern headers cannot say it either; that is seen first.
    let named = if lane.is_http() && lane.is_modern() { -32020 } else { -32700 };
    for (method, own, code) in [
        ("tools/call", r#""name":"\ud800","arguments":{}"#, named),
        ("tools/call", r#""name":"\udc00\ud800""#, named),
        ("resources/read", r#""uri":"test://\udfff""#, named),
        ("resources/read", r#""uri":"test://a\ud83d""#, named),
        // No cursor of ours, whatever it is.
        ("tools/list", r#""cursor":"\ud800""#, -32602),
        // Not even an envelope.
        (r"tools/\ud800", r#""x":1"#, -32600),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{}}}"#, params(own));
        let seen = if lane.is_http() && lane.is_modern() {
            let answer = client.http(http::Method::POST, text.clone(), |_| {}).await;
            assert_eq!(answer.status, if code == -32602 { 200 } else { 400 }, "{text}");
            answer.code()
        } else {
            client.raw(text.clone()).await.code()
        };
        assert_eq!(seen, code, "{text}");
    }
    assert!(client.request("tools/list", json!({})).await.response.get("result").is_some(), "and it goes on");
}

/// Field case 37: the same in arguments that no schema is asked about, and in those of a prompt.
async fn arguments_that_nothing_holds_are_a_parse_error_without_a_schema_too(lane: Lane) {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Given {
        number: f64,
        text: Option<String>,
    }
    let tool = Tool::typed("unchecked", |given: Given, _| async move {
        Ok::<_, HandlerError>(format!("{} {}", given.number, given.text.unwrap_or_default()))
    });
    let prompt = Prompt::new("prompt", |_, _| async { Ok(PromptReply::user("x")) }).optional("text", "a text");
    let client = lane.connect(server().tool(tool.without_argument_check()).prompt(prompt)).await;
    for (method, name, arguments, code) in [
        ("tools/call", "unchecked", r#"{"number":1e400}"#, Some(-32700)),
        ("tools/call", "unchecked", r#"{"number":-1e309}"#, Some(-32700)),
        ("tools/call", "unchecked", r#"{"number":1,"text":"\ud800"}"#, Some(-32700)),
        ("tools/call", "unchecked", r#"{"number":1,"\ud800":2}"#, Some(-32700)),
        // What the model can repair is told to the model.
        ("tools/call", "unchecked", r#"{"number":"1"}"#, None),
        ("prompts/get", "prompt", r#"{"text":"\udfff"}"#, Some(-32700)),
        ("prompts/get", "prompt", r#"{"\udfff":"x"}"#, Some(-32700)),
        ("prompts/get", "prompt", r#"{"text":1e400}"#, Some(-32700)),
        ("prompts/get", "prompt", r#"{"text":1}"#, Some(-32602)),
    ] {
        let mut params = client.enveloped(json!({ "name": name })).to_string();
        params.pop();
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params},"arguments":{arguments}}}}}"#);
        let reply = client.raw(text).await;
        match code {
            Some(code) => assert_eq!(reply.code(), code, "{arguments}: {}", reply.text),
            None => assert!(reply.is_tool_error(), "{arguments}: {}", reply.text),
        }
    }
}

/// Field case 29: notifications without `params`, with null ones and with empty ones are all accepted.
async fn notifications_need_no_parameters(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut shapes = vec![String::new(), r#","params":null"#.to_owned(), r#","params":{}"#.to_owned()];
    shapes.push(r#","params":{"_meta":{}}"#.to_owned());
    shapes.push(format!(r#","params":{}"#, client.enveloped(json!({}))));
    for method in [
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/roots/list_changed",
        "notifications/unknown",
        "unknown",
    ] {
        for shape in &shapes {
            let notice = format!(r#"{{"jsonrpc":"2.0","method":"{method}"{shape}}}"#);
            client.start_raw(notice).silence().await;
        }
    }
    assert!(client.request("tools/list", json!({})).await.response.get("result").is_some());
}

/// Checklist 31: a tool finishing at the exact end of the inline window yields one answer, never two and never none.
async fn a_call_that_ends_with_its_window_is_answered_once(lane: Lane) {
    const WINDOW: u64 = 1000;
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Time {
        milliseconds: u64,
    }
    let tool = Tool::typed("ends", move |time: Time, _: RequestContext| {
        let count = Arc::clone(&count);
        async move {
            tokio::time::sleep(Duration::from_millis(time.milliseconds)).await;
            count.fetch_add(1, Ordering::SeqCst);
            Ok::<_, HandlerError>("done")
        }
    });
    let tasks = Tasks::new();
    let tool = tool.task(TaskOffer::optional().after(Duration::from_millis(WINDOW)));
    let client = connected(lane, Server::builder("s", "1").extension(tasks.clone()).tool(tool)).await;
    let times: Vec<u64> = (WINDOW - 2..=WINDOW + 2).flat_map(|time| [time; 10]).collect();
    let calls: Vec<_> =
        times.iter().map(|time| (*time, client.start_tool("ends", json!({ "milliseconds": time })))).collect();
    for (time, call) in calls {
        // That nothing follows is checked of every reply.
        let reply = call.reply().await;
        let result = reply.result();
        match result["resultType"].as_str().unwrap() {
            "complete" => assert!(time <= WINDOW && reply.tool_text() == "done", "{time}"),
            "task" => {
                assert!(time >= WINDOW, "{time}");
                tokio::time::sleep(Duration::from_millis(10)).await;
                let (status, result) = outcome(&client, id_of(result)).await;
                assert_eq!((status.as_str(), &result["content"][0]["text"]), ("completed", &json!("done")), "{time}");
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!((runs.load(Ordering::SeqCst), tasks.live()), (times.len(), 0));
}
