//! Tools: what is checked before and after a handler, and what becomes of its failures.
//!
//! Spec: 2026-07-28 server/tools, "Error Handling"; 2025-11-25 server/tools

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_core::{HandlerError, NoArguments, RequestContext, ResultExt, Server, Structured, Tool, ToolReply};
use mcp_tests::{Lane, lanes};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::Instant;

lanes! {
    everywhere {
        a_call_returns_what_the_handler_returns,
        an_unknown_tool_is_invalid_params,
        arguments_that_are_no_object_are_invalid_params,
        absent_arguments_are_an_empty_object,
        arguments_against_the_schema_fail_the_tool_and_name_the_place,
        a_result_against_its_schema_is_no_success,
        promised_structured_content_has_to_come,
        a_failed_result_need_not_have_the_shape_of_a_success,
        a_panic_is_an_internal_error_of_that_call_alone,
        a_plain_tool_and_a_blocking_one_panic_as_any_other,
        an_error_passed_on_tells_nothing_of_itself,
        an_error_told_on_purpose_reaches_the_model,
        an_internal_error_tells_nothing_of_itself,
        a_protocol_error_made_on_purpose_is_sent_as_it_is,
        a_tool_that_takes_too_long_is_ended,
        the_timeout_counts_attempts_and_not_the_client,
        calls_beyond_the_bound_of_a_tool_wait_their_turn,
        waiting_for_a_turn_counts_towards_the_timeout,
        a_blocking_tool_runs_beside_others,
        the_context_tells_who_asks_and_how,
        tools_come_and_go_while_clients_are_connected,
    }
    legacy "only older revisions lack anything" {
        structured_results_come_down_to_each_revision,
        tool_definitions_come_down_to_each_revision,
    }
    modern "any JSON value as structured content came with the modern era" {
        structured_content_may_be_any_json_value,
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Sum {
    sum: i64,
}

fn adder() -> Tool {
    Tool::typed("add", |args: Add, _context: RequestContext| async move {
        Ok::<_, HandlerError>(Structured(Sum { sum: args.a + args.b }))
    })
}

/// A tool without arguments that ends as told.
fn ends(name: &str, end: fn() -> Result<ToolReply, HandlerError>) -> Tool {
    Tool::typed(name, move |_: NoArguments, _context: RequestContext| async move { end() })
}

async fn a_call_returns_what_the_handler_returns(lane: Lane) {
    let client = lane.connect(Server::builder("s", "1").tool(adder())).await;
    let reply = client.call("add", json!({ "a": 2, "b": 3 })).await;
    assert_eq!(reply.result()["structuredContent"], json!({ "sum": 5 }));
    assert_eq!(reply.result()["content"], json!([{ "type": "text", "text": "{\"sum\":5}" }]));
    assert!(!reply.is_tool_error());
    assert!(reply.has_status(200) && reply.before.is_empty());
}

async fn an_unknown_tool_is_invalid_params(lane: Lane) {
    let client = lane.connect(Server::builder("s", "1").tool(adder())).await;
    for params in
        [json!({ "name": "Add" }), json!({ "name": "" }), json!({ "name": "add " }), json!({}), json!({ "name": 7 })]
    {
        let reply = client.request("tools/call", params.clone()).await;
        assert_eq!(reply.code(), -32602, "{params}");
    }
    let long = "x".repeat(100_000);
    let reply = client.request("tools/call", json!({ "name": long })).await;
    assert_eq!(reply.code(), -32602);
    assert!(reply.text.len() < 1000, "a peer's text is not repeated without bound");
}

async fn arguments_that_are_no_object_are_invalid_params(lane: Lane) {
    let client = lane.connect(Server::builder("s", "1").tool(adder())).await;
    for arguments in [json!([1, 2]), json!("x"), json!(7), json!(true)] {
        assert_eq!(client.call("add", arguments.clone()).await.code(), -32602, "{arguments}");
    }
}

async fn absent_arguments_are_an_empty_object(lane: Lane) {
    let server = Server::builder("s", "1").tool(ends("hello", || Ok(ToolReply::text("hi")))).tool(adder());
    let client = lane.connect(server).await;
    for params in [json!({ "name": "hello" }), json!({ "name": "hello", "arguments": null })] {
        assert_eq!(client.request("tools/call", params).await.tool_text(), "hi");
    }
    let reply = client.request("tools/call", json!({ "name": "add" })).await;
    assert!(reply.is_tool_error(), "what is required is missing: {}", reply.text);
}

async fn arguments_against_the_schema_fail_the_tool_and_name_the_place(lane: Lane) {
    let ran = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&ran);
    let schema = json!({
        "type": "object",
        "properties": {
            "list": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } } } },
        },
        "required": ["list"],
        "additionalProperties": false,
    });
    let tool = Tool::raw("strict", schema, move |_, _context| {
        seen.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, HandlerError>("ran") }
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    for (arguments, place) in [
        (json!({ "list": [{ "n": 1 }, { "n": "x" }] }), "/list/1/n"),
        (json!({}), "list"),
        (json!({ "list": [], "more": 1 }), "more"),
    ] {
        let reply = client.call("strict", arguments).await;
        assert!(reply.is_tool_error());
        assert!(reply.tool_text().contains(place), "{place} is not named: {}", reply.text);
    }
    assert_eq!(ran.load(Ordering::Relaxed), 0, "the handler saw arguments that do not fit");
    assert_eq!(client.call("strict", json!({ "list": [{}] })).await.tool_text(), "ran");
}

