//! What whoever runs a server is told of each request: spans, audit records, counts; and what is told of none.
//!
//! Spec: 2026-07-28 basic/index, "General fields"

pub(crate) mod recorded;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method};
use mcp_auth::{AuthError, AuthProvider, AuthRequest, BearerChallenge, Challenge};
use mcp_core::{
    CallLayer, HandlerError, LayeredCall, ListRoots, Next, NoArguments, Principal, Prompt, PromptReply, RequestContext, Resource,
    ResourceTemplate, Server, ServerBuilder, TaskOffer, Tool, ToolReply,
};
use mcp_http::server::{HttpConfig, TrustedProxies};
use mcp_tasks::Tasks;
use mcp_tests::{Lane, Profile, idle, lanes};
use serde_json::{Value, json};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::tasks::{created, id_of, outcome, tasking};

use self::recorded::{Counted, Told, Traced};

lanes! {
    everywhere {
        a_request_has_a_span_and_its_handler_one_within,
        spans_and_audit_records_say_how_a_request_ended,
        names_that_nobody_registered_are_told_nowhere,
        the_trace_of_a_request_reaches_its_handler_and_its_span,
        a_program_joins_the_traces_of_its_clients,
        an_audit_is_made_without_spans,
        requests_are_counted_by_method_and_outcome,
        secrets_are_told_nowhere,
        a_call_that_became_a_task_stays_within_the_span_of_its_request,
    }
    legacy "a modern server sends no requests" {
        a_question_carries_the_trace_of_its_call,
        sessions_are_counted_while_they_last,
    }
    modern "only the modern era has streams of subscriptions" {
        subscriptions_are_counted_while_they_last,
    }
    stdio "only a pipe has its connection in the engine" {
        a_connection_is_a_span_around_its_requests,
    }
    http "only HTTP has headers and proxies" {
        headers_tell_the_trace_of_a_request_that_tells_none,
        refusals_are_counted_by_reason,
        a_trusted_proxy_says_who_the_client_is,
    }
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn parent(span: u8) -> String {
    format!("00-{TRACE}-{span:016x}-01")
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

/// One of everything whose requests name something.
fn server() -> ServerBuilder {
    let echo = Tool::typed("echo", |arguments: Text, context: RequestContext| async move {
        tracing::info!(target: "app", "at work");
        context.log(mcp_wire::types::LoggingLevel::Info, &arguments.text);
        context.progress(1.0, None, Some(&arguments.text));
        Ok::<_, HandlerError>(arguments.text)
    });
    let fails = Tool::plain("fails", |arguments: Text| Err::<ToolReply, _>(HandlerError::tell(arguments.text)));
    let refuses = Tool::plain("refuses", |_: Text| {
        Err::<ToolReply, _>(HandlerError::rpc(mcp_wire::RpcError::invalid_params("not that one")))
    });
    let panics = Tool::plain("panics", |_: Text| -> String { std::panic::resume_unwind(Box::new("a mistake")) });
    let waits = Tool::typed("waits", |_: Text, context: RequestContext| async move {
        context.cancelled().await;
        Ok::<_, HandlerError>("never heard")
    });
    let greet = Prompt::new("greet", |arguments: mcp_core::PromptArguments, _| async move {
        Ok(PromptReply::user(arguments.text("who")))
    });
    let tools = [echo, fails, refuses, panics, waits].into_iter();
    tools
        .fold(Server::builder("s", "1"), ServerBuilder::tool)
        .prompt(greet.required("who", "whom"))
        .resource(Resource::text("note://one", "one", "1"))
        .resource_template(ResourceTemplate::new(
            "note://{id}/text",
            "text",
            |request: mcp_core::ReadRequest, _| async move { Ok(request.text(request.uri.clone())) },
        ))
}

/// The one request span that has this field.
fn request_with(traced: &Traced, field: &str, value: &str) -> Told {
    let mut found: Vec<_> =
        traced.spans("mcp.request").into_iter().filter(|span| span.field(field) == Some(value)).collect();
    assert_eq!(found.len(), 1, "{field}={value}: {found:?}");
    found.remove(0)
}

async fn a_request_has_a_span_and_its_handler_one_within(lane: Lane) {
    let (traced, _guard) = Traced::listen();
    let client = lane.connect(server()).await;
    assert_eq!(client.call("echo", json!({ "text": "x" })).await.tool_text(), "x");
    let request = request_with(&traced, "gen_ai.tool.name", "echo");
    let expected = [
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", lane.revision().as_str()),
        ("mcp.outcome", "ok"),
        ("gen_ai.operation.name", "execute_tool"),
        ("otel.kind", "server"),
        ("otel.name", "tools/call echo"),
    ];
    for (field, value) in expected {
        assert_eq!(request.field(field), Some(value), "{field}");
    }
    assert!(request.field("jsonrpc.request.id").is_some_and(|id| id.parse::<u64>().is_ok()));
    assert!(
        ["error.type", "rpc.response.status_code", "traceparent"].iter().all(|field| request.field(field).is_none())
    );
    assert_eq!(request.target, "mcp_core");
    let handler = traced.spans("mcp.call").remove(0);
    assert_eq!((handler.within[0].as_str(), handler.field("mcp.method.name")), ("mcp.request", Some("tools/call")));
    assert_eq!(traced.events("app")[0].within[..2], ["mcp.call", "mcp.request"]);
    idle().await;
    assert!(request_with(&traced, "gen_ai.tool.name", "echo").is_closed);
}

async fn a_call_that_became_a_task_stays_within_the_span_of_its_request(lane: Lane) {
    let (traced, _guard) = Traced::listen();
    let tool = Tool::typed("slow", async |_: NoArguments, _: RequestContext| {
        tokio::time::sleep(Duration::from_secs(10)).await;
        tracing::info!(target: "app", "at work");
        Ok::<_, HandlerError>("done")
    });
    let tool = tool.task(TaskOffer::required().at_once());
    let server = Server::builder("s", "1").extension(Tasks::new()).tool(tool).build().unwrap();
    let client = lane.host(&server).connect_as(tasking(lane)).await;
    let task = created(&client, "slow", json!({})).await;
    idle().await;
    assert!(!request_with(&traced, "gen_ai.tool.name", "slow").is_closed, "its work is not done");
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(outcome(&client, id_of(&task)).await.0, "completed");
    assert_eq!(traced.events("app")[0].within[..2], ["mcp.call", "mcp.request"]);
    assert!(request_with(&traced, "gen_ai.tool.name", "slow").is_closed);
}

async fn a_connection_is_a_span_around_its_requests(lane: Lane) {
    let (traced, _guard) = Traced::listen();
    let client = lane.connect(server()).await;
    client.call("echo", json!({ "text": "x" })).await;
    assert_eq!(traced.events("app")[0].within, ["mcp.call", "mcp.request", "mcp.connection"]);
    let connection = traced.spans("mcp.connection").remove(0);
    assert_eq!((connection.field("network.transport"), connection.is_closed), (Some("pipe"), false));
    drop(client);
    idle().await;
    assert!(traced.spans("mcp.connection")[0].is_closed);
}

async fn spans_and_audit_records_say_how_a_request_ended(lane: Lane) {
    let (traced, _guard) = Traced::listen();
    let client = lane.connect(server()).await;
    let text = json!({ "text": "x" });
    for tool in ["echo", "fails", "refuses", "panics"] {
        client.call(tool, text.clone()).await;
    }
    client.call("echo", json!({ "text": 1 })).await;
    let waiting = client.start_tool("waits", text);
    idle().await;
    client.cancel(waiting).await;
    client.request("prompts/get", json!({ "name": "greet", "arguments": { "who": "x" } })).await;
    client.request("prompts/get", json!({ "name": "greet" })).await;
    client.request("resources/read", json!({ "uri": "NOTE://one" })).await;
    client.request("resources/read", json!({ "uri": "note://7/text" })).await;
    client.request("tools/list", json!({})).await;

    let told: Vec<_> = traced
        .events("mcp.audit")
        .into_iter()
        .filter(|each| each.field("mcp.method.name") != Some("initialize"))
        .collect();
    let told: Vec<_> = told
        .iter()
        .map(|each| {
            let field = |name| each.field(name).unwrap_or_default();
            (field("mcp.method.name"), field("mcp.target"), field("mcp.outcome"), field("rpc.response.status_code"))
        })
        .collect();
    let expected = [
        ("tools/call", "echo", "ok", ""),
        ("tools/call", "fails", "tool_error", ""),
        ("tools/call", "refuses", "error", "-32602"),
        ("tools/call", "panics", "failed", "-32603"),
        ("tools/call", "echo", "tool_error", ""),
        ("tools/call", "waits", "cancelled", ""),
        ("prompts/get", "greet", "ok", ""),
        ("prompts/get", "greet", "error", "-32602"),
        ("resources/read", "note://one", "ok", ""),
        ("resources/read", "note://{id}/text", "ok", ""),
        ("tools/list", "", "ok", ""),
    ];
    assert_eq!(told, expected);
    let who = Principal::new("test", "https://issuer.example", "ann").key().to_string();
    for each in traced.events("mcp.audit") {
        assert_eq!(each.field("mcp.principal"), Some(who.as_str()));
        assert!(each.field("duration_us").is_some_and(|duration| duration.parse::<u64>().is_ok()));
    }
    let failed = request_with(&traced, "gen_ai.tool.name", "panics");
    assert_eq!((failed.field("error.type"), failed.field("otel.status_code")), (Some("-32603"), Some("ERROR")));
    let failed = request_with(&traced, "gen_ai.tool.name", "fails");
    assert_eq!((failed.field("error.type"), failed.field("otel.status_code")), (Some("tool_error"), Some("ERROR")));
    idle().await;
    assert!(traced.spans("mcp.request").iter().all(|span| span.is_closed && span.field("mcp.outcome").is_some()));
}

async fn names_that_nobody_registered_are_told_nowhere(lane: Lane) {
    let (traced, _guard) = Traced::listen();
    let counted = Counted::default();
    let _recording = metrics::set_default_local_recorder(&counted);
    let client = lane.connect(server()).await;
    for attempt in 0..3 {
        let made_up = format!("made-up-{attempt}");
        client.call(&made_up, json!({})).await;
        client.request("prompts/get", json!({ "name": made_up })).await;
        client.request("resources/read", json!({ "uri": format!("{made_up}:x") })).await;
        client.request(&format!("{made_up}/method"), json!({})).await;
    }
    assert!(!traced.text().contains("made-up"), "{}", traced.text());
    assert!(traced.spans("mcp.request").iter().any(|span| span.field("mcp.method.name") == Some("_OTHER")));
    let keys: Vec<_> =
        counted.of("mcp.server.requests").into_iter().filter(|(key, _)| key.contains("_OTHER")).collect();
    let era = lane.pick("legacy", "modern");
    let key = format!("mcp.server.requests{{mcp.method.name=_OTHER,mcp.era={era},mcp.outcome=error}}");
    assert_eq!(keys, [(key, 3.0)]);
    assert!(counted.of("mcp.server.tool.calls").is_empty());
}

async fn the_trace_of_a_request_reaches_its_handler_and_its_span(lane: Lane) {
    let (traced, _guard) = Traced::listen();
    let tool = Tool::typed("trace", |_: NoArguments, context: RequestContext| async move {
        let trace = context.trace();
        Ok::<_, HandlerError>(format!("{:?} {:?} {:?}", trace.traceparent(), trace.tracestate(), trace.baggage()))
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let call = async |meta: Value| client.request("tools/call", json!({ "name": "trace", "_meta": meta })).await;
    let whole = json!({ "traceparent": parent(9), "tracestate": "a=1", "baggage": "user=ann" });
    let expected = format!("Some({:?}) Some(\"a=1\") Some(\"user=ann\")", parent(9));
    assert_eq!(call(whole).await.tool_text(), expected);
    let span = request_with(&traced, "traceparent", &parent(9));
    assert_eq!(span.field("tracestate"), Some("a=1"));
    assert!(!traced.text().contains("user=ann"), "what programs hand on is nobody's to record");
    for broken in
        [json!({ "traceparent": "00-1-2-3", "tracestate": "a=1" }), json!({ "traceparent": 7, "baggage": "x" })]
    {
        assert_eq!(call(broken).await.tool_text(), "None None None");
    }
}

async fn a_program_joins_the_traces_of_its_clients(lane: Lane) {
    let joined = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&joined);
    let server = server().on_trace(move |span, trace| {
        let is_entered = tracing::Span::current() == *span;
        let name = span.metadata().map(tracing::Metadata::name);
        told.lock().unwrap().push((name, is_entered, trace.clone()));
        assert_ne!(trace.parent_id(), Some("0000000000000008"), "a mistake of the program");
    });
    let host = lane.host(&server.build().unwrap());
    let call = async |client: &mcp_tests::Client, meta: Value| {
        let params = json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": meta });
        assert_eq!(client.request("tools/call", params).await.tool_text(), "x");
    };
    {
        // Somebody who wants nothing, since without anybody the tests beside this one would decide.
        let deaf = tracing_subscriber::registry().with(LevelFilter::OFF);
        let _guard = tracing::subscriber::set_default(deaf);
        call(&host.connect().await, json!({ "traceparent": parent(7) })).await;
        assert!(joined.lock().unwrap().is_empty(), "nobody traces yet");
    }
    let (_traced, _guard) = Traced::listen();
    let client = host.connect().await;
    for nothing_to_join in [json!({}), json!({ "traceparent": "00-1-2-3" }), json!({ "baggage": "user=ann" })] {
        call(&client, nothing_to_join).await;
    }
    assert!(joined.lock().unwrap().is_empty());
    call(&client, json!({ "traceparent": parent(9), "tracestate": "a=1" })).await;
    let trace = mcp_core::TraceContext::new(Some(&parent(9)), Some("a=1"), None);
    assert_eq!(*joined.lock().unwrap(), [(Some("mcp.request"), false, trace)], "once, before the span is entered");
    call(&client, json!({ "traceparent": parent(8) })).await;
    assert_eq!(joined.lock().unwrap().len(), 2, "and a panic there is no fault of the call");
}

async fn headers_tell_the_trace_of_a_request_that_tells_none(lane: Lane) {
    let (traced, _guard) = Traced::listen();
    let client = lane.connect(server()).await;
    let post = async |meta: Value| {
        let params = client.enveloped(json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": meta }));
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let answer = client
            .http(Method::POST, body, |headers| {
                headers.insert("traceparent", parent(1).parse().unwrap());
                headers.insert("tracestate", HeaderValue::from_static("b=2"));
                headers.insert("baggage", HeaderValue::from_static("user=bob"));
            })
            .await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let span = traced.spans("mcp.request").pop().unwrap();
        (span.field("traceparent").unwrap().to_owned(), span.field("tracestate").map(ToOwned::to_owned))
    };
    assert_eq!(post(json!({})).await, (parent(1), Some("b=2".to_owned())));
    assert_eq!(post(json!({ "traceparent": parent(2) })).await, (parent(2), None));
    assert_eq!(post(json!({ "traceparent": "what" })).await, (parent(1), Some("b=2".to_owned())));
}

async fn a_question_carries_the_trace_of_its_call(lane: Lane) {
    let look = Tool::typed("look", |_: NoArguments, context: RequestContext| async move {
        Ok::<_, HandlerError>(context.ask("where", ListRoots)?.len().to_string())
    });
    let server = Server::builder("s", "1").tool(look).build().unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).connect().await;
        let meta = json!({ "traceparent": parent(3), "baggage": "a=1" });
        for meta in [json!({}), meta] {
            let mut call = client.start("tools/call", json!({ "name": "look", "_meta": meta }));
            let asked = call.server_request().await;
            let carried = asked["params"].get("_meta").cloned().unwrap_or_else(|| json!({}));
            assert_eq!(carried, meta);
            client.answer(&asked, json!({ "roots": [] })).await;
            assert_eq!(call.reply().await.tool_text(), "0");
        }
    }
}

async fn an_audit_is_made_without_spans(lane: Lane) {
    let (traced, _guard) = Traced::listen_to(Targets::new().with_target("mcp.audit", tracing::Level::INFO));
    let client = lane.connect(server()).await;
    client.call("echo", json!({ "text": "x" })).await;
    assert!(traced.spans("mcp.request").is_empty() && traced.spans("mcp.call").is_empty());
    let audited = traced.events("mcp.audit");
    assert_eq!((audited.len(), audited[0].field("mcp.target"), audited[0].within.len()), (1, Some("echo"), 0));
}

async fn requests_are_counted_by_method_and_outcome(lane: Lane) {
    let counted = Counted::default();
    let _recording = metrics::set_default_local_recorder(&counted);
    let client = lane.connect(server()).await;
    let active = || counted.value("mcp.server.active{kind=request}");
    for tool in ["echo", "fails", "panics", "echo", "nothing"] {
        client.call(tool, json!({ "text": "x" })).await;
    }
    let (began, waiting) = (tokio::time::Instant::now(), client.start_tool("waits", json!({ "text": "x" })));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(active(), 1.0);
    client.cancel(waiting).await;
    let waited = began.elapsed().as_secs_f64();
    assert_eq!(active(), 0.0);
    let of = |metric: &str, outcome: &str| {
        let era = lane.pick("legacy", "modern");
        counted.value(&format!("{metric}{{mcp.method.name=tools/call,mcp.era={era},mcp.outcome={outcome}}}"))
    };
    let requests = ["ok", "tool_error", "failed", "error", "cancelled", "input_required"]
        .map(|outcome| of("mcp.server.requests", outcome));
    assert_eq!(requests, [2.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
    let duration = of("mcp.server.operation.duration", "cancelled");
    assert!((3.0..=waited).contains(&duration), "{duration}");
    let calls = counted.of("mcp.server.tool.calls");
    let call =
        |tool: &str, outcome: &str| format!("mcp.server.tool.calls{{gen_ai.tool.name={tool},mcp.outcome={outcome}}}");
    let expected = [
        (call("echo", "ok"), 2.0),
        (call("fails", "tool_error"), 1.0),
        (call("panics", "failed"), 1.0),
        (call("waits", "cancelled"), 1.0),
    ];
    assert_eq!(calls, expected);
}

async fn sessions_are_counted_while_they_last(lane: Lane) {
    let counted = Counted::default();
    let _recording = metrics::set_default_local_recorder(&counted);
    let open = || counted.value("mcp.server.active{kind=session}");
    let server = server().build().unwrap();
    let host = lane.host(&server);
    let (one, two) = (host.connect().await, host.connect().await);
    assert_eq!(open(), 2.0);
    let key = "mcp.server.requests{mcp.method.name=initialize,mcp.era=legacy,mcp.outcome=ok}";
    assert_eq!(counted.value(key), 2.0);
    if lane.is_http() {
        assert_eq!(one.http(Method::DELETE, "", |_| {}).await.status, 204);
        assert_eq!(two.http(Method::DELETE, "", |_| {}).await.status, 204);
    }
    drop((one, two));
    idle().await;
    assert_eq!(open(), 0.0);
}

async fn subscriptions_are_counted_while_they_last(lane: Lane) {
    let counted = Counted::default();
    let _recording = metrics::set_default_local_recorder(&counted);
    let open = |kind: &str| counted.value(&format!("mcp.server.active{{kind={kind}}}"));
    let client = lane.connect(server()).await;
    let watch = client.watch(json!({ "toolsListChanged": true })).await;
    assert_eq!((open("subscription"), open("request")), (1.0, 1.0));
    assert_eq!(open("stream"), if lane.is_http() { 1.0 } else { 0.0 });
    drop(watch);
    drop(client);
    idle().await;
    assert_eq!((open("subscription"), open("request"), open("stream")), (0.0, 0.0, 0.0));
}

async fn refusals_are_counted_by_reason(lane: Lane) {
    let counted = Counted::default();
    let _recording = metrics::set_default_local_recorder(&counted);
    let client = lane.connect(server()).await;
    let ping =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": client.enveloped(json!({})) }).to_string();
    type Edit = fn(&mut HeaderMap);
    let cases: [(&str, u16, &str, Edit); 7] = [
        ("source", 403, &ping, |headers| drop(headers.insert("host", HeaderValue::from_static("evil.example")))),
        ("source", 403, &ping, |headers| {
            drop(headers.insert("origin", HeaderValue::from_static("https://evil.example")))
        }),
        ("credentials", 401, &ping, |headers| drop(headers.remove("authorization"))),
        ("content_type", 415, &ping, |headers| drop(headers.remove("content-type"))),
        ("accept", 406, &ping, |headers| drop(headers.insert("accept", HeaderValue::from_static("text/html")))),
        ("syntax", 400, "{", |_| {}),
        ("header_mismatch", 400, &ping, |headers| {
            headers.append("mcp-protocol-version", HeaderValue::from_static("x"));
        }),
    ];
    for (reason, status, body, edit) in cases {
        let count = || counted.value(&format!("mcp.server.refusals{{reason={reason}}}"));
        let before = count();
        assert_eq!(client.http(Method::POST, body.to_owned(), edit).await.status, status, "{reason}");
        assert_eq!(count(), before + 1.0, "{reason}");
    }
    assert_eq!(client.http(Method::PUT, "", |_| {}).await.status, 405);
    assert_eq!(client.http_at("/other", Method::POST, "", |_| {}).await.status, 404);
    let reasons: Vec<_> = counted.of("mcp.server.refusals").into_iter().map(|(key, _)| key).collect();
    assert!(
        reasons.iter().any(|key| key.contains("reason=method}"))
            && reasons.iter().any(|key| key.contains("reason=path}"))
    );
}

/// Notes where callers are said to be.
struct Watching(Arc<Mutex<Vec<Option<SocketAddr>>>>);

#[async_trait]
impl AuthProvider for Watching {
    async fn authenticate(&self, request: AuthRequest<'_>) -> Result<Principal, AuthError> {
        self.0.lock().unwrap().push(request.peer());
        Ok(Principal::anonymous())
    }

    fn challenge(&self, error: &AuthError) -> Challenge {
        BearerChallenge::default().answer(error)
    }
}

async fn a_trusted_proxy_says_who_the_client_is(lane: Lane) {
    let (traced, _guard) = Traced::listen();
    let server = server().build().unwrap();
    let ours = TrustedProxies::at(["10.0.0.0/8"]).unwrap();
    // Connections of these tests have no address.
    for (proxies, expected) in [(ours.clone(), None), (ours.and_peers_without_address(), Some("192.0.2.7"))] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let config = HttpConfig::new(Watching(Arc::clone(&seen))).trusted_proxies(proxies);
        let client = lane.host_as(&server, config).connect().await;
        let params = client.enveloped(json!({ "name": "echo", "arguments": { "text": "x" } }));
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let forwarded = HeaderValue::from_static("203.0.113.1, 192.0.2.7, 10.1.1.1");
        let answer =
            client.http(Method::POST, body, |headers| drop(headers.insert("x-forwarded-for", forwarded))).await;
        assert_eq!(answer.status, 200);
        let audited = traced.events("mcp.audit").pop().unwrap();
        assert_eq!(audited.field("client.address"), expected);
        assert_eq!(traced.spans("mcp.request").pop().unwrap().field("client.address"), expected);
        let told = seen.lock().unwrap().last().copied().flatten();
        assert_eq!(told.map(|address| address.ip().to_string()).as_deref(), expected);
    }
}

/// Notes that its calls pass, as a layer of a user does.
struct Passing;

#[async_trait]
impl CallLayer for Passing {
    async fn call(&self, call: LayeredCall, next: Next<'_>) -> Result<ToolReply, HandlerError> {
        next.run(call).await
    }
}

async fn secrets_are_told_nowhere(lane: Lane) {
    const SECRET: &str = "s3cr3t";
    let (traced, _guard) = Traced::listen();
    let counted = Counted::default();
    let _recording = metrics::set_default_local_recorder(&counted);
    let host_server = server().layer(Passing).build().unwrap();
    let client = lane.host(&host_server).connect_as(Profile::named("s3cr3t-token")).await;
    client.set_log_level("debug").await;
    let meta = json!({ "baggage": "key=s3cr3t", "com.example/note": SECRET, "progressToken": SECRET, "tracestate": "a=s3cr3t" });
    let text = json!({ "text": SECRET });
    for tool in ["echo", "fails", "refuses", "panics", SECRET] {
        client.request("tools/call", json!({ "name": tool, "arguments": text, "_meta": meta })).await;
    }
    client.call("echo", json!({ "text": [SECRET], "s3cr3t": SECRET })).await;
    for uri in ["note://s3cr3t/text", "note://one?key=s3cr3t", "s3cr3t:", "s3cr3t"] {
        client.request("resources/read", json!({ "uri": uri, "_meta": meta })).await;
    }
    for (prompt, argument) in [("greet", "who"), ("greet", SECRET), (SECRET, "who")] {
        client
            .request("prompts/get", json!({ "name": prompt, "arguments": { argument: SECRET }, "_meta": meta }))
            .await;
    }
    client.request(SECRET, json!({ SECRET: SECRET })).await;
    client
        .request(
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": SECRET }, "argument": { "name": "who", "value": SECRET } }),
        )
        .await;
    client.notify("notifications/cancelled", json!({ "requestId": SECRET, "reason": SECRET })).await;
    client.raw(format!("{{\"jsonrpc\":\"2.0\",\"{SECRET}\"")).await;
    if lane.is_http() {
        let params = client.enveloped(json!({ "name": "echo", "arguments": text }));
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        for name in [
            "authorization",
            "cookie",
            "x-api-key",
            "baggage",
            "traceparent",
            "tracestate",
            "forwarded",
            "x-forwarded-for",
            "origin",
            "host",
        ] {
            let secret = HeaderValue::from_static("s3cr3t=s3cr3t");
            client.http(Method::POST, body.clone(), |headers| drop(headers.insert(name, secret))).await;
        }
        client.http_at("/mcp?token=s3cr3t", Method::POST, body, |_| {}).await;
        if !lane.is_modern() {
            assert!(!traced.text().contains(&client.session_id()), "the id of a session is as good as a password");
        }
    }
    let waiting = client.start_tool("waits", text);
    idle().await;
    client.cancel(waiting).await;
    let told = traced.text();
    // It was listened to all the time.
    assert!(traced.events("mcp.audit").len() > 12 && told.contains("mcp.request"));
    let at = told
        .find(SECRET)
        .map(|at| told.get(at.saturating_sub(300)..).unwrap_or_default().chars().take(400).collect::<String>());
    assert_eq!(at, None);
    let keys: Vec<_> = counted.of("").into_iter().map(|(key, _)| key).collect();
    assert!(!keys.is_empty() && keys.iter().all(|key| !key.contains(SECRET)), "{keys:?}");
}
