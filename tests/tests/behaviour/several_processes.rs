//! Several processes that serve the same clients: whichever of them a balancer brings a request to, the answer is the same.
//!
//! Each process is a server of its own behind an endpoint of its own; they share four stores and nothing else.
//!
//! Spec: 2025-11-25 basic/transports, "Session Management" and "Resumability and Redelivery"

mod switch;

use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use mcp_core::store::{EventRecord, EventStore, StreamKey, StreamState};
use mcp_core::wire::RawJson;
use mcp_core::{HandlerError, ListRoots, NoArguments, RequestContext, Resource, Server, Tool};
use mcp_tests::{Client, Event, Events, Host, HttpAnswer, Lane, Profile, idle, lanes, within};
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

use switch::{Engine, Mood};

use crate::telemetry::recorded::Counted;

lanes! {
    everywhere {}
    http_legacy "elsewhere a session is its connection, and modern requests stand alone" {
        a_session_is_served_wherever_it_is_asked_for,
        what_a_session_remembers_is_remembered_everywhere,
        changes_at_two_processes_at_once_are_both_kept,
        an_address_with_its_scheme_spelt_twice_is_one_subscription,
        a_session_of_somebody_else_looks_like_none_everywhere,
        a_session_that_is_ended_anywhere_has_ended_everywhere,
        a_session_expires_everywhere_and_lives_where_it_is_used,
        a_lost_stream_goes_on_at_another_process,
        a_stream_cut_at_any_event_goes_on_elsewhere_without_loss_or_repetition,
        a_stream_whose_process_is_gone_says_so_and_ends,
        an_answer_reaches_the_process_that_asked,
        an_answer_for_a_process_that_is_gone_is_taken,
        a_cancellation_reaches_the_process_that_runs_the_call,
        the_newest_standalone_stream_is_the_only_one_anywhere,
        a_session_hears_of_changes_at_another_process,
        a_store_that_is_down_refuses_requests_and_loses_no_call,
        a_store_that_does_not_answer_is_not_waited_for_long,
        events_that_could_not_be_stored_are_stored_later,
        a_route_that_is_down_takes_no_answer,
    }
    http_modern "sessions are told through the same hub, and of their own stream" {
        a_subscription_hears_of_changes_at_another_process,
        many_changes_elsewhere_are_told_once,
    }
}

/// One of the processes.
struct Process {
    server: Server,
    host: Host,
    /// Lets a call of `steps` go one step further.
    gate: Arc<Semaphore>,
    /// A call of `waits` was cancelled.
    cancelled: Arc<Notify>,
}

/// Two processes that share what they need.
fn two(lane: Lane) -> (Process, Process, Arc<Engine>) {
    let engine = Arc::new(Engine::default());
    (process(lane, &engine), process(lane, &engine), engine)
}

fn process(lane: Lane, engine: &Arc<Engine>) -> Process {
    let (gate, cancelled) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
    let (open, seen) = (Arc::clone(&gate), Arc::clone(&cancelled));
    let steps = Tool::typed("steps", move |_: NoArguments, context: RequestContext| {
        let open = Arc::clone(&open);
        async move {
            for step in 1..=5 {
                open.acquire().await?.forget();
                context.progress(f64::from(step), None, None);
            }
            Ok::<_, HandlerError>("done")
        }
    });
    let waits = Tool::typed("waits", move |_: NoArguments, context: RequestContext| {
        let seen = Arc::clone(&seen);
        async move {
            context.progress(1.0, None, None);
            context.cancelled().await;
            seen.notify_one();
            Ok::<_, HandlerError>("cancelled")
        }
    });
    let asks = Tool::typed("asks", async |_: NoArguments, context: RequestContext| {
        let roots = context.ask("roots", ListRoots)?;
        Ok::<_, HandlerError>(format!("{} roots", roots.len()))
    });
    let says = Tool::typed("says", async |_: NoArguments, context: RequestContext| {
        context.log(mcp_core::wire::types::LoggingLevel::Debug, "hush");
        Ok::<_, HandlerError>("said")
    });
    let server = Server::builder("s", "1")
        .tool(steps.timeout(None))
        .tool(waits.timeout(None))
        .tool(asks)
        .tool(says)
        .resource(Resource::text("test://a", "a", "x"))
        .resource(Resource::text("test://b", "b", "x"))
        .notice_bus(engine.bus.clone())
        .build()
        .unwrap();
    let config = mcp_tests::http_config().shared_sessions(engine.clone(), engine.clone(), engine.clone());
    let host = lane.host_as(&server, config);
    Process { server, host, gate, cancelled }
}