async fn a_result_against_its_schema_is_no_success(lane: Lane) {
    let tool = ends("wrong", || Ok(ToolReply::text("5").with_structured(json!({ "sum": "five" }))));
    let tool = tool.output_schema(json!({ "type": "object", "properties": { "sum": { "type": "integer" } } }));
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let reply = client.call("wrong", json!({})).await;
    assert!(reply.is_tool_error() && reply.tool_text().contains("/sum"), "{}", reply.text);
    assert!(reply.result().get("structuredContent").is_none(), "what does not fit is not sent: {}", reply.text);
}

async fn promised_structured_content_has_to_come(lane: Lane) {
    let tool = ends("forgets", || Ok(ToolReply::text("5"))).output_schema(json!({ "type": "object" }));
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    assert!(client.call("forgets", json!({})).await.is_tool_error());
}

async fn a_failed_result_need_not_have_the_shape_of_a_success(lane: Lane) {
    let tool = ends("fails", || Ok(ToolReply::error("no"))).output_schema(json!({ "type": "object" }));
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let reply = client.call("fails", json!({})).await;
    assert!(reply.is_tool_error());
    assert_eq!(reply.tool_text(), "no");
}

async fn a_panic_is_an_internal_error_of_that_call_alone(lane: Lane) {
    let panicking = Tool::typed("panics", |_: NoArguments, context: RequestContext| async move {
        context.progress(1.0, None, None);
        tokio::task::yield_now().await;
        assert!(context.is_cancelled(), "the secret of the handler");
        Ok::<_, HandlerError>("never")
    });
    let client = lane.connect(Server::builder("s", "1").tool(panicking).tool(adder())).await;
    let params = json!({ "name": "panics", "_meta": { "progressToken": "t" } });
    let mut beside = client.start_tool("add", json!({ "a": 1, "b": 1 }));
    let reply = client.request("tools/call", params).await;
    assert_eq!((reply.code(), reply.message()), (-32603, "internal error"));
    assert_eq!(reply.methods_before(), ["notifications/progress"], "what came before the panic is kept");
    assert!(!reply.text.contains("secret"), "{}", reply.text);
    assert!(beside.next().await.is_some(), "a call beside it goes on");
    assert_eq!(client.call("add", json!({ "a": 2, "b": 3 })).await.result()["structuredContent"]["sum"], 5);
}

async fn a_plain_tool_and_a_blocking_one_panic_as_any_other(lane: Lane) {
    fn fail(_: NoArguments) -> String {
        panic!("the secret of the handler")
    }
    let server = Server::builder("s", "1")
        .tool(Tool::plain("plain", fail))
        .tool(Tool::blocking("blocking", |arguments, _context| fail(arguments)))
        .tool(adder());
    let client = lane.connect(server).await;
    for tool in ["plain", "blocking"] {
        let reply = client.call(tool, json!({})).await;
        assert_eq!((reply.code(), reply.message()), (-32603, "internal error"), "{tool}");
        assert!(!reply.text.contains("secret"));
    }
    assert!(!client.call("add", json!({ "a": 1, "b": 2 })).await.is_tool_error());
}

