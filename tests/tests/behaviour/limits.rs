//! Bounds on what a peer can make a server do. Those of questions, states, depth and pages are with their subjects.
//!
//! Spec: none; every bound is ours

use std::sync::Arc;
use std::time::Duration;

use mcp_core::{HandlerError, Limits, NoArguments, RequestContext, Resource, Server, ServerBuilder, Tool};
use mcp_tests::{Lane, Profile, Reply, idle, lanes};
use serde_json::json;
use tokio::sync::Semaphore;

lanes! {
    everywhere {
        blocking_tools_share_a_bounded_pool,
        a_client_names_at_most_so_many_resources,
        the_address_of_a_subscription_has_a_length,
        the_addresses_of_a_subscription_have_a_size_together,
        a_handler_that_is_never_ready_delays_no_other,
    }
    memory "over modern HTTP requests have nothing in common; the shell of a pipe lets requests wait" {
        so_many_requests_are_under_way_at_a_time,
    }
    connection "over modern HTTP requests have nothing in common" {
        an_id_is_under_way_once,
    }
    legacy "only the legacy era keeps what a client says of itself" {
        what_a_client_says_of_itself_has_a_size,
    }
    http_legacy "over modern HTTP requests have nothing in common" {
        so_many_requests_are_under_way_at_a_time,
        an_id_is_under_way_once,
        so_many_sessions_are_open_at_a_time,
        an_idle_session_ends,
        a_session_in_use_does_not_idle,
    }
    memory_modern "over HTTP and in a session subscriptions are no requests; the shell of a pipe lets requests wait" {
        subscriptions_are_requests_under_way,
    }
    http_modern "of legacy sessions each has one; the shell of a pipe lets requests wait" {
        so_many_subscriptions_are_open_at_a_time,
    }
    http "a pipe has its bound in its shell" {
        a_body_has_a_size,
    }
}

fn gated() -> (Tool, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let open = Arc::clone(&gate);
    let tool = Tool::typed("gated", move |_: NoArguments, _context: RequestContext| {
        let open = Arc::clone(&open);
        async move {
            open.acquire().await?.forget();
            Ok::<_, HandlerError>("done")
        }
    });
    (tool.timeout(None), gate)
}

fn limited(change: impl FnOnce(&mut Limits)) -> ServerBuilder {
    let mut limits = Limits::default();
    change(&mut limits);
    Server::builder("s", "1").limits(limits).resource(Resource::text("test://a", "a", "x"))
}

async fn so_many_requests_are_under_way_at_a_time(lane: Lane) {
    let (tool, gate) = gated();
    let client = lane.connect(limited(|limits| limits.in_flight_per_peer = 3).tool(tool)).await;
    let calls: Vec<_> = (0..3).map(|_| client.start_tool("gated", json!({}))).collect();
    idle().await;
    let beyond = client.call("gated", json!({})).await;
    assert_eq!(beyond.code(), -32603);
    assert!(beyond.message().contains('3'), "{}", beyond.text);
    assert!(
        client.request("resources/list", json!({})).await.response.get("result").is_some(),
        "what runs nothing goes on"
    );
    gate.add_permits(1);
    idle().await;
    let next = client.start_tool("gated", json!({}));
    gate.add_permits(3);
    for call in calls.into_iter().chain([next]) {
        assert_eq!(call.reply().await.tool_text(), "done");
    }
}

async fn an_id_is_under_way_once(lane: Lane) {
    let (tool, gate) = gated();
    let client = lane.connect(limited(|_| {}).tool(tool)).await;
    let start = |id| client.start_as(id, "tools/call", json!({ "name": "gated" }));
    for id in [json!(0), json!(""), json!("7")] {
        let first = start(id.clone());
        idle().await;
        let second = start(id.clone()).reply().await;
        assert_eq!(second.code(), -32600, "{id}");
        gate.add_permits(1);
        assert_eq!(first.reply().await.tool_text(), "done", "the first one is not disturbed");
    }
    // `7` and `"7"` are two.
    let (number, text) = (start(json!(7)), start(json!("7")));
    idle().await;
    gate.add_permits(2);
    assert_eq!(number.reply().await.tool_text(), "done");
    assert_eq!(text.reply().await.tool_text(), "done");
}