async fn resume(client: &Client, last: &str) -> Events {
    let last = HeaderValue::from_str(last).unwrap();
    client.stream(Method::GET, "", |headers: &mut HeaderMap| drop(headers.insert("last-event-id", last))).await
}

async fn post_steps(client: &Client) -> Events {
    let params = json!({ "name": "steps", "_meta": { "progressToken": "p" } });
    let body = json!({ "jsonrpc": "2.0", "id": "steps", "method": "tools/call", "params": params });
    client.stream(Method::POST, body.to_string(), |_| {}).await
}

async fn next(events: &mut Events) -> Event {
    within("an event", events.next()).await.expect("the stream goes on")
}

/// The next event that carries a message: its place, and how far it says the call is, `done`, or its method.
async fn message(events: &mut Events) -> (String, String) {
    loop {
        let event = next(events).await;
        if event.data.is_empty() {
            continue;
        }
        let message: Value = serde_json::from_str(&event.data).unwrap();
        let said = match (&message["params"]["progress"], &message["result"]) {
            (Value::Number(progress), _) => progress.to_string(),
            (_, Value::Null) => message["method"].as_str().unwrap().to_owned(),
            (_, result) => result["content"][0]["text"].as_str().unwrap().to_owned(),
        };
        return (event.id.unwrap_or_default(), said);
    }
}

/// The messages up to the end of the stream.
async fn rest(events: &mut Events) -> Vec<String> {
    let mut said = Vec::new();
    loop {
        match within("an event", events.next()).await {
            None => return said,
            Some(event) if event.data.is_empty() => {}
            Some(event) => {
                let message: Value = serde_json::from_str(&event.data).unwrap();
                said.push(match &message["params"]["progress"] {
                    Value::Number(progress) => progress.to_string(),
                    _ => message["method"].as_str().unwrap_or("done").to_owned(),
                });
            }
        }
    }
}

async fn list(client: &Client) -> HttpAnswer {
    let body = r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#;
    client.http(Method::POST, body, |_| {}).await
}

fn is_unavailable(answer: &HttpAnswer) {
    assert_eq!((answer.status, answer.code()), (503, -32603), "{}", answer.body);
    assert_eq!(answer.headers["retry-after"], "1");
}

async fn a_session_is_served_wherever_it_is_asked_for(lane: Lane) {
    let (a, b, _) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    assert_eq!(at_b.call("says", json!({})).await.tool_text(), "said");
    assert_eq!(at_a.call("says", json!({})).await.tool_text(), "said");
    assert_eq!((a.host.open_sessions(), b.host.open_sessions()), (1, 1));
    // What the client can do was said in the handshake at the other process.
    let mut call = at_b.start_tool("asks", json!({}));
    let request = call.server_request().await;
    at_b.answer(&request, json!({ "roots": [] })).await;
    assert_eq!(call.reply().await.tool_text(), "0 roots");
}

