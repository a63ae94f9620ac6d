//! The pair of endpoints of 2024-11-05: a stream that says where to post, and says everything else as well.
//!
//! Spec: 2024-11-05 basic/transports, "HTTP with SSE"

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Empty};
use mcp_core::{HandlerError, NoArguments, RequestContext, Sample, Server, ServerBuilder, Tool};
use mcp_http::server::{HttpConfig, HttpService, TrustedProxies};
use mcp_tests::{Client, Event, Events, HttpAnswer, Lane, Profile, idle, lanes, within};
use mcp_wire::types::{CreateMessageParams, SamplingMessage};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::telemetry::recorded::{Counted, Traced};

lanes! {
    everywhere {}
    http_legacy "only this revision has this transport, and nothing before it has sessions" {
        the_first_event_says_where_to_post_and_the_stream_says_everything_else,
        a_question_and_its_answer_go_the_same_ways,
        a_session_that_is_not_the_callers_looks_like_none,
        a_proof_of_identity_that_grants_less_is_refused,
        the_session_ends_with_its_stream,
        what_cannot_be_answered_on_the_stream_is_refused_at_once,
        each_address_has_its_methods,
        as_many_streams_are_open_as_may_be,
        the_client_of_every_request_is_where_the_stream_was_opened,
        a_stream_that_nobody_reads_holds_its_own_messages_back,
        the_end_of_the_server_is_the_end_of_the_stream,
        addresses_begin_with_what_a_proxy_takes_away,
        a_slash_at_the_end_is_the_same_place,
        the_stream_shows_itself_at_once,
        a_client_that_tries_the_endpoint_finds_the_stream_there,
    }
}

fn server() -> ServerBuilder {
    let echo = Tool::typed("echo", async |_: NoArguments, context: RequestContext| {
        context.progress(1.0, None, None);
        Ok::<_, HandlerError>(format!("spoken in {}", context.revision()))
    });
    let asks = Tool::typed("asks", async |_: NoArguments, context: RequestContext| {
        let question = Sample(CreateMessageParams::new(vec![SamplingMessage::user_text("Well?")], 10));
        Ok::<_, HandlerError>(context.ask("q", question)?.text().unwrap_or_default().to_owned())
    });
    Server::builder("s", "1").tool(echo).tool(asks)
}

/// An old client: its stream and where it posts.
struct Pair {
    client: Client,
    events: Events,
    address: String,
}

async fn open(client: Client) -> Pair {
    let mut events = client.stream_at("/sse", Method::GET, "", only_streams).await;
    let first = within("the first event", events.next()).await.unwrap();
    assert_eq!(first.name.as_deref(), Some("endpoint"));
    Pair { client, events, address: first.data }
}

/// What such a client takes.
fn only_streams(headers: &mut HeaderMap) {
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
}

fn no_accept(headers: &mut HeaderMap) {
    headers.remove(ACCEPT);
}

impl Pair {
    async fn post(&self, message: Value) -> HttpAnswer {
        self.client.http_at(&self.address, Method::POST, message.to_string(), no_accept).await
    }

    async fn next(&mut self) -> Value {
        let event = within("a message", self.events.next()).await.expect("the stream goes on");
        let Event { name, data, id, .. } = event;
        assert_eq!((name.as_deref(), id), (Some("message"), None));
        serde_json::from_str(&data).unwrap()
    }

    async fn shake_hands(&mut self) {
        let params = json!({
            "protocolVersion": "2024-11-05",
            "capabilities": { "sampling": {} },
            "clientInfo": { "name": "old", "version": "0" },
        });
        let asked = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let accepted = self.post(asked).await;
        assert_eq!((accepted.status, accepted.body.as_str()), (202, ""));
        assert!(!accepted.headers.contains_key("mcp-session-id"));
        let agreed = self.next().await;
        assert_eq!((&agreed["id"], &agreed["result"]["protocolVersion"]), (&json!(0), &json!("2024-11-05")));
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(initialized).await.status, 202);
    }

    async fn call(&self, id: i64, tool: &str) -> HttpAnswer {
        let params = json!({ "name": tool, "arguments": {}, "_meta": { "progressToken": id } });
        self.post(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await
    }
}

async fn connect(lane: Lane) -> Pair {
    let server = server().build().unwrap();
    let mut pair = open(lane.host(&server).strange(Profile::default())).await;
    pair.shake_hands().await;
    pair
}