async fn subscriptions_are_requests_under_way(lane: Lane) {
    let client = lane.connect(limited(|limits| limits.in_flight_per_peer = 2)).await;
    let one = client.watch(json!({})).await;
    let _two = client.watch(json!({})).await;
    let beyond = client.request("subscriptions/listen", json!({ "notifications": {} })).await;
    assert_eq!(beyond.code(), -32603);
    drop(one);
    idle().await;
    let _three = client.watch(json!({})).await;
}

async fn so_many_subscriptions_are_open_at_a_time(lane: Lane) {
    let builder = limited(|limits| (limits.sessions, limits.subscriptions) = (1, 1));
    let client = lane.connect(builder).await;
    let one = client.watch(json!({})).await;
    let _two = client.watch(json!({})).await;
    let beyond = client.request("subscriptions/listen", json!({ "notifications": {} })).await;
    assert_eq!(beyond.code(), -32603);
    drop(one);
    idle().await;
    let _three = client.watch(json!({})).await;
}

async fn a_handler_that_is_never_ready_delays_no_other(lane: Lane) {
    let never = Tool::typed("never", async |_: NoArguments, _context: RequestContext| {
        std::future::pending::<Result<String, HandlerError>>().await
    });
    let builder = limited(|_| {}).tool(never.timeout(None)).tool(Tool::plain("echo", |_: NoArguments| "at once"));
    let client = lane.connect(builder).await;
    let _stuck: Vec<_> = (0..20).map(|_| client.start_tool("never", json!({}))).collect();
    idle().await;
    let asked = tokio::time::Instant::now();
    assert_eq!(client.call("echo", json!({})).await.tool_text(), "at once");
    assert_eq!(asked.elapsed(), Duration::ZERO);
}

async fn blocking_tools_share_a_bounded_pool(lane: Lane) {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let (started, start) = std::sync::mpsc::channel::<()>();
    let wait = Arc::new(std::sync::Mutex::new((wait, started)));
    let blocking = |name: &str| {
        let wait = Arc::clone(&wait);
        Tool::blocking(name, move |_: NoArguments, _context| {
            let wait = wait.lock().unwrap();
            wait.1.send(()).unwrap();
            wait.0.recv().unwrap();
            "done"
        })
        .timeout(None)
    };
    let client = lane.connect(limited(|limits| limits.blocking = 1).tool(blocking("a")).tool(blocking("b"))).await;
    let calls = [client.start_tool("a", json!({})), client.start_tool("b", json!({}))];
    for call in calls {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(start.recv().is_ok());
        assert!(start.try_recv().is_err(), "only one at a time");
        release.send(()).unwrap();
        assert_eq!(call.reply().await.tool_text(), "done");
    }
}

/// What a client hears that watches two addresses of eight bytes each and wants a third one.
async fn one_address_too_many(lane: Lane, change: impl FnOnce(&mut Limits)) -> Reply {
    let mut builder = limited(change);
    for name in ["b", "c"] {
        builder = builder.resource(Resource::text(format!("test://{name}"), name, "x"));
    }
    let client = lane.connect(builder).await;
    let _watch = client.watch(json!({ "resourceSubscriptions": ["test://a", "test://b"] })).await;
    if lane.is_modern() {
        let wish = json!({ "resourceSubscriptions": ["test://a", "test://b", "test://c"] });
        return client.request("subscriptions/listen", json!({ "notifications": wish })).await;
    }
    // What is there already takes no more.
    assert!(client.request("resources/subscribe", json!({ "uri": "test://b" })).await.result().is_object());
    client.request("resources/subscribe", json!({ "uri": "test://c" })).await
}

async fn a_client_names_at_most_so_many_resources(lane: Lane) {
    let beyond = one_address_too_many(lane, |limits| limits.subscribed_uris = 2).await;
    assert_eq!(beyond.code(), -32602);
    assert!(beyond.message().contains("at most 2"), "{}", beyond.text);
}