async fn what_a_session_remembers_is_remembered_everywhere(lane: Lane) {
    let (a, b, engine) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    assert!(at_b.call("says", json!({})).await.before.is_empty());
    at_a.set_log_level("debug").await;
    assert_eq!(at_b.call("says", json!({})).await.before.len(), 1, "the level was set at the other process");
    // A standalone stream that is open hears of what is subscribed to later, and elsewhere.
    let mut watch = at_b.watch(json!({})).await;
    watch.is_quiet().await;
    let reply = at_a.request("resources/subscribe", json!({ "uri": "test://a" })).await;
    assert_eq!(*reply.result(), json!({}));
    idle().await;
    b.server.resource_updated("test://b");
    b.server.resource_updated("test://a");
    assert_eq!(watch.next().await.1, json!({ "uri": "test://a" }));
    let reply = at_a.request("resources/unsubscribe", json!({ "uri": "test://a" })).await;
    assert_eq!(*reply.result(), json!({}));
    idle().await;
    b.server.resource_updated("test://a");
    watch.is_quiet().await;
    let record = engine.record(&at_a.session_id()).await.unwrap();
    assert_eq!((record.version, record.subscriptions.len()), (4, 0), "a version for each of the three changes");
}

async fn changes_at_two_processes_at_once_are_both_kept(lane: Lane) {
    let (a, b, engine) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    let (one, other, level) = tokio::join!(
        at_a.request("resources/subscribe", json!({ "uri": "test://a" })),
        at_b.request("resources/subscribe", json!({ "uri": "test://b" })),
        at_b.request("logging/setLevel", json!({ "level": "error" })),
    );
    for reply in [one, other, level] {
        assert_eq!(*reply.result(), json!({}));
    }
    let record = engine.record(&at_a.session_id()).await.unwrap();
    assert_eq!(record.subscriptions.iter().collect::<Vec<_>>(), ["test://a", "test://b"]);
    assert_eq!(serde_json::to_value(record.log_level).unwrap(), "error");
}

/// Field case 39: each process is told another spelling of one address, at the same time.
async fn an_address_with_its_scheme_spelt_twice_is_one_subscription(lane: Lane) {
    let (a, b, engine) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    let mut watch = at_b.watch(json!({})).await;
    watch.is_quiet().await;
    let (one, other) = tokio::join!(
        at_a.request("resources/subscribe", json!({ "uri": "TEST://a" })),
        at_b.request("resources/subscribe", json!({ "uri": "test://a" })),
    );
    assert_eq!((one.result(), other.result()), (&json!({}), &json!({})));
    idle().await;
    let record = engine.record(&at_a.session_id()).await.unwrap();
    assert_eq!(record.subscriptions.len(), 1, "{:?}", record.subscriptions);
    for server in [&a.server, &b.server] {
        server.resource_updated("Test://a");
        let (method, params) = watch.next().await;
        assert_eq!(method, "notifications/resources/updated");
        assert!(params["uri"].as_str().unwrap().eq_ignore_ascii_case("test://a"), "{params}");
        watch.is_quiet().await;
    }
    // Ended at either, in a third spelling, it has ended.
    let reply = at_a.request("resources/unsubscribe", json!({ "uri": "tEST://a" })).await;
    assert_eq!(*reply.result(), json!({}));
    idle().await;
    assert!(engine.record(&at_a.session_id()).await.unwrap().subscriptions.is_empty());
    for server in [&a.server, &b.server] {
        server.resource_updated("test://a");
        watch.is_quiet().await;
    }
}

async fn a_session_of_somebody_else_looks_like_none_everywhere(lane: Lane) {
    let (a, b, _) = two(lane);
    let ann = a.host.connect().await;
    let ben_at_b = ann.at(&b.host);
    let undated = |mut answer: HttpAnswer| {
        answer.headers.remove("date");
        answer
    };
    let ask = async |method: Method, session: &str| {
        let body = if method == Method::POST { r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"# } else { "" };
        let session = HeaderValue::from_str(session).unwrap();
        let answer = ben_at_b.http(method, body, |headers| {
            headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer ben"));
            headers.insert("mcp-session-id", session);
        });
        undated(answer.await)
    };
    let (foreign, unknown) = (ann.session_id(), "A".repeat(24));
    // Before and after the session is known at the process that is asked.
    for _ in 0..2 {
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let answer = ask(method.clone(), &foreign).await;
            assert_eq!(answer.status, 404, "{method}");
            for none in [unknown.as_str(), "no-such", &"x".repeat(1000), "a.b/c:d*"] {
                assert_eq!(answer, ask(method.clone(), none).await, "{method} {none}");
            }
        }
        assert_eq!(ann.at(&b.host).call("says", json!({})).await.tool_text(), "said", "the session lives");
    }
}