#[derive(Debug)]
struct Secret;

impl std::fmt::Display for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("password 1234")
    }
}

impl std::error::Error for Secret {}

async fn an_error_passed_on_tells_nothing_of_itself(lane: Lane) {
    let server = Server::builder("s", "1").tool(ends("fails", || {
        Err(Secret)?;
        Ok(ToolReply::text("never"))
    }));
    let client = lane.connect(server).await;
    let reply = client.call("fails", json!({})).await;
    assert!(reply.is_tool_error());
    assert_eq!(reply.tool_text(), "the tool failed");
    assert!(!reply.text.contains("1234") && !reply.text.contains("Secret"), "{}", reply.text);
}

async fn an_error_told_on_purpose_reaches_the_model(lane: Lane) {
    let server = Server::builder("s", "1")
        .tool(ends("shows", || {
            Err(Secret).or_tell()?;
            Ok(ToolReply::text("never"))
        }))
        .tool(ends("says", || Err(HandlerError::tell("try a smaller number"))));
    let client = lane.connect(server).await;
    for (tool, text) in [("shows", "password 1234"), ("says", "try a smaller number")] {
        let reply = client.call(tool, json!({})).await;
        assert!(reply.is_tool_error());
        assert_eq!(reply.tool_text(), text);
    }
}

async fn an_internal_error_tells_nothing_of_itself(lane: Lane) {
    let server = Server::builder("s", "1")
        .tool(ends("one", || Err(HandlerError::internal(Secret))))
        .tool(ends("other", || Err(Secret).or_internal()));
    let client = lane.connect(server).await;
    for tool in ["one", "other"] {
        let reply = client.call(tool, json!({})).await;
        assert_eq!(*reply.error(), json!({ "code": -32603, "message": "internal error" }));
    }
}

async fn a_protocol_error_made_on_purpose_is_sent_as_it_is(lane: Lane) {
    let server = Server::builder("s", "1").tool(ends("refuses", || {
        let error = mcp_wire::RpcError::new(mcp_wire::ErrorCode(42), "not on a Sunday").with_data(json!({ "day": 7 }));
        Err(HandlerError::rpc(error))
    }));
    let client = lane.connect(server).await;
    let reply = client.call("refuses", json!({})).await;
    assert_eq!(*reply.error(), json!({ "code": 42, "message": "not on a Sunday", "data": { "day": 7 } }));
    assert!(reply.has_status(200));
}

/// A tool that never ends by itself.
fn endless(name: &str) -> Tool {
    Tool::typed(name, |_: NoArguments, _context: RequestContext| async move {
        std::future::pending::<()>().await;
        Ok::<_, HandlerError>("never")
    })
}

async fn a_tool_that_takes_too_long_is_ended(lane: Lane) {
    let server = Server::builder("s", "1")
        .tool(endless("default"))
        .tool(endless("short").timeout(Duration::from_millis(1500)))
        .tool(adder());
    let client = lane.connect(server).await;
    for (tool, limit) in [("short", Duration::from_millis(1500)), ("default", Duration::from_secs(60))] {
        let started = Instant::now();
        let reply = client.call(tool, json!({})).await;
        assert_eq!(reply.code(), -32603);
        assert!(reply.message().contains(tool), "{}", reply.text);
        let took = started.elapsed();
        assert!(took >= limit && took < limit + Duration::from_millis(100), "{tool} took {took:?}");
    }
    assert!(!client.call("add", json!({ "a": 1, "b": 2 })).await.is_tool_error());
}