/// Checklist 39: the HTTP+SSE POST answers 202 and the reply appears only on the stream.
async fn the_first_event_says_where_to_post_and_the_stream_says_everything_else(lane: Lane) {
    let mut pair = connect(lane).await;
    assert!(pair.address.starts_with("/messages?sessionId="), "{}", pair.address);
    let posted = pair.call(1, "echo").await;
    assert_eq!((posted.status, posted.body.as_str()), (202, ""));
    assert_eq!(pair.next().await["method"], "notifications/progress");
    let reply = pair.next().await;
    assert_eq!(reply["result"]["content"][0]["text"], "spoken in 2024-11-05");
    assert!(reply["result"].get("resultType").is_none());
    pair.client.server().tools_changed();
    assert_eq!(pair.next().await["method"], "notifications/tools/list_changed");
}

async fn a_question_and_its_answer_go_the_same_ways(lane: Lane) {
    let mut pair = connect(lane).await;
    assert_eq!(pair.call(1, "asks").await.status, 202);
    let asked = pair.next().await;
    assert_eq!(asked["method"], "sampling/createMessage");
    let result = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "so" } });
    let answered = pair.post(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).await;
    assert_eq!(answered.status, 202);
    assert_eq!(pair.next().await["result"]["content"][0]["text"], "so");
}

async fn a_session_that_is_not_the_callers_looks_like_none(lane: Lane) {
    let server = server().build().unwrap();
    let host = lane.host(&server);
    let ann = open(host.strange(Profile::default())).await;
    let bob = host.strange(Profile::named("bob"));
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let foreign = bob.http_at(&ann.address, Method::POST, ping.clone(), no_accept).await;
    let unknown = bob.http_at("/messages?sessionId=AAAA", Method::POST, ping.clone(), no_accept).await;
    assert_eq!((foreign.status, &foreign.body), (404, &unknown.body));
    assert_eq!(unknown.status, 404);
    for nameless in ["/messages", "/messages?sessionId=a&sessionId=b", "/messages?session=a"] {
        let refused = bob.http_at(nameless, Method::POST, ping.clone(), no_accept).await;
        assert_eq!((refused.status, refused.code()), (400, -32600), "{nameless}");
    }
}

async fn a_proof_of_identity_that_grants_less_is_refused(lane: Lane) {
    let guarded = Tool::plain("guarded", |_: NoArguments| "ran").scopes(["admin"]);
    let server = server().tool(guarded).build().unwrap();
    let host = lane.host(&server);
    let with = |scopes| host.strange(Profile { scopes, ..Profile::default() });
    let mut pair = open(with(&["admin", "read"])).await;
    pair.shake_hands().await;
    let params = json!({ "name": "guarded", "arguments": {} });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    for less in [&[][..], &["read"], &["admin"]] {
        let refused = with(less).http_at(&pair.address, Method::POST, call.clone(), no_accept).await;
        assert_eq!((refused.status, refused.code()), (403, -32600), "{less:?}");
        assert!(refused.headers["www-authenticate"].to_str().unwrap().contains("insufficient_scope"), "{less:?}");
    }
    let more = with(&["admin", "read", "write"]).http_at(&pair.address, Method::POST, call, no_accept).await;
    assert_eq!(more.status, 202);
    let reply = pair.next().await;
    assert_eq!(reply["result"]["content"][0]["text"], "ran", "once, for the one that was taken: {reply}");
}

async fn the_session_ends_with_its_stream(lane: Lane) {
    let cancelled = Arc::new(Notify::new());
    let seen = Arc::clone(&cancelled);
    let waits = Tool::typed("waits", move |_: NoArguments, context: RequestContext| {
        let seen = Arc::clone(&seen);
        async move {
            context.cancelled().await;
            seen.notify_one();
            Ok::<_, HandlerError>("")
        }
    });
    let server = server().tool(waits.timeout(None)).build().unwrap();
    let host = lane.host(&server);
    let mut pair = open(host.strange(Profile::default())).await;
    pair.shake_hands().await;
    assert_eq!(pair.call(1, "waits").await.status, 202);
    idle().await;
    assert_eq!(host.open_sessions(), 1);
    let Pair { client, events, address } = pair;
    drop(events);
    within("the handler sees it", cancelled.notified()).await;
    assert_eq!(host.open_sessions(), 0);
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    assert_eq!(client.http_at(&address, Method::POST, ping, no_accept).await.status, 404);
}