async fn a_session_that_is_ended_anywhere_has_ended_everywhere(lane: Lane) {
    let (a, b, engine) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    let mut call = at_a.start("tools/call", json!({ "name": "waits", "_meta": { "progressToken": "p" } }));
    call.notification().await;
    let mut standalone = at_a.stream(Method::GET, "", |_| {}).await;
    let id = at_a.session_id();
    assert_eq!(at_b.http(Method::DELETE, "", |_| {}).await.status, 204);
    within("the cancellation", a.cancelled.notified()).await;
    call.silence().await;
    assert_eq!(within("the end of the stream", standalone.next()).await, None);
    for client in [&at_a, &at_b] {
        assert_eq!(list(client).await.status, 404);
        assert_eq!(client.http(Method::DELETE, "", |_| {}).await.status, 404);
    }
    assert_eq!((a.host.open_sessions(), b.host.open_sessions()), (0, 0));
    assert_eq!(engine.record(&id).await, None);
}

async fn a_session_expires_everywhere_and_lives_where_it_is_used(lane: Lane) {
    let (a, b, _) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    // 30 minutes is the limit; it is used at one process alone.
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(20 * 60)).await;
        assert_eq!(list(&at_b).await.status, 200);
    }
    assert_eq!(list(&at_a).await.status, 200, "used elsewhere, it lives here");
    // A stream that is open keeps it alive, without a word.
    let standalone = at_b.stream(Method::GET, "", |_| {}).await;
    tokio::time::sleep(Duration::from_secs(3 * 60 * 60)).await;
    assert_eq!(list(&at_a).await.status, 200);
    drop(standalone);
    idle().await;
    tokio::time::sleep(Duration::from_secs(32 * 60)).await;
    for client in [&at_a, &at_b] {
        assert_eq!(list(client).await.status, 404);
    }
}

async fn a_lost_stream_goes_on_at_another_process(lane: Lane) {
    let (a, b, _) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    let mut events = post_steps(&at_a).await;
    let opening = next(&mut events).await.id.expect("a place to come back to");
    a.gate.add_permits(2);
    let (first, said) = message(&mut events).await;
    assert_eq!(said, "1");
    drop(events);
    // What was said before is there, and what is said from now on comes.
    let mut events = resume(&at_b, &first).await;
    assert_eq!(message(&mut events).await.1, "2");
    a.gate.add_permits(1);
    let (third, said) = message(&mut events).await;
    assert_eq!(said, "3");
    drop(events);
    // And once more, to the process that runs the call.
    a.gate.add_permits(2);
    assert_eq!(rest(&mut resume(&at_a, &third).await).await, ["4", "5", "done"]);
    // What is over is kept for a while, from its beginning.
    for client in [&at_a, &at_b] {
        assert_eq!(rest(&mut resume(client, &opening).await).await, ["1", "2", "3", "4", "5", "done"]);
    }
}

async fn a_stream_cut_at_any_event_goes_on_elsewhere_without_loss_or_repetition(lane: Lane) {
    for cut in 0..=6 {
        let (a, b, _) = two(lane);
        let at_a = a.host.connect().await;
        let mut events = post_steps(&at_a).await;
        let mut place = next(&mut events).await.id.unwrap();
        let mut said = Vec::new();
        for step in 0..cut {
            a.gate.add_permits(usize::from(step < 5));
            let (id, word) = message(&mut events).await;
            place = id;
            said.push(word);
        }
        drop(events);
        a.gate.add_permits(5);
        said.extend(rest(&mut resume(&at_a.at(&b.host), &place).await).await);
        assert_eq!(said, ["1", "2", "3", "4", "5", "done"], "cut after {cut}");
    }
}