async fn the_address_of_a_subscription_has_a_length(lane: Lane) {
    let client = lane.connect(limited(|limits| limits.uri_bytes = 100)).await;
    let long = format!("test://{}", "x".repeat(100));
    let reply = if lane.is_modern() {
        client.request("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": [long] } })).await
    } else {
        client.request("resources/subscribe", json!({ "uri": long })).await
    };
    assert_eq!(reply.code(), -32602);
    assert!(reply.message().contains("100"), "{}", reply.text);
}

async fn the_addresses_of_a_subscription_have_a_size_together(lane: Lane) {
    let beyond = one_address_too_many(lane, |limits| limits.subscribed_bytes = 20).await;
    assert_eq!(beyond.code(), -32602);
    assert!(beyond.message().contains("20 bytes"), "{}", beyond.text);
}

async fn what_a_client_says_of_itself_has_a_size(lane: Lane) {
    let host = lane.host(&limited(|limits| limits.handshake_bytes = 1_000).build().unwrap());
    let client = host.strange(Profile::default());
    let hello = |length: usize| {
        let info = json!({ "name": "c", "version": "1", "description": "x".repeat(length) });
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info })
    };
    let around = hello(0).to_string().len();
    let refused = client.request("initialize", hello(1_001 - around)).await;
    assert_eq!(refused.code(), -32602);
    assert!(refused.message().contains("1000"), "{}", refused.text);
    let taken = client.request("initialize", hello(1_000 - around)).await;
    assert!(taken.response.get("result").is_some(), "{}", taken.text);
}

async fn so_many_sessions_are_open_at_a_time(lane: Lane) {
    let server = limited(|limits| limits.sessions = 2).build().unwrap();
    let host = lane.host(&server);
    let (first, _second) = (host.connect().await, host.connect().await);
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
    });
    let third = host.strange(Profile::default());
    let refused = third.request("initialize", hello.clone()).await;
    assert_eq!(refused.code_at(503), -32603);
    assert_eq!(host.open_sessions(), 2);
    assert_eq!(first.http(http::Method::DELETE, "", |_| {}).await.status, 204);
    assert!(third.request("initialize", hello.clone()).await.response.get("result").is_some());
    // Idle ones make room.
    tokio::time::advance(Limits::default().session_idle).await;
    assert!(host.strange(Profile::default()).request("initialize", hello).await.response.get("result").is_some());
    assert_eq!(host.open_sessions(), 1);
}

async fn an_idle_session_ends(lane: Lane) {
    let client = lane.connect(limited(|limits| limits.session_idle = Duration::from_secs(600))).await;
    for _ in 0..5 {
        tokio::time::advance(Duration::from_secs(599)).await;
        assert!(client.request("ping", json!({})).await.has_status(200), "each message keeps it");
    }
    tokio::time::advance(Duration::from_secs(600)).await;
    assert!(client.request("ping", json!({})).await.has_status(404));
}

async fn a_session_in_use_does_not_idle(lane: Lane) {
    let (tool, gate) = gated();
    let client = lane.connect(limited(|limits| limits.session_idle = Duration::from_secs(600)).tool(tool)).await;
    let call = client.start_tool("gated", json!({}));
    idle().await;
    tokio::time::advance(Duration::from_secs(6000)).await;
    gate.add_permits(1);
    assert_eq!(call.reply().await.tool_text(), "done", "a call under way keeps it");
    assert!(client.request("ping", json!({})).await.has_status(200));
    let mut watch = client.watch(json!({})).await;
    watch.is_quiet().await;
    tokio::time::advance(Duration::from_secs(6000)).await;
    assert!(client.request("ping", json!({})).await.has_status(200), "an open stream keeps it");
}

async fn a_body_has_a_size(lane: Lane) {
    let client = lane.connect(limited(|_| {})).await;
    let most = 16 * 1024 * 1024;
    let mut body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": client.enveloped(json!({})) })
            .to_string();
    let headers = |headers: &mut http::HeaderMap| {
        if lane.is_modern() {
            headers.insert("mcp-method", http::HeaderValue::from_static("resources/list"));
        }
    };
    body.push_str(&" ".repeat(most - body.len()));
    assert_eq!(client.http(http::Method::POST, body.clone(), headers).await.status, 200);
    body.push(' ');
    let refused = client.http(http::Method::POST, body, headers).await;
    assert_eq!((refused.status, refused.code()), (413, -32600));
}