async fn the_timeout_counts_attempts_and_not_the_client(lane: Lane) {
    let tool = Tool::typed("asks", |_: NoArguments, context: RequestContext| async move {
        let roots = context.ask("roots", mcp_core::ListRoots)?;
        Ok::<_, HandlerError>(roots.len().to_string())
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool.timeout(Duration::from_secs(1)))).await;
    if lane.is_modern() {
        // The wait is between two requests, so nothing can count it.
        let interview = client.interview("asks", json!({}), |_| json!({ "roots": [] })).await;
        assert_eq!(interview.reply.tool_text(), "0");
        return;
    }
    let mut call = client.start_tool("asks", json!({}));
    let asked = call.server_request().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    client.answer(&asked, json!({ "roots": [] })).await;
    assert_eq!(call.reply().await.tool_text(), "0");
}

/// A tool that waits for a permit, and counts how many wait at a time.
fn gated(name: &str) -> (Tool, Arc<Semaphore>, Arc<AtomicUsize>) {
    let (gate, running) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (open, count) = (Arc::clone(&gate), Arc::clone(&running));
    let tool = Tool::typed(name, move |_: NoArguments, _context: RequestContext| {
        let (open, count) = (Arc::clone(&open), Arc::clone(&count));
        async move {
            count.fetch_add(1, Ordering::Relaxed);
            open.acquire().await?.forget();
            count.fetch_sub(1, Ordering::Relaxed);
            Ok::<_, HandlerError>("done")
        }
    });
    (tool, gate, running)
}

async fn calls_beyond_the_bound_of_a_tool_wait_their_turn(lane: Lane) {
    let (tool, gate, running) = gated("gated");
    let client = lane.connect(Server::builder("s", "1").tool(tool.max_in_flight(2))).await;
    let calls: Vec<_> = (0..5).map(|_| client.start_tool("gated", json!({}))).collect();
    mcp_tests::idle().await;
    assert_eq!(running.load(Ordering::Relaxed), 2);
    gate.add_permits(1);
    mcp_tests::idle().await;
    assert_eq!(running.load(Ordering::Relaxed), 2, "one ended and the next one took its place");
    gate.add_permits(4);
    for call in calls {
        assert_eq!(call.reply().await.tool_text(), "done");
    }
}

async fn waiting_for_a_turn_counts_towards_the_timeout(lane: Lane) {
    let (tool, _gate, running) = gated("gated");
    let tool = tool.max_in_flight(1).timeout(Duration::from_secs(10));
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let started = Instant::now();
    let calls: Vec<_> = (0..3).map(|_| client.start_tool("gated", json!({}))).collect();
    let mut codes = Vec::new();
    for call in calls {
        codes.push(call.reply().await.code());
    }
    assert_eq!(codes, [-32603; 3]);
    assert!(started.elapsed() < Duration::from_secs(21), "it took {:?}", started.elapsed());
    assert!(running.load(Ordering::Relaxed) <= 3);
}

async fn a_blocking_tool_runs_beside_others(lane: Lane) {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let blocking = Tool::blocking("blocks", move |_: NoArguments, _context| {
        wait.lock().unwrap().recv().map(|()| "done").map_err(HandlerError::internal)
    });
    let client = lane.connect(Server::builder("s", "1").tool(blocking).tool(adder())).await;
    let blocked = client.start_tool("blocks", json!({}));
    assert!(!client.call("add", json!({ "a": 1, "b": 2 })).await.is_tool_error());
    release.send(()).unwrap();
    assert_eq!(blocked.reply().await.tool_text(), "done");
}

async fn the_context_tells_who_asks_and_how(lane: Lane) {
    let tool = Tool::typed("who", |_: NoArguments, context: RequestContext| async move {
        let info = context.client_info().map(|info| info.name);
        let trace = context.trace().parent_id().map(ToOwned::to_owned);
        Ok::<_, HandlerError>(format!("{} {} {info:?} {trace:?}", context.principal().subject(), context.revision()))
    });
    let server = Server::builder("s", "1").tool(tool).build().unwrap();
    for lane in lane.each_revision() {
        let host = lane.host(&server);
        for name in ["ann", "bob"] {
            let client = host.connect_as(mcp_tests::Profile::named(name)).await;
            let params = json!({ "name": "who", "_meta": { "traceparent": format!("00-{:032x}-{:016x}-01", 7, 9) } });
            let reply = client.request("tools/call", params).await;
            let expected = format!("{name} {} Some({name:?}) Some(\"0000000000000009\")", lane.revision());
            assert_eq!(reply.tool_text(), expected);
        }
    }
}