async fn a_stream_whose_process_is_gone_says_so_and_ends(lane: Lane) {
    let (a, b, engine) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    let mut events = post_steps(&at_a).await;
    a.gate.add_permits(1);
    let (place, _) = message(&mut events).await;
    a.server.shutdown(Duration::ZERO).await;
    drop((events, at_a, a));
    idle().await;
    let last = format!("{}-0", place.rsplit_once('-').unwrap().0);
    assert_eq!(rest(&mut resume(&at_b, &last).await).await, ["1", "notifications/replay_truncated"]);
    // A process that falls silent counts as gone after a while.
    let silent = StreamKey::new(at_b.session_id(), "1.silent");
    let said = EventRecord::message(1, RawJson::from_serialize(&json!({ "method": "m", "params": {} })).unwrap());
    let begun = tokio::time::Instant::now();
    let alive_until = b.server.now_ms() + 30_000;
    engine.append(&silent, &[said], StreamState::open(alive_until, u64::MAX)).await.unwrap();
    let mut events = resume(&at_b, "1.silent-0").await;
    assert_eq!(rest(&mut events).await, ["m", "notifications/replay_truncated"]);
    assert!((30..=60).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    // Whoever knows all that there was gets the standalone stream, told of what is missing, and does not ask again.
    let mut events = resume(&at_b, "1.silent-1").await;
    assert_eq!(message(&mut events).await.1, "notifications/replay_truncated");
    b.server.tools_changed();
    assert_eq!(message(&mut events).await.1, "notifications/tools/list_changed");
}

async fn an_answer_reaches_the_process_that_asked(lane: Lane) {
    let (a, b, _) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    let mut calls = [at_a.start_tool("asks", json!({})), at_b.start_tool("asks", json!({}))];
    let mut requests = Vec::new();
    for call in &mut calls {
        requests.push(call.server_request().await);
    }
    assert_ne!(requests[0]["id"], requests[1]["id"], "one client, one request, one id");
    // Somebody else's answer is nobody's.
    let ben = b.host.connect_as(Profile::named("ben")).await;
    ben.answer(&requests[0], json!({ "roots": [] })).await;
    calls[0].is_quiet().await;
    at_b.answer(&requests[0], json!({ "roots": [{ "uri": "file:///a" }] })).await;
    at_a.answer_error(&requests[1], -32000, "not today").await;
    let [one, other] = calls;
    assert_eq!(one.reply().await.tool_text(), "1 roots");
    let refused = other.reply().await;
    assert!(refused.is_tool_error() && refused.tool_text().contains("not today"), "{}", refused.text);
}

async fn an_answer_for_a_process_that_is_gone_is_taken(lane: Lane) {
    let (a, b, _) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    let mut call = at_a.start_tool("asks", json!({}));
    let request = call.server_request().await;
    a.server.shutdown(Duration::ZERO).await;
    drop((call, a));
    idle().await;
    at_b.answer(&request, json!({ "roots": [] })).await;
    for id in [json!("1.nobody"), json!("x"), json!(1), json!(".."), json!(format!("1.{}", "x".repeat(500)))] {
        at_b.answer(&json!({ "id": id }), json!({ "roots": [] })).await;
    }
    assert_eq!(list(&at_b).await.status, 200);
}

async fn a_cancellation_reaches_the_process_that_runs_the_call(lane: Lane) {
    let (a, b, _) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    let params = json!({ "name": "waits", "_meta": { "progressToken": "p" } });
    let mut call = at_a.start_as(json!("wanted"), "tools/call", params.clone());
    call.notification().await;
    // The same id in another session is another request.
    let ben = b.host.connect_as(Profile::named("ben")).await;
    ben.withdraw(&json!("wanted")).await;
    at_b.withdraw(&json!("other")).await;
    call.is_quiet().await;
    at_b.withdraw(&json!("wanted")).await;
    within("the cancellation", a.cancelled.notified()).await;
    call.silence().await;
}

async fn the_newest_standalone_stream_is_the_only_one_anywhere(lane: Lane) {
    let (a, b, _) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    let mut older = at_a.stream(Method::GET, "", |_| {}).await;
    let mut newer = at_b.stream(Method::GET, "", |_| {}).await;
    assert_eq!(within("the end of the older stream", older.next()).await, None);
    a.server.tools_changed();
    assert_eq!(message(&mut newer).await.1, "notifications/tools/list_changed");
    let mut newest = at_a.stream(Method::GET, "", |_| {}).await;
    assert_eq!(within("the end of the older stream", newer.next()).await, None);
    b.server.prompts_changed();
    b.server.resources_changed();
    // What changed before it came was told already, at another process: telling it again does no harm.
    let mut told = message(&mut newest).await.1;
    if told == "notifications/tools/list_changed" {
        told = message(&mut newest).await.1;
    }
    assert_eq!(told, "notifications/resources/list_changed");
}

async fn a_session_hears_of_changes_at_another_process(lane: Lane) {
    let (a, b, _) = two(lane);
    let at_a = a.host.connect().await;
    let mut watch = at_a.watch(json!({ "resourceSubscriptions": ["test://a"] })).await;
    watch.is_quiet().await;
    // The other process takes part as soon as it is asked for anything.
    at_a.at(&b.host).call("says", json!({})).await;
    b.server.tools_changed();
    assert_eq!(watch.next().await.0, "notifications/tools/list_changed");
    b.server.resource_updated("test://b");
    b.server.resource_updated("test://a");
    assert_eq!(watch.next().await, ("notifications/resources/updated".to_owned(), json!({ "uri": "test://a" })));
    watch.is_quiet().await;
}

async fn a_store_that_is_down_refuses_requests_and_loses_no_call(lane: Lane) {
    let counted = Counted::default();
    let _recording = metrics::set_default_local_recorder(&counted);
    let (a, b, engine) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    let mut asking = at_a.start_tool("asks", json!({}));
    let request = asking.server_request().await;
    let mut events = post_steps(&at_a).await;
    let place = next(&mut events).await.id.unwrap();
    engine.sessions_are(Mood::Fails);
    for client in [&at_a, &at_b] {
        let answer = list(client).await;
        is_unavailable(&answer);
        assert_eq!(answer.json()["id"], "list", "the request is answered by its id");
        is_unavailable(&client.http(Method::GET, "", |_| {}).await);
        is_unavailable(&client.http(Method::DELETE, "", |_| {}).await);
    }
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"n","version":"1"}}}"#;
    let refusals = || counted.value("mcp.server.refusals{reason=store}");
    let before = refusals();
    is_unavailable(&at_a.http(Method::POST, hello, |headers| drop(headers.remove("mcp-session-id"))).await);
    assert_eq!((before, refusals()), (6.0, 7.0), "each is counted");
    assert_eq!(a.host.open_sessions(), 1, "a session that nobody else could find is not opened");
    // What is under way goes on: its answer is taken, and its stream can be read on, where it is.
    at_a.answer(&request, json!({ "roots": [] })).await;
    assert_eq!(asking.reply().await.tool_text(), "0 roots");
    drop(events);
    a.gate.add_permits(5);
    assert_eq!(rest(&mut resume(&at_a, &place).await).await.last().map(String::as_str), Some("done"));
    engine.sessions_are(Mood::Works);
    for client in [&at_a, &at_b] {
        assert_eq!(list(client).await.status, 200);
    }
}