async fn what_cannot_be_answered_on_the_stream_is_refused_at_once(lane: Lane) {
    let mut pair = connect(lane).await;
    let modern = json!({ "name": "echo", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    for (body, code) in [
        ("{".to_owned(), -32700),
        ("[]".to_owned(), -32600),
        (json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]).to_string(), -32600),
        (json!({ "jsonrpc": "2.0", "id": {}, "method": "ping" }).to_string(), -32600),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": modern }).to_string(), -32600),
    ] {
        let refused = pair.client.http_at(&pair.address, Method::POST, body.clone(), no_accept).await;
        assert_eq!((refused.status, refused.code()), (400, code), "{body}");
    }
    let plain = |headers: &mut HeaderMap| drop(headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain")));
    assert_eq!(pair.client.http_at(&pair.address, Method::POST, "{}", plain).await.status, 415);
    // None of them cost the session anything.
    assert_eq!(pair.call(7, "echo").await.status, 202);
    assert_eq!(pair.next().await["method"], "notifications/progress");
    assert_eq!(pair.next().await["id"], 7);
}

async fn each_address_has_its_methods(lane: Lane) {
    let pair = connect(lane).await;
    for (path, method, allowed) in [
        ("/sse", Method::POST, "GET, OPTIONS"),
        ("/sse", Method::DELETE, "GET, OPTIONS"),
        (&*pair.address, Method::GET, "POST, OPTIONS"),
        (&*pair.address, Method::DELETE, "POST, OPTIONS"),
    ] {
        let refused = pair.client.http_at(path, method.clone(), "", |_| {}).await;
        assert_eq!((refused.status, refused.headers["allow"].to_str().unwrap()), (405, allowed), "{method} {path}");
    }
    let documents =
        |headers: &mut HeaderMap| drop(headers.insert(ACCEPT, HeaderValue::from_static("application/json")));
    assert_eq!(pair.client.http_at("/sse", Method::GET, "", documents).await.status, 406);
    let elsewhere = HeaderValue::from_static("https://evil.example");
    let from_elsewhere = |headers: &mut HeaderMap| drop(headers.insert("origin", elsewhere));
    assert_eq!(pair.client.http_at(&pair.address, Method::POST, "{}", from_elsewhere).await.status, 403);
}

async fn as_many_streams_are_open_as_may_be(lane: Lane) {
    let counted = Counted::default();
    let _recording = metrics::set_default_local_recorder(&counted);
    let mut limits = mcp_core::Limits::default();
    limits.sessions = 2;
    let server = server().limits(limits).build().unwrap();
    let host = lane.host(&server);
    let (one, two) = (open(host.strange(Profile::default())).await, open(host.strange(Profile::default())).await);
    let third = host.strange(Profile::default());
    assert_eq!(third.http_at("/sse", Method::GET, "", only_streams).await.status, 503);
    assert_eq!(counted.value("mcp.server.refusals{reason=sessions}"), 1.0);
    drop(one);
    idle().await;
    let mut third = open(third).await;
    third.shake_hands().await;
    drop(two);
}

async fn the_client_of_every_request_is_where_the_stream_was_opened(lane: Lane) {
    let (traced, _guard) = Traced::listen();
    let proxies = TrustedProxies::default().and_peers_without_address();
    let config = HttpConfig::new(mcp_auth::Anonymous).sse_pair("/sse", "/messages").trusted_proxies(proxies);
    let client = lane.host_as(&server().build().unwrap(), config).strange(Profile::default());
    let from = |headers: &mut HeaderMap, address| drop(headers.insert("x-forwarded-for", address));
    let mut events = client
        .stream_at("/sse", Method::GET, "", |headers| {
            only_streams(headers);
            from(headers, HeaderValue::from_static("192.0.2.7"));
        })
        .await;
    let address = within("the first event", events.next()).await.unwrap().data;
    let mut pair = Pair { client, events, address };
    pair.shake_hands().await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let posted = pair.client.http_at(&pair.address, Method::POST, body, |headers| {
        no_accept(headers);
        from(headers, HeaderValue::from_static("192.0.2.8"));
    });
    assert_eq!(posted.await.status, 202);
    assert_eq!(pair.next().await["id"], 1);
    idle().await;
    let audited = traced.events("mcp.audit").pop().unwrap();
    assert_eq!(audited.field("mcp.method.name"), Some("tools/list"));
    assert_eq!(audited.field("client.address"), Some("192.0.2.7"), "whoever opened it answers for all of it");
    assert_eq!(traced.spans("mcp.request").pop().unwrap().field("client.address"), Some("192.0.2.7"));
}

async fn a_stream_that_nobody_reads_holds_its_own_messages_back(lane: Lane) {
    let large = Tool::plain("large", |_: NoArguments| "x".repeat(64 * 1024));
    let server = server().tool(large).build().unwrap();
    let host = lane.host(&server);
    let mut slow = open(host.strange(Profile::default())).await;
    slow.shake_hands().await;
    let mut refused = 0;
    for id in 1..=2000 {
        refused += usize::from(slow.call(id, "large").await.status == 503);
        if refused > 0 {
            break;
        }
    }
    assert_eq!(refused, 1, "somewhere it ends");
    let mut other = open(host.strange(Profile::named("bob"))).await;
    other.shake_hands().await;
    assert_eq!(other.call(1, "echo").await.status, 202);
    assert_eq!(other.next().await["method"], "notifications/progress");
    // And who reads again gets everything that was accepted.
    assert!(slow.next().await["result"].is_object());
}

async fn the_end_of_the_server_is_the_end_of_the_stream(lane: Lane) {
    let mut pair = connect(lane).await;
    let server = pair.client.server().clone();
    let ((), end) = tokio::join!(server.shutdown(Duration::from_secs(1)), within("the end", pair.events.next()));
    assert_eq!(end, None);
}

/// A GET that opens a stream, without any harness around the service.
async fn first_event(config: HttpConfig, path: &str) -> (Response<()>, String) {
    let service = HttpService::new(server().build().unwrap(), config);
    let request = Request::get(path).header("host", "localhost").header(ACCEPT, "text/event-stream");
    let response = service.respond(request.body(Empty::new()).unwrap()).await;
    let (head, mut body) = response.into_parts();
    let data = match body.frame().await {
        Some(Ok(frame)) => String::from_utf8(frame.into_data().unwrap_or_default().to_vec()).unwrap(),
        _ => String::new(),
    };
    (Response::from_parts(head, ()), data)
}

/// Field case: the `endpoint` event forgets the prefix.
async fn addresses_begin_with_what_a_proxy_takes_away(_lane: Lane) {
    for (prefix, expected) in [
        ("", "data: /messages?sessionId="),
        ("/svc", "data: /svc/messages?sessionId="),
        ("/svc/", "data: /svc/messages?sessionId="),
        ("https://example.com/svc", "data: https://example.com/svc/messages?sessionId="),
    ] {
        let config = HttpConfig::new(mcp_auth::Anonymous).sse_pair("/sse", "/messages").public_prefix(prefix);
        let (head, event) = first_event(config, "/sse").await;
        assert_eq!(head.status(), 200);
        assert!(event.contains(expected), "{prefix}: {event}");
    }
}

/// Field case 27, for the pair: a slash at the end is the same place, and what only begins alike is none.
async fn a_slash_at_the_end_is_the_same_place(lane: Lane) {
    let mut pair = connect(lane).await;
    pair.address = pair.address.replace("/messages?", "/messages/?");
    assert_eq!(pair.call(1, "echo").await.status, 202);
    assert_eq!(pair.next().await["method"], "notifications/progress");
    let mut other = pair.client.stream_at("/sse/", Method::GET, "", only_streams).await;
    assert_eq!(within("the first event", other.next()).await.unwrap().name.as_deref(), Some("endpoint"));
    for path in ["/ssex", "/sse/x", "/sse//", "/messagesx", "/x/messages"] {
        assert_eq!(pair.client.http_at(path, Method::GET, "", only_streams).await.status, 404, "{path}");
        assert_eq!(pair.client.http_at(path, Method::POST, "{}", no_accept).await.status, 404, "{path}");
    }
}

/// Field case 5, for the pair: its stream shows itself before anything else happens.
async fn the_stream_shows_itself_at_once(lane: Lane) {
    let begun = tokio::time::Instant::now();
    let _pair = open(lane.host(&server().build().unwrap()).strange(Profile::default())).await;
    assert!(begun.elapsed() < Duration::from_millis(20));
}

async fn a_client_that_tries_the_endpoint_finds_the_stream_there(_lane: Lane) {
    let config = HttpConfig::new(mcp_auth::Anonymous).sse_pair("/mcp", "/messages");
    let (head, event) = first_event(config, "/mcp").await;
    assert_eq!(head.status(), 200);
    assert!(event.starts_with("event: endpoint\n"), "{event}");
    for config in [
        HttpConfig::new(mcp_auth::Anonymous),
        HttpConfig::new(mcp_auth::Anonymous).sse_pair("/sse", "/messages").without_sessions(),
    ] {
        assert_eq!(first_event(config, "/sse").await.0.status(), 404, "nothing is there unless it was asked for");
    }
}