async fn tools_come_and_go_while_clients_are_connected(lane: Lane) {
    let client = lane.connect(Server::builder("s", "1").tool(adder())).await;
    let endless = client.server().add_tool(endless("adder").timeout(Duration::from_secs(5)));
    endless.unwrap();
    assert!(client.server().add_tool(adder()).is_err(), "the name is taken");
    let under_way = client.start_tool("adder", json!({}));
    mcp_tests::idle().await;
    assert!(client.server().remove_tool("adder") && !client.server().remove_tool("adder"));
    assert_eq!(client.call("adder", json!({})).await.message(), "there is no tool \"adder\"");
    assert!(under_way.reply().await.message().contains("within 5 s"), "a call under way goes on");
}

async fn structured_results_come_down_to_each_revision(lane: Lane) {
    let tool = ends("list", || Ok(ToolReply::new(vec![]).with_structured(json!([1, 2]))))
        .output_schema(json!({ "type": "array" }));
    let server = Server::builder("s", "1").tool(adder()).tool(tool).build().unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).connect().await;
        let reply = client.call("add", json!({ "a": 2, "b": 3 })).await;
        assert_eq!(reply.tool_text(), "{\"sum\":5}", "{lane:?}");
        let has = lane.revision().rules().structured;
        assert_eq!(reply.result().get("structuredContent").is_some(), has, "{lane:?}");
        let reply = client.call("list", json!({})).await;
        assert!(reply.result().get("structuredContent").is_none(), "objects only in {lane:?}");
        assert_eq!(reply.tool_text(), "[1,2]", "{lane:?}");
    }
}

/// Checklist 38: an R3 session never receives `icons`, `execution`, titled enums, priming events or `resultType`. (What
/// is not of tools is in `initialize.rs`, `ask.rs` and, for `resultType`, in the harness itself.)
async fn tool_definitions_come_down_to_each_revision(lane: Lane) {
    let tool = adder()
        .title("Adder")
        .description("Adds")
        .icons(vec![mcp_wire::types::Icon::new("https://example.com/i.png")])
        .annotations(mcp_wire::types::ToolAnnotations::new().with_read_only(true))
        .meta(serde_json::Map::from_iter([("own".to_owned(), json!(1))]));
    let array = ends("list", || Ok(ToolReply::text("x"))).output_schema(json!({ "type": "array" }));
    let server = Server::builder("s", "1").tool(tool).tool(array).build().unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).connect().await;
        let reply = client.request("tools/list", json!({})).await;
        let tool = &reply.result()["tools"][0];
        let rules = lane.revision().rules();
        for (member, has) in [
            ("name", true),
            ("description", true),
            ("inputSchema", true),
            ("title", rules.structured),
            ("outputSchema", rules.structured),
            ("_meta", rules.structured),
            ("annotations", rules.tool_annotations),
            ("icons", rules.icons),
            ("execution", false),
        ] {
            assert_eq!(tool.get(member).is_some(), has, "{member} in {lane:?}: {tool}");
        }
        assert!(reply.result()["tools"][1].get("outputSchema").is_none(), "object roots only in {lane:?}");
    }
}

async fn structured_content_may_be_any_json_value(lane: Lane) {
    for value in [json!(null), json!([1]), json!("x"), json!(false), json!(0), json!({})] {
        let returned = value.clone();
        let tool = Tool::typed("any", move |_: NoArguments, _context: RequestContext| {
            std::future::ready(Ok::<_, HandlerError>(ToolReply::text("x").with_structured(returned.clone())))
        });
        let client = lane.connect(Server::builder("s", "1").tool(tool.output_schema(json!({})))).await;
        let reply = client.call("any", json!({})).await;
        assert_eq!(reply.result().get("structuredContent"), Some(&value));
        let listed = client.request("tools/list", json!({})).await;
        assert_eq!(listed.result()["tools"][0]["outputSchema"], json!({}));
    }
}