async fn a_store_that_does_not_answer_is_not_waited_for_long(lane: Lane) {
    let (a, b, engine) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    list(&at_b).await;
    engine.sessions_are(Mood::Hangs);
    for client in [&at_a, &at_b] {
        let begun = tokio::time::Instant::now();
        is_unavailable(&list(client).await);
        assert_eq!(begun.elapsed().as_secs(), 2, "the time that a step of a store may take");
    }
    engine.sessions_are(Mood::Works);
    assert_eq!(list(&at_b).await.status, 200);
}

async fn events_that_could_not_be_stored_are_stored_later(lane: Lane) {
    for mood in [Mood::Fails, Mood::Hangs] {
        let (a, b, engine) = two(lane);
        let at_a = a.host.connect().await;
        let at_b = at_a.at(&b.host);
        engine.events_are(mood);
        let mut events = post_steps(&at_a).await;
        let opening = next(&mut events).await.id.unwrap();
        a.gate.add_permits(4);
        for step in ["1", "2", "3", "4"] {
            assert_eq!(message(&mut events).await.1, step, "a reader is not held back");
        }
        let last = HeaderValue::from_str(&opening).unwrap();
        let answer = at_b.http(Method::GET, "", |headers| drop(headers.insert("last-event-id", last))).await;
        is_unavailable(&answer);
        engine.events_are(Mood::Works);
        tokio::time::sleep(Duration::from_secs(20)).await;
        let mut elsewhere = resume(&at_b, &opening).await;
        a.gate.add_permits(1);
        assert_eq!(rest(&mut elsewhere).await, ["1", "2", "3", "4", "5", "done"]);
    }
}

async fn a_route_that_is_down_takes_no_answer(lane: Lane) {
    let (a, b, engine) = two(lane);
    let at_a = a.host.connect().await;
    let at_b = at_a.at(&b.host);
    list(&at_b).await;
    let mut call = at_a.start_tool("asks", json!({}));
    let request = call.server_request().await;
    let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "roots": [] } }).to_string();
    for mood in [Mood::Fails, Mood::Hangs] {
        engine.route_is(mood);
        is_unavailable(&at_b.http(Method::POST, answer.clone(), |_| {}).await);
        assert_eq!(list(&at_b).await.status, 200, "whatever needs no other process is served");
    }
    call.is_quiet().await;
    engine.route_is(Mood::Works);
    assert_eq!(at_b.http(Method::POST, answer, |_| {}).await.status, 202);
    assert_eq!(call.reply().await.tool_text(), "0 roots");
}

async fn a_subscription_hears_of_changes_at_another_process(lane: Lane) {
    let (a, b, _) = two(lane);
    let (ann, ben) = (a.host.connect().await, b.host.connect_as(Profile::named("ben")).await);
    let wish = json!({ "toolsListChanged": true, "resourceSubscriptions": ["test://a"] });
    let mut one = ann.watch(wish.clone()).await;
    let mut other = ben.watch(wish).await;
    b.server.prompts_changed();
    b.server.resource_updated("test://b");
    b.server.resource_updated("test://a");
    a.server.tools_changed();
    let mut told = Vec::new();
    for watch in [&mut one, &mut other] {
        told.push([watch.next().await, watch.next().await].map(|(method, _)| method));
        watch.is_quiet().await;
    }
    for mut told in told {
        told.sort();
        assert_eq!(told, ["notifications/resources/updated", "notifications/tools/list_changed"]);
    }
}

async fn many_changes_elsewhere_are_told_once(lane: Lane) {
    let (a, b, _) = two(lane);
    let (ann, ben) = (a.host.connect().await, b.host.connect_as(Profile::named("ben")).await);
    ben.call("says", json!({})).await;
    let mut watch = ann.watch(json!({ "toolsListChanged": true, "resourceSubscriptions": ["test://a"] })).await;
    for number in 0..10_000 {
        b.server.tools_changed();
        b.server.resource_updated(&format!("test://{number}"));
    }
    // More changed than anybody keeps: everything that is watched may have.
    assert_eq!(watch.next().await.0, "notifications/tools/list_changed");
    assert_eq!(watch.next().await.1, json!({ "uri": "test://a" }));
    watch.is_quiet().await;
}
